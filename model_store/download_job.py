"""A download as the person sees it: one job of one or more files, how far it is, and its record on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from model_store.download import DownloadErrorKind
from model_store.hub import HubFile

JobState = Literal["waiting", "active", "paused", "failed", "complete", "cancelled"]
RecordState = Literal["running", "paused", "failed"]
FilePhase = Literal[
    "waiting",
    "elsewhere",  # another program downloads this very file
    "downloading",
    "retrying",
    "checking",
    "paused",
    "failed",
    "complete",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job stopped, as in DownloadError."""

    kind: DownloadErrorKind
    message: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class FileProgress:
    """``received`` of ``file.size`` bytes are on disk; ``path`` is where the file is going to be."""

    file: HubFile
    path: Path
    phase: FilePhase
    received: int


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job at one moment. ``rate`` is in bytes a second, ``seconds_left`` None while nobody knows.

    ``note`` says what is being retried and why; ``error`` why the job has failed. ``ours`` is False for a
    job that another program runs.
    """

    id: str
    title: str
    state: JobState
    files: tuple[FileProgress, ...]
    rate: float = 0.0
    note: str | None = None
    error: JobError | None = None
    ours: bool = True

    @property
    def received(self) -> int:
        return sum(file.received for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.file.size for file in self.files)

    @property
    def seconds_left(self) -> float | None:
        if self.state != "active" or self.rate <= 0:
            return None
        return (self.size - self.received) / self.rate


class FileRecord(msgspec.Struct, frozen=True):
    """``place`` is the path relative to the models folder."""

    repo: str
    revision: str
    path: str
    size: int
    sha256: str | None
    etag: str
    place: str

    @property
    def file(self) -> HubFile:
        return HubFile(self.repo, self.revision, self.path, self.size, self.sha256, self.etag)


class JobRecord(msgspec.Struct, frozen=True):
    """What outlives the program. A complete or cancelled job has no record."""

    id: str
    title: str
    files: tuple[FileRecord, ...]
    state: RecordState = "running"
    error_kind: DownloadErrorKind | None = None
    error_message: str = ""
    error_link: str | None = None

    @property
    def error(self) -> JobError | None:
        if self.error_kind is None:
            return None
        return JobError(self.error_kind, self.error_message, self.error_link)


def file_record(file: HubFile, place: str) -> FileRecord:
    return FileRecord(file.repo, file.revision, file.path, file.size, file.sha256, file.etag, place)
