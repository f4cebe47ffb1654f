"""Hashes a file while it is being written: a thread reads behind the writer, from the page cache."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from model_store.stop_signal import StopSignal

_PIECE = 1 << 20


class FollowingHash:
    """The SHA-256 of a file's first bytes, as many as the writer says are there, and its git blob id.

    Reading the file costs little next to hashing, and makes a resumed download the same as a new one.
    ``close`` must be called.
    """

    def __init__(self, path: Path, size: int, *, git: bool) -> None:
        """``size``: of the whole file; ``git``: whether the blob id is wanted. Raises OSError."""
        self._file = path.open("rb", buffering=0)
        self._size = size
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if git else None
        self._written = 0
        self._hashed = 0
        self._closed = False
        self._error: OSError | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._follow, name=f"hash {path.name}", daemon=True)
        self._thread.start()

    def advance(self, written: int) -> None:
        """The first ``written`` bytes are there."""
        # A step at a time: waking the thread for each packet would cost more than hashing it.
        if written - self._written >= _PIECE or written >= self._size:
            with self._changed:
                self._written = written
                self._changed.notify_all()

    def result(self, stop: StopSignal) -> tuple[str, str | None]:
        """SHA-256 and git blob id of the whole file, in hexadecimal, once it is read to its end.

        Raises OSError, and Stopped.
        """
        with self._changed:
            while self._hashed < self._size and self._error is None:
                stop.check()
                self._changed.wait(0.1)
            if self._error is not None:
                raise self._error
        return self._sha256.hexdigest(), self._git.hexdigest() if self._git else None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._file.close()

    def _follow(self) -> None:
        buffer = memoryview(bytearray(_PIECE))
        try:
            while self._hashed < self._size:
                with self._changed:
                    while self._written <= self._hashed and not self._closed:
                        self._changed.wait()
                    if self._closed:
                        return
                    there = self._written - self._hashed
                count = self._file.readinto(buffer[: min(there, _PIECE)]) or 0
                if not count:
                    raise OSError("the file became shorter while it was read")
                self._sha256.update(buffer[:count])
                if self._git is not None:
                    self._git.update(buffer[:count])
                with self._changed:
                    self._hashed += count
                    self._changed.notify_all()
        except OSError as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()


def hash_file(path: Path, stop: StopSignal, *, git: bool = False) -> tuple[str, str | None]:
    """SHA-256 and, where asked for, git blob id of a file. Raises OSError, and Stopped."""
    size = path.stat().st_size
    following = FollowingHash(path, size, git=git)
    try:
        following.advance(size)
        return following.result(stop)
    finally:
        following.close()
