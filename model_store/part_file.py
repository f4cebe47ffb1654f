"""An unfinished download on disk: bytes from the start of a file on, and which file they are of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from filelock import FileLock

from model_store.hub import HubFile

_SYNC_EVERY = 1 << 27  # bytes

PART, STATE, BAD, LOCK, NEW = ".part", ".state", ".bad", ".lock", ".new"


class _State(msgspec.Struct, frozen=True):
    """Whose bytes lie in the part: ``content`` is the SHA-256 or git blob id of the whole file,
    ``etag`` that of the server which sent them."""

    content: str
    size: int
    etag: str | None = None


class PartFile:
    """One file's part. How much is there is the part's length, so nothing else can say otherwise.

    Whoever writes holds ``lock``, across processes. All methods raise OSError.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.path = folder / f"{key}{PART}"
        self.lock = FileLock(folder / f"{key}{LOCK}", timeout=0, thread_local=False, mode=0o600)
        self.size = 0
        self.etag: str | None = None
        self._state_path = folder / f"{key}{STATE}"
        self._bad = folder / f"{key}{BAD}"
        self._content = ""
        self._wanted_size = 0
        self._descriptor = -1
        self._syncer: ThreadPoolExecutor | None = None
        self._sync: Future[None] | None = None
        self._sync_at = _SYNC_EVERY

    def open(self, file: HubFile) -> None:
        """Go on with what is there if it is of ``file``, else start from nothing."""
        self._content = file.sha256 or file.etag
        self._wanted_size = file.size
        state = self._read_state()
        # Windows would otherwise translate line ends.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self.path, flags, 0o644)
        self.size = os.lseek(self._descriptor, 0, os.SEEK_END)
        if state is not None and self.size <= file.size:
            self.etag = state.etag
        else:
            self.restart(None)

    def write(self, data: bytes) -> None:
        """Append ``data``. When the disk is full, what still fitted stays, and counts."""
        view = memoryview(data)
        while view:
            written = os.write(self._descriptor, view)
            self.size += written
            view = view[written:]
        if self.size >= self._sync_at:
            self._sync_behind()

    def restart(self, etag: str | None) -> None:
        """Start from nothing, with bytes that the server knows by ``etag``."""
        self._sync_at = _SYNC_EVERY
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.size = 0
        self.etag = etag
        # Whoever holds the lock is the only writer, so one name serves all new states.
        new = self._state_path.with_suffix(NEW)
        new.write_bytes(msgspec.json.encode(_State(self._content, self._wanted_size, etag)))
        new.replace(self._state_path)

    def close(self) -> None:
        if self._syncer is not None:
            self._syncer.shutdown()
            self._syncer = self._sync = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def quarantine(self) -> None:
        """Set aside what is there, as its content is wrong, where nothing goes on with it."""
        self.close()
        self.path.replace(self._bad)
        self._state_path.unlink(missing_ok=True)

    def discard_quarantined(self) -> int:
        """Delete what was set aside. Returns the bytes this frees."""
        try:
            size = self._bad.stat().st_size
            self._bad.unlink()
        except FileNotFoundError:
            return 0
        return size

    def finish(self, destination: Path) -> None:
        """Put the whole file in its place, at once and for good, over what is there."""
        self._check_sync()
        self._sync = None
        with self._starting_anew():
            os.fsync(self._descriptor)
        self.close()
        new = [folder for folder in destination.parents if not folder.exists()]
        destination.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(destination)
        for folder in dict.fromkeys((destination.parent, *(each.parent for each in new))):
            _sync_folder(folder)
        self.discard()

    def discard(self) -> None:
        """Delete all there is of it but the lock."""
        self.close()
        for path in (self.path, self._state_path, self._state_path.with_suffix(NEW), self._bad):
            path.unlink(missing_ok=True)

    def release(self, *, forget: bool) -> None:
        """Let go of the lock; ``forget``: of its file too, as nothing of the download is left."""
        if forget:
            # While it is held: whoever gets it by its old name notices, and asks anew. Windows does
            # not let us, and there it is deleted when it is let go.
            with suppress(OSError):
                Path(self.lock.lock_file).unlink(missing_ok=True)
        self.lock.release()

    def _sync_behind(self) -> None:
        """Let the disk begin with what is there, so that little is left to wait for in the end."""
        self._sync_at = self.size + _SYNC_EVERY
        if self._syncer is None:
            self._syncer = ThreadPoolExecutor(1, f"sync {self.path.name}")
        if self._sync is not None and not self._sync.done():
            return
        self._check_sync()
        self._sync = self._syncer.submit(os.fsync, self._descriptor)

    def _check_sync(self) -> None:
        """Wait for the last one. The system tells only once that something could not be written."""
        if self._sync is not None:
            with self._starting_anew():
                self._sync.result()

    @contextmanager
    def _starting_anew(self) -> Iterator[None]:
        """What did not reach the disk may still be read from memory, and must not be gone on with."""
        try:
            yield
        except OSError:
            self._sync = None
            self.restart(None)
            raise

    def _read_state(self) -> _State | None:
        """The state, if it is about the wanted content."""
        try:
            state = msgspec.json.decode(self._state_path.read_bytes(), type=_State)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return state if (state.content, state.size) == (self._content, self._wanted_size) else None


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
