"""Keeps downloads from filling a disk: room is claimed before they start and watched while they run."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

RESERVE = 1 << 30
"""Bytes that are left free for everything else on the disk."""


class DiskFullError(Exception):
    """There is no room; the text names the numbers and what to do."""


def free_bytes(folder: Path) -> int:
    """Bytes that this person may still write on the disk of ``folder``. Raises OSError."""
    return shutil.disk_usage(folder).free


class DiskSpace:
    """The free space of one disk, shared by downloads in several threads.

    Downloads of other programs are not known: what they take is noticed while ours run.
    """

    def __init__(
        self, folder: Path, reserve: int = RESERVE, free: Callable[[Path], int] = free_bytes
    ) -> None:
        self._folder = folder
        self._reserve = reserve
        self._free = free
        self._lock = threading.Lock()
        self._claims: dict[str, int] = {}

    def claim(self, name: str, needed: int) -> None:
        """Keep ``needed`` bytes for the download called ``name``, which may have kept some before.

        Raises DiskFullError, and OSError when the disk cannot be asked.
        """
        with self._lock:
            others = sum(claimed for other, claimed in self._claims.items() if other != name)
            free = self._free(self._folder)
            if needed and needed + others + self._reserve > free:
                others_take = f", {_size(others)} of it for other downloads" if others else ""
                raise DiskFullError(
                    f"Not enough room on the disk: this needs {_size(needed)} more; {_size(free)} are free"
                    f"{others_take}, and {_size(self._reserve)} stay free. "
                    "Delete something, or choose another models folder, then resume."
                )
            self._claims[name] = needed

    def watch(self, name: str, needed: int) -> None:
        """The download called ``name`` now needs ``needed`` more. Raises DiskFullError when what is free
        has shrunk to the reserve, and OSError."""
        with self._lock:
            self._claims[name] = needed
        free = self._free(self._folder)
        if free < self._reserve:
            raise DiskFullError(
                f"The disk is filling up: {_size(free)} are free, and {_size(self._reserve)} stay free. "
                "Delete something, then resume."
            )

    def release(self, name: str) -> None:
        with self._lock:
            self._claims.pop(name, None)


def _size(count: int) -> str:
    """Bytes for a person, in decimal units as file managers and the Hub count."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
