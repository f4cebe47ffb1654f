"""What Slipstream keeps on this machine, and what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from app import paths
from model_store.disk_use import disk_use
from model_store.fit import shown_bytes
from model_store.local_path import HIDDEN


class StorageUse(NamedTuple):
    """Bytes. ``free`` is what the disk of the models has left, None where nobody knows."""

    models: int
    unfinished: int
    chats: int
    learned: int
    free: int | None

    @property
    def words(self) -> str:
        parts = [f"models {shown_bytes(self.models)}"]
        if self.unfinished:
            parts.append(f"unfinished downloads {shown_bytes(self.unfinished)}")
        parts.append(f"chats {shown_bytes(self.chats)}")
        parts.append(f"learned from answers {shown_bytes(self.learned)}")
        text = ", ".join(parts)
        free = f"; {shown_bytes(self.free)} are free" if self.free is not None else ""
        return f"{text[0].upper()}{text[1:]}{free}."


def storage_use(models: Path) -> StorageUse:
    """Reads folders, so it may take a while. Never raises for what it finds there."""
    use = disk_use(models, models / HIDDEN / "downloads")
    answers = paths.answers_dir()
    chats = sum(_size(path) for path in paths.data_dir().glob("chats*") if path.is_file())
    learned = sum(_size(path) for path in answers.glob("*") if path.is_file()) if answers.is_dir() else 0
    return StorageUse(use.models, use.unfinished, chats, learned, use.free)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
