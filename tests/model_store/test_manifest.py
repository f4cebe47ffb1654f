"""Manifests: one for each file, whole or absent, and never in the way."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from model_store.fingerprint import TO_HASH, tokenizer_fingerprint
from model_store.gguf_header import read_header
from model_store.hub import HubFile
from model_store.manifest import Manifest, Manifests, manifest_of
from tests.model_store.raw_gguf import CHAT, gguf, strings

MANIFEST = Manifest(
    repository="owner/model",
    revision="c" * 40,
    file="sub/x.gguf",
    size=7,
    sha256="a" * 64,
    fingerprint=None,
    downloaded_at=datetime(2026, 11, 30, 8, 0, tzinfo=UTC),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    path = tmp_path / "owner" / "model" / "sub" / "x.gguf"
    assert manifests.read(path) is None
    manifests.write(path, MANIFEST)
    assert manifests.read(path) == MANIFEST
    assert Manifests(tmp_path).all() == {path: MANIFEST}
    assert manifests.read(path.with_name("X.gguf")) is None
    manifests.remove(path)
    manifests.remove(path)
    assert manifests.read(path) is None
    assert not list((tmp_path / ".slipstream" / "manifests").iterdir())  # no empty folders stay


def test_folder_that_another_program_fills_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = Manifests(tmp_path)
    first, second = tmp_path / "owner" / "a.gguf", tmp_path / "owner" / "b.gguf"
    manifests.write(first, MANIFEST)
    rmdir = Path.rmdir

    def rmdir_after_another_wrote(path: Path) -> None:
        manifests.write(second, MANIFEST)
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", rmdir_after_another_wrote)
    manifests.remove(first)
    assert manifests.all() == {second: MANIFEST}


def test_file_elsewhere_has_none(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path / "models")
    assert manifests.read(tmp_path / "x.gguf") is None
    manifests.remove(tmp_path / "x.gguf")
    with pytest.raises(ValueError, match="not in"):
        manifests.write(tmp_path / "x.gguf", MANIFEST)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"repository": 3}', b"\xff\xfe"])
def test_damaged_one_is_set_aside(tmp_path: Path, content: bytes) -> None:
    manifests = Manifests(tmp_path)
    path = tmp_path / "x.gguf"
    manifests.write(path, MANIFEST)
    [place] = (tmp_path / ".slipstream" / "manifests").iterdir()
    place.write_bytes(content)
    assert manifests.read(path) is None
    assert manifests.all() == {}
    assert [left.read_bytes() for left in place.parent.iterdir()] == [content]
    manifests.write(path, MANIFEST)
    assert manifests.read(path) == MANIFEST


def test_manifest_of_a_model_has_its_tokenizers_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(CHAT | {"tokenizer.ggml.tokens": strings(list("abcdefgh"))}))
    file = HubFile("o/m", "c" * 40, "x.gguf", path.stat().st_size, "a" * 64, "a" * 64)
    manifest = manifest_of(file, path, "a" * 64)
    assert manifest.fingerprint == tokenizer_fingerprint(read_header(path, hash_arrays=TO_HASH))
    assert manifest.fingerprint is not None
    assert manifest.is_of(file)
    assert (datetime.now(UTC) - manifest.downloaded_at).total_seconds() < 60
    path.write_bytes(b"no model")
    assert manifest_of(file, path, "a" * 64).fingerprint is None
