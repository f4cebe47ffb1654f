"""What the models folder takes on its disk."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes: of models, of downloads that are not finished, of all else in the folder, and free on its
    disk (None where the system does not say)."""

    models: int
    unfinished: int
    other: int
    free: int | None


def disk_use(folder: Path, unfinished: Path) -> DiskUse:
    """Count the files below ``folder``; those below ``unfinished``, a folder in it, are parts of downloads.

    Links are not followed, and a file with several names counts once. Never raises for what it finds.
    """
    counted: set[tuple[int, int]] = set()
    models = parts = other = 0
    for path, status in _files(folder):
        identity = (status.st_dev, status.st_ino)
        if status.st_ino and identity in counted:
            continue
        counted.add(identity)
        if path.is_relative_to(unfinished):
            parts += status.st_size
        elif path.suffix.lower() == ".gguf":
            models += status.st_size
        else:
            other += status.st_size
    return DiskUse(models, parts, other, _free(folder))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as listing:
                for child in listing:
                    try:
                        status = child.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(Path(child.path))
                    elif stat.S_ISREG(status.st_mode):
                        # On Windows a listing knows neither inodes nor names of a file.
                        yield Path(child.path), status if status.st_ino else os.lstat(child.path)
        except OSError:
            continue


def _free(folder: Path) -> int | None:
    for place in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
