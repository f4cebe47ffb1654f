"""A part on disk: what the system could not write is never taken for written."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store import part_file
from model_store.hub import HubFile
from model_store.part_file import PartFile

CONTENT = b"0123456789" * 100
FILE = HubFile("o/m", "c" * 40, "x.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "e")


@pytest.fixture
def part(tmp_path: Path) -> Iterator[PartFile]:
    folder = tmp_path / "downloads"
    folder.mkdir()
    part = PartFile(folder, "x-0")
    part.open(FILE)
    yield part
    part.close()


class Disk:
    """Stands before os.fsync: refuses while ``broken``, and notes which folders are synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = False
        self.synced: list[Path] = []
        self._fsync = os.fsync
        monkeypatch.setattr(part_file.os, "fsync", self.fsync)

    def fsync(self, descriptor: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.synced.append(Path(f"/proc/self/fd/{descriptor}").resolve())
        self._fsync(descriptor)


def names(part: PartFile) -> list[str]:
    return sorted(path.name for path in part.path.parent.iterdir())


def test_failed_write_in_the_background_is_not_lost_on_the_way(
    part: PartFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells of it once, to whoever asks first."""
    monkeypatch.setattr(part_file, "_SYNC_EVERY", 100)
    part.restart(None)
    disk = Disk(monkeypatch)
    disk.broken = True
    part.write(CONTENT)
    assert part._sync is not None
    assert part._sync.exception(20) is not None
    disk.broken = False
    with pytest.raises(OSError, match="Input/output"):
        part.finish(tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()
    assert part.size == part.path.stat().st_size == 0
    part.write(CONTENT)
    part.finish(tmp_path / "x.gguf")
    assert (tmp_path / "x.gguf").read_bytes() == CONTENT
    assert names(part) == []


def test_failed_write_stops_the_next_one(part: PartFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_file, "_SYNC_EVERY", 100)
    part.restart(None)
    disk = Disk(monkeypatch)
    disk.broken = True
    part.write(CONTENT[:200])
    assert part._sync is not None
    assert part._sync.exception(20) is not None
    with pytest.raises(OSError, match="Input/output"):
        part.write(CONTENT[200:400])
    assert part.size == part.path.stat().st_size == 0


def test_refused_write_in_the_end_starts_anew(
    part: PartFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part.write(CONTENT)
    disk = Disk(monkeypatch)
    disk.broken = True
    with pytest.raises(OSError, match="Input/output"):
        part.finish(tmp_path / "x.gguf")
    part.close()
    part.open(FILE)
    assert part.size == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux which files are open")
def test_new_folders_last_through_a_power_cut(
    part: PartFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part.write(CONTENT)
    disk = Disk(monkeypatch)
    part.finish(tmp_path / "owner" / "name" / "x.gguf")
    folders = [path for path in disk.synced if path.is_dir()]
    assert folders == [tmp_path / "owner" / "name", tmp_path / "owner", tmp_path]
    again = PartFile(part.path.parent, "y-0")
    again.open(FILE)
    again.write(CONTENT)
    disk.synced.clear()
    again.finish(tmp_path / "owner" / "name" / "y.gguf")
    assert [path for path in disk.synced if path.is_dir()] == [tmp_path / "owner" / "name"]
