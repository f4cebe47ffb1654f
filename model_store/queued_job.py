"""Jobs in a program's queue: what it knows of them besides their records on disk."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from model_store.download_folder import DownloadFolder, part_key
from model_store.download_job import (
    FilePhase,
    FileProgress,
    FileRecord,
    JobError,
    JobProgress,
    JobRecord,
    JobState,
)
from model_store.manifest import Manifests
from model_store.stop_signal import StopSignal
from model_store.transfer_rate import TransferRate


class QueuedFile:
    """One file of a job in this program."""

    def __init__(self, record: FileRecord, received: int) -> None:
        self.record = record
        self.key = part_key(record)
        self.phase: FilePhase = "waiting"
        self.received = received
        self.rate = TransferRate()
        self.stop = StopSignal()
        self.running = False  # a thread is at work on it
        self.note: str | None = None
        self.counted_at = 0.0


class QueuedJob:
    """A job that this program runs: it holds the job's lock. The queue's lock guards it."""

    def __init__(self, record: JobRecord, lock: FileLock, files: list[QueuedFile]) -> None:
        self.record = record
        self.lock = lock
        self.files = files
        self.cancelled = False
        self.dismissed = False
        self.error: JobError | None = None
        self.told_at = 0.0

    @property
    def state(self) -> JobState:
        if self.cancelled:
            return "cancelled"
        if all(file.phase == "complete" for file in self.files):
            return "complete"
        if self.record.state == "paused":
            return "paused"
        if any(file.running for file in self.files):
            return "active"
        return "failed" if self.record.state == "failed" else "waiting"

    def progress(self, models: Path, now: float) -> JobProgress:
        """How far it is; ``models`` is the folder that its files go to."""
        running = [file for file in self.files if file.running]
        state = self.state
        return JobProgress(
            id=self.record.id,
            title=self.record.title,
            state=state,
            files=tuple(
                FileProgress(file.record.file, models / file.record.place, file.phase, file.received)
                for file in self.files
            ),
            rate=sum(file.rate.rate(now) for file in running) if state == "active" else 0.0,
            note=next((file.note for file in running if file.note), None),
            error=self.error,
        )


def job_elsewhere(
    record: JobRecord, models: Path, folder: DownloadFolder, manifests: Manifests
) -> JobProgress:
    """Of a job that is not ours: what its record and its parts tell."""
    state: JobState
    phase: FilePhase
    if record.state != "running":
        state = phase = record.state
    elif folder.is_run(record.id):
        state, phase = "active", "elsewhere"
    else:
        state = phase = "waiting"
    files = []
    for file in record.files:
        path = models / file.place
        manifest = manifests.read(path)
        done = manifest is not None and manifest.is_of(file.file) and manifest.revision == file.revision
        received = file.size if done else min(file.size, folder.part_size(file))
        files.append(FileProgress(file.file, path, "complete" if done else phase, received))
    return JobProgress(record.id, record.title, state, tuple(files), error=record.error, ours=False)
