"""Deleting a model: exactly it, exactly counted, and nothing behind a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from model_store.disk_use import disk_use
from model_store.imported import Imported
from model_store.library import ModelEntry, list_models
from model_store.removal import RemovalError, remove_model
from model_store.scan_cache import ScanCache
from tests.model_store.raw_gguf import gguf, u32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "Modèles 模型 (1)" / "ü 　x"
    folder.mkdir(parents=True)
    return folder


def entry(folder: Path, name: str) -> ModelEntry:
    return next(entry for entry in list_models(folder, ScanCache()) if entry.name == name)


def used(folder: Path) -> int:
    return disk_use(folder, folder / ".slipstream" / "downloads").models


@pytest.mark.parametrize("name", ["a#b%20c.gguf", "it's.gguf", "e\u0301.gguf", "x" * 245 + ".gguf"])
def test_file_is_deleted_with_its_bytes_counted(folder: Path, name: str) -> None:
    path = folder / "owner" / "repo" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gguf())
    (folder / "other.gguf").write_bytes(gguf({"general.name": u32(1)}))
    before = used(folder)
    removed = remove_model(entry(folder, path.stem), folder)
    assert removed.paths == (path,)
    assert removed.bytes_freed == len(gguf()) == before - used(folder)
    assert sorted(child.name for child in folder.iterdir()) == ["other.gguf"]  # emptied folders go


def test_folder_that_still_holds_something_stays(folder: Path) -> None:
    (folder / "owner").mkdir()
    (folder / "owner" / "a.gguf").write_bytes(gguf())
    (folder / "owner" / "notes.txt").write_bytes(b"mine")
    remove_model(entry(folder, "a"), folder)
    assert (folder / "owner" / "notes.txt").exists()


def test_split_model_is_deleted_whole(folder: Path) -> None:
    parts = [folder / f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for part in parts[:2]:
        part.write_bytes(gguf({"split.count": u32(3)}))
    keep = folder / "big-00001-of-00002.gguf"
    keep.write_bytes(gguf())
    big = next(entry for entry in list_models(folder, ScanCache()) if entry.path == parts[0])
    removed = remove_model(big, folder)
    assert removed.paths == tuple(parts[:2])
    assert removed.bytes_freed == 2 * len(gguf({"split.count": u32(3)}))
    assert list(folder.iterdir()) == [keep]


def test_link_goes_and_its_target_stays(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "blob"
    target.write_bytes(gguf())
    (folder / "linked.gguf").symlink_to(target)
    (folder / "dangling.gguf").symlink_to(tmp_path / "nowhere")
    for name in ("linked", "dangling"):
        assert remove_model(entry(folder, name), folder).bytes_freed == 0
    assert target.read_bytes() == gguf()
    assert list(folder.iterdir()) == []


def test_second_name_of_a_file_frees_nothing(folder: Path) -> None:
    (folder / "a.gguf").write_bytes(gguf())
    os.link(folder / "a.gguf", folder / "b.gguf")
    assert used(folder) == len(gguf())
    assert remove_model(entry(folder, "a"), folder).bytes_freed == 0
    assert remove_model(entry(folder, "b"), folder).bytes_freed == len(gguf())


def test_what_lies_behind_a_linked_folder_is_not_deleted(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "theirs.gguf").write_bytes(gguf())
    (folder / "link").symlink_to(elsewhere)
    with pytest.raises(RemovalError, match="outside the models folder") as caught:
        remove_model(entry(folder, "theirs"), folder)
    assert caught.value.kind == "not_ours"
    assert (elsewhere / "deep" / "theirs.gguf").exists()
    assert used(folder) == 0


def test_models_folder_may_itself_be_a_link(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    (folder / "a.gguf").write_bytes(gguf())
    assert remove_model(entry(link, "a"), link).bytes_freed == len(gguf())
    assert folder.exists()


def test_model_in_use_stays(folder: Path) -> None:
    parts = [folder / f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    for part in parts:
        part.write_bytes(gguf())
    big = entry(folder, "big")
    with pytest.raises(RemovalError, match="it is loaded") as caught:
        remove_model(big, folder, lambda path: "it is loaded" if path == parts[1] else None)
    assert caught.value.kind == "in_use"
    assert all(part.exists() for part in parts)


def test_link_to_a_model_in_use_stays(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "loaded.gguf"
    target.write_bytes(gguf())
    (folder / "linked.gguf").symlink_to(target)
    with pytest.raises(RemovalError, match="it is loaded"):
        remove_model(entry(folder, "linked"), folder, lambda p: "it is loaded" if p == target else None)


def test_imported_model_is_never_deleted(folder: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "sha256-0"
    theirs.write_bytes(gguf())
    [imported] = list_models(folder, ScanCache(), [Imported(theirs, "llama", "Ollama")])
    with pytest.raises(RemovalError, match="belongs to Ollama"):
        remove_model(imported, folder)
    assert theirs.exists()


def test_model_that_is_gone_or_elsewhere_is_an_error(folder: Path, tmp_path: Path) -> None:
    (folder / "a.gguf").write_bytes(gguf())
    gone = entry(folder, "a")
    (folder / "a.gguf").unlink()
    with pytest.raises(RemovalError, match="deleted already"):
        remove_model(gone, folder)
    outside = tmp_path / "a.gguf"
    outside.write_bytes(gguf())
    [other] = [entry for entry in list_models(tmp_path, ScanCache()) if entry.path == outside]
    with pytest.raises(RemovalError, match="outside"):
        remove_model(other, folder)
    assert outside.exists()


def test_refusal_of_the_system_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.gguf").write_bytes(gguf())
    victim = entry(folder, "a")

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RemovalError, match=r"^a\.gguf cannot be deleted: permission denied\.$"):
        remove_model(victim, folder)


def test_disk_use_counts_each_file_once_and_follows_no_link(folder: Path, tmp_path: Path) -> None:
    (folder / "a.gguf").write_bytes(bytes(100))
    os.link(folder / "a.gguf", folder / "again.gguf")
    (tmp_path / "outside.gguf").write_bytes(bytes(1000))
    (folder / "linked.gguf").symlink_to(tmp_path / "outside.gguf")
    (folder / "circle").symlink_to(folder)
    (folder / "notes.txt").write_bytes(bytes(7))
    downloads = folder / ".slipstream" / "downloads"
    downloads.mkdir(parents=True)
    (downloads / "b.gguf.part").write_bytes(bytes(30))
    use = disk_use(folder, downloads)
    assert (use.models, use.unfinished, use.other) == (100, 30, 7)
    assert use.free is not None
    assert use.free > 0
    assert disk_use(folder / "absent", downloads).free is not None
