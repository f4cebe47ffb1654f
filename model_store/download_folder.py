"""The hidden folder of unfinished downloads: records of jobs, parts of files, and nothing left over."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec
from filelock import FileLock, Timeout

from model_store.download_job import FileRecord, JobRecord
from model_store.files import write_atomically
from model_store.local_path import HIDDEN, JOB, same_place
from model_store.part_file import BAD, LOCK, NEW, PART, STATE, PartFile

log = logging.getLogger(__name__)
_OWN_SUFFIXES = frozenset({PART, STATE, BAD, LOCK, NEW, JOB})
_YOUNG_S = 60.0  # seconds in which another program may be about to use what it just made


class DownloadFolder:
    """Shared by all programs on this models folder: who holds a job's lock is the one that runs it."""

    def __init__(self, models: Path) -> None:
        self.path = models / HIDDEN / "downloads"
        self._manifests = models / HIDDEN / "manifests"

    def new_id(self) -> str:
        """Later ids sort behind earlier ones."""
        return f"{time.time_ns():016x}-{secrets.token_hex(4)}"

    def job_lock(self, job_id: str) -> FileLock:
        self.path.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path / f"{job_id}{LOCK}", timeout=0, thread_local=False, mode=0o600)

    def part(self, record: FileRecord) -> PartFile:
        self.path.mkdir(parents=True, exist_ok=True)
        return PartFile(self.path, part_key(record))

    def part_size(self, record: FileRecord) -> int:
        """Bytes that are there of this file already."""
        try:
            return (self.path / f"{part_key(record)}{PART}").stat().st_size
        except OSError:
            return 0

    def write(self, record: JobRecord) -> None:
        """Raises OSError. Only the holder of the job's lock may."""
        write_atomically(self.path / f"{record.id}{JOB}", msgspec.json.encode(record))

    def read(self, job_id: str) -> JobRecord | None:
        """The record of a job; None for one that has ended, and for a damaged one, which is nobody's."""
        path = self.path / f"{job_id}{JOB}"
        try:
            return msgspec.json.decode(path.read_bytes(), type=JobRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            log.warning("the download %s cannot be read: %s", path, error)
            return None

    def records(self) -> list[JobRecord]:
        """Of all programs' jobs, the oldest first."""
        found = (self.read(path.stem) for path in sorted(self.path.glob(f"*{JOB}")))
        return [record for record in found if record is not None]

    def has(self, job_id: str) -> bool:
        return (self.path / f"{job_id}{JOB}").exists()

    def forget(self, job_id: str) -> None:
        """Delete the record of a job. Raises OSError."""
        (self.path / f"{job_id}{JOB}").unlink(missing_ok=True)

    def discard_parts(self, records: tuple[FileRecord, ...]) -> None:
        """Delete what there is of these files, unless another job wants it or a program writes it.

        Raises OSError.
        """
        wanted = {part_key(file) for job in self.records() for file in job.files}
        for record in records:
            key = part_key(record)
            if key not in wanted:
                self._discard(key)

    def abandon(self, record: JobRecord) -> bool:
        """Delete a job and what has come of it; False when a program is at work on it. Raises OSError."""
        with _held(self.job_lock(record.id)) as held:
            if held:
                self.forget(record.id)
                self.discard_parts(record.files)
        return held

    def is_run(self, job_id: str) -> bool:
        """Whether a program is at work on the job, or will be when its turn comes."""
        try:
            with _held(self.job_lock(job_id)) as held:
                return not held
        except OSError:  # a folder that cannot be written, say
            return False

    def sweep(self, *, older_than: float = _YOUNG_S) -> int:
        """Delete what belongs to no job, unless it is younger than so many seconds. Returns bytes freed.

        Something is left when a program is killed at the wrong moment. Raises OSError.
        """
        freed = 0
        for path, size in self.leftovers(older_than=older_than):
            key = path.name.rpartition(".")[0]
            with _held(FileLock(self.path / f"{key}{LOCK}", timeout=0, mode=0o600)) as held:
                if held:
                    if path.suffix != LOCK:  # which Windows keeps while it is held; it goes with that
                        path.unlink(missing_ok=True)
                    freed += size
        return freed

    def leftovers(self, *, older_than: float = _YOUNG_S) -> list[tuple[Path, int]]:
        """Files here that belong to no job, with their sizes."""
        jobs = self.records()
        known = {job.id for job in jobs} | {part_key(file) for job in jobs for file in job.files}
        found = []
        now = time.time()
        half_written = self._manifests.rglob(".*")
        for path in (*self.path.glob("*"), *half_written):
            if path.suffix in _OWN_SUFFIXES and path.stem in known:
                continue
            with suppress(OSError):
                status = path.stat()
                if now - status.st_mtime >= older_than and path.is_file():
                    found.append((path, status.st_size))
        return found

    def _discard(self, key: str) -> None:
        part = PartFile(self.path, key)
        try:
            part.lock.acquire()
        except Timeout:
            return
        try:
            part.discard()
        finally:
            part.release(forget=True)


def part_key(record: FileRecord) -> str:
    """The name of a file's part: the same for all jobs that bring it to the same place."""
    digits = hashlib.sha256(
        same_place(PurePosixPath(record.place)).encode("utf-8", "surrogatepass")
    ).hexdigest()[:16]
    name = PurePosixPath(record.place).stem.encode()[:60].decode(errors="ignore").replace(".", "_")
    return f"{name}-{digits}"


@contextmanager
def _held(lock: FileLock) -> Iterator[bool]:
    """Whether nobody else holds the lock; while this lasts nobody does. Its file is gone afterwards."""
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
