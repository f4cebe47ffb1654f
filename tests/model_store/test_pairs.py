"""Which drafter was got with which model: kept beside them, and taken apart when one of them goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.pairs import Pairs, paired_drafter


@pytest.fixture
def models(tmp_path: Path) -> Path:
    models = tmp_path / "Modèles 模型"
    for name in ("a/m.gguf", "a/d.gguf", "b/deep/n.gguf"):
        path = models / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return models


def test_pair_is_known_to_whoever_loads_the_target(models: Path) -> None:
    pairs = Pairs(models)
    target, drafter, other = models / "a/m.gguf", models / "a/d.gguf", models / "b/deep/n.gguf"
    assert paired_drafter(target) is None
    pairs.pair(target, drafter)
    pairs.pair(other, drafter)
    assert paired_drafter(target) == paired_drafter(other) == Pairs(models).drafter_of(target) == drafter
    assert paired_drafter(drafter) is None
    pairs.pair(target, None)
    assert paired_drafter(target) is None
    assert paired_drafter(other) == drafter
    drafter.unlink()
    assert paired_drafter(other) is None


def test_pairs_move_with_their_folder(models: Path, tmp_path: Path) -> None:
    Pairs(models).pair(models / "a/m.gguf", models / "a/d.gguf")
    moved = models.rename(tmp_path / "moved")
    assert paired_drafter(moved / "a/m.gguf") == moved / "a/d.gguf"


def test_file_that_cannot_be_read_is_not_written_over(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Pairs(models)
    pairs.pair(models / "a/m.gguf", models / "a/d.gguf")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        assert pairs.drafter_of(models / "a/m.gguf") is None
        with pytest.raises(PermissionError):
            pairs.pair(models / "b/deep/n.gguf", models / "a/d.gguf")
    assert pairs.drafter_of(models / "a/m.gguf") == models / "a/d.gguf"


@pytest.mark.parametrize("gone", ["a/m.gguf", "a/d.gguf"])
def test_either_file_takes_the_pair_with_it(models: Path, gone: str) -> None:
    pairs = Pairs(models)
    pairs.pair(models / "a/m.gguf", models / "a/d.gguf")
    pairs.pair(models / "b/deep/n.gguf", models / "b/deep/n.gguf")
    pairs.forget([models / gone, models / "unknown.gguf"])
    assert pairs.drafter_of(models / "a/m.gguf") is None
    assert pairs.drafter_of(models / "b/deep/n.gguf") is not None


def test_files_elsewhere_cannot_be_paired(models: Path, tmp_path: Path) -> None:
    pairs = Pairs(models)
    with pytest.raises(ValueError, match="is not in"):
        pairs.pair(tmp_path / "m.gguf", models / "a/d.gguf")
    with pytest.raises(ValueError, match="is not in"):
        pairs.pair(models / "a/m.gguf", tmp_path / "d.gguf")
    assert pairs.drafter_of(tmp_path / "m.gguf") is None
    pairs.forget([tmp_path / "m.gguf"])


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"drafters": {"a/m.gguf": 3}}', b'{"drafters": {"a/m.gguf": "../x.gguf"}}']
)
def test_damaged_file_pairs_nothing_and_can_be_written_anew(models: Path, content: bytes) -> None:
    (models.parent / "x.gguf").write_bytes(b"")
    (models / ".slipstream").mkdir()
    (models / ".slipstream" / "pairs.json").write_bytes(content)
    assert paired_drafter(models / "a/m.gguf") is None
    Pairs(models).pair(models / "a/m.gguf", models / "a/d.gguf")
    assert paired_drafter(models / "a/m.gguf") == models / "a/d.gguf"


def test_all_pairs_are_told_at_once(tmp_path: Path) -> None:
    pairs = Pairs(tmp_path)
    assert pairs.all() == {}
    pairs.pair(tmp_path / "a/m.gguf", tmp_path / "a/d.gguf")
    pairs.pair(tmp_path / "n.gguf", tmp_path / "a/d.gguf")
    assert pairs.all() == {
        tmp_path / "a/m.gguf": tmp_path / "a/d.gguf",
        tmp_path / "n.gguf": tmp_path / "a/d.gguf",
    }
