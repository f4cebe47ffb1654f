"""Remembers on disk what was read from model files, so that listing them again opens none."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from model_store.file_key import file_key
from model_store.files import write_atomically
from model_store.scan import Scan, scan_file

log = logging.getLogger(__name__)

_VERSION = 1  # to be raised when a Scan says more, or something else, about the same file
_MAX_RECORDS = 10_000
_MAX_FILE = 32 << 20  # bytes


class _State(msgspec.Struct, frozen=True, array_like=True):
    """A file as it lies there now.

    ctime is in it because a change of permissions or a copied-back mtime shows only there.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class _Record(msgspec.Struct, frozen=True, array_like=True):
    state: _State
    key: str  # hash of the file's header and its end
    scan: Scan


class _Content(msgspec.Struct, array_like=True):
    version: int
    records: dict[bytes, _Record]  # by path; bytes, as a path need not be text


class ScanCache:
    """Scans by path and state of the file, and by its size, mtime and header's hash.

    The second finds again what was moved, renamed or copied. One object may be used by several
    threads, and its file by several processes: the last to save wins.
    """

    def __init__(self, file: Path | None = None, scan: Callable[[Path], Scan] = scan_file) -> None:
        """``file`` is read at once; None keeps the cache in memory. ``scan`` reads a file."""
        self._file = file
        self._scan = scan
        self._lock = threading.Lock()
        self._records = _load(file) if file is not None else {}
        self._by_content = {_content(record.state, record.key): record for record in self._records.values()}
        self._seen: set[bytes] = set()
        self._changed = False

    def known(self, path: Path, status: os.stat_result) -> Scan | None:
        """What was read from ``path`` while it was as ``status`` says; opens no file."""
        with self._lock:
            record = self._records.get(_name(path))
            if record is None or record.state != _state(status):
                return None
            self._seen.add(_name(path))
            return record.scan

    def scan(self, path: Path, status: os.stat_result) -> Scan:
        """What the file is, from the cache where that is possible. Raises OSError, which is not kept."""
        known = self.known(path, status)
        if known is not None:
            return known
        state = _state(status)
        # Opening a FIFO would wait for a writer; reading its header does not.
        key = file_key(path) if stat.S_ISREG(status.st_mode) else ""
        with self._lock:
            moved = self._by_content.get(_content(state, key)) if key else None
        scan = moved.scan if moved is not None else self._scan(path)
        with self._lock:
            record = self._records[_name(path)] = _Record(state, key, scan)
            self._by_content[_content(state, key)] = record
            self._seen.add(_name(path))
            self._changed = True
        return scan

    def save(self) -> None:
        """Write the file where something is new. One that cannot be written costs time, nothing else."""
        with self._lock:
            if self._file is None or not self._changed:
                return
            if len(self._records) > _MAX_RECORDS:
                self._records = {name: self._records[name] for name in self._seen if name in self._records}
            content = msgspec.msgpack.encode(_Content(_VERSION, self._records))
            self._changed = False
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, content)
        except OSError as error:
            log.info("the cache of model headers cannot be written: %s", error)


def _load(file: Path) -> dict[bytes, _Record]:
    try:
        if file.stat().st_size > _MAX_FILE:
            return {}
        content = msgspec.msgpack.decode(file.read_bytes(), type=_Content)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        log.info("the cache of model headers cannot be read: %s", error)
        return {}
    return content.records if content.version == _VERSION else {}


def _name(path: Path) -> bytes:
    return os.fsencode(path.absolute())


def _state(status: os.stat_result) -> _State:
    return _State(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _content(state: _State, key: str) -> tuple[int, int, str]:
    return state.size, state.mtime_ns, key
