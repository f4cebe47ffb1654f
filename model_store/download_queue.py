"""Runs downloads, two files at once: each is one job, which can be paused and survives the program."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from filelock import FileLock, Timeout

from model_store.disk_space import RESERVE, DiskSpace
from model_store.download import (
    Download,
    DownloadError,
    Phase,
    RetryPolicy,
    Tools,
    disk_error,
    open_client,
)
from model_store.download_folder import DownloadFolder
from model_store.download_job import FileRecord, JobError, JobProgress, JobRecord, RecordState
from model_store.download_places import DownloadPlaces
from model_store.hub import Hub, HubFile
from model_store.manifest import Manifests
from model_store.part_file import PartFile
from model_store.queued_job import QueuedFile, QueuedJob, job_elsewhere
from model_store.stop_signal import Stopped, StopSignal
from model_store.transfer_rate import TransferRate

log = logging.getLogger(__name__)

AT_ONCE = 2
_EVENT_EVERY_S = 0.1
_ELSEWHERE_S = 0.5  # between looks at whether another program has let go of a file
_GLANCE_S = 0.2  # for which another program may hold a job's lock to see whether it is run

OnProgress = Callable[[JobProgress], None]


class DownloadQueue:
    """The jobs of this program on one models folder. Every method may be called from any thread.

    ``on_progress`` is told of each change, and ten times a second while bytes come in, from threads of
    the queue, one call after another: it must not wait for a thread that asks the queue. Nothing runs
    before ``start``; ``close`` must be called, and leaves what is unfinished for the next program.
    """

    def __init__(
        self,
        models: Path,
        hub: Hub,
        on_progress: OnProgress,
        *,
        at_once: int = AT_ONCE,
        reserve: int = RESERVE,
        policy: RetryPolicy = RetryPolicy(),
    ) -> None:
        self._models = models
        self._on_progress = on_progress
        self._at_once = at_once
        self._hub = hub
        self._policy = policy
        self._disk = DiskSpace(models, reserve)
        self._folder = DownloadFolder(models)
        self._manifests = Manifests(models)
        self._places = DownloadPlaces(models, self._manifests)
        self._tools: Tools | None = None  # while it is started
        self._lock = threading.RLock()
        self._telling = threading.RLock()
        self._jobs: dict[str, QueuedJob] = {}
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def start(self) -> None:
        """Take over the jobs that no running program has, and go on with those that were running.

        Raises OSError. Calling it again takes over what other programs have left since.
        """
        self._models.mkdir(parents=True, exist_ok=True)
        self._folder.sweep()
        with self._lock:
            if self._tools is None:
                client = open_client(self._policy)
                self._tools = Tools(self._hub, client, self._manifests, self._disk, self._policy)
            for record in self._folder.records():
                lock = self._folder.job_lock(record.id)
                if record.id in self._jobs or not _take(lock, _GLANCE_S):
                    continue
                # Whoever had the lock until now may have changed it.
                current = self._folder.read(record.id)
                if current is None:
                    if self._folder.has(record.id):
                        lock.release()
                    else:  # it has just ended
                        self._let_go(record.id, lock)
                    continue
                job = QueuedJob(current, lock, [self._file(file) for file in current.files])
                job.error = current.error
                if current.state != "running":
                    for file in job.files:
                        file.phase = current.state
                self._jobs[record.id] = job
            self._start_waiting()
            jobs = list(self._jobs.values())
        self._tell(*jobs)

    def add(self, files: Sequence[HubFile], title: str = "") -> JobProgress:
        """Download ``files`` as one job, into the models folder. A second request for the same files is
        the first one's job, which goes on if it was paused.

        Raises DownloadError (unsafe_name) and OSError.
        """
        if not files:
            raise ValueError("a job needs a file")
        names = [(file.repo, file.path) for file in files]
        with self._lock:
            same = [
                job
                for job in self._jobs.values()
                if job.state not in ("cancelled", "complete")
                and [(file.record.repo, file.record.path) for file in job.files] == names
            ]
            current = next(
                (job for job in same if [file.record.file for file in job.files] == list(files)), None
            )
            job = current or self._new_job(files, title)
            older = [other.record.id for other in same if other is not job]
            progress = self._view(job)
        self.resume(job.record.id)
        for job_id in older:  # of another revision
            self.cancel(job_id)
        self._tell(job)
        return progress

    def jobs(self) -> list[JobProgress]:
        """All jobs, the oldest first: ours, also those that have ended, and other programs'."""
        records = self._folder.records()
        with self._lock:
            ours = {job_id: self._view(job) for job_id, job in self._jobs.items() if not job.dismissed}
            known = set(self._jobs)
        others = {
            record.id: job_elsewhere(record, self._models, self._folder, self._manifests)
            for record in records
            if record.id not in known
        }
        return [job for _, job in sorted((ours | others).items())]

    def pause(self, job_id: str) -> None:
        """Stop the job, and keep what has come. Nothing happens to one that has ended."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.state not in ("waiting", "active"):
                return
            self._set_state(job, "paused")
            for file in job.files:
                if file.phase != "complete":
                    file.phase = "paused"
                    file.stop.stop()
        self._tell(job)

    def resume(self, job_id: str) -> None:
        """Go on with a paused or failed job. Nothing happens to another one."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.cancelled or job.record.state == "running":
                return
            self._set_state(job, "running")
            for file in job.files:
                if file.phase in ("paused", "failed"):
                    file.phase = "waiting"
            self._start_waiting()
        self._tell(job)

    def cancel(self, job_id: str) -> None:
        """Stop the job and delete what has come of its unfinished files."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.state in ("cancelled", "complete"):
                return
            job.cancelled = True
            self._forget(job)  # no program is to take it over
            for file in job.files:
                if file.phase != "complete":
                    file.phase = "cancelled"
                    file.stop.stop()
            self._clean_up(job)
        self._tell(job)

    def dismiss(self, job_id: str) -> None:
        """Forget a job that has ended; a failed one is cancelled."""
        self.cancel(job_id)
        with self._lock:
            job = self._jobs.get(job_id)
            if job is not None:
                job.dismissed = True
                self._drop(job)

    def leftovers(self) -> list[tuple[Path, int]]:
        """Files of unfinished downloads that belong to no job, with their sizes."""
        return self._folder.leftovers()

    def close(self) -> None:
        """Stop everything, and leave it for the next program. Returns when no thread is left, so it must not
        be called by whoever is told of progress."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                for file in job.files:
                    file.stop.stop()
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()
        with self._lock:
            for job in self._jobs.values():
                if job.lock.is_locked:
                    job.lock.release()
        if self._tools is not None:
            self._tools.client.close()

    # Under the lock

    def _new_job(self, files: Sequence[HubFile], title: str) -> QueuedJob:
        """Raises DownloadError and OSError."""
        self._models.mkdir(parents=True, exist_ok=True)
        records = self._places.plan(files, self._folder.records())
        record = JobRecord(self._folder.new_id(), title or files[0].name, records)
        lock = self._folder.job_lock(record.id)
        lock.acquire()
        try:
            self._folder.write(record)
        except BaseException:
            self._let_go(record.id, lock)
            raise
        job = QueuedJob(record, lock, [self._file(file) for file in records])
        self._jobs[record.id] = job
        self._start_waiting()
        return job

    def _file(self, record: FileRecord) -> QueuedFile:
        return QueuedFile(record, min(record.size, self._folder.part_size(record)))

    def _set_state(self, job: QueuedJob, state: RecordState, error: JobError | None = None) -> None:
        job.error = error
        job.record = msgspec.structs.replace(
            job.record,
            state=state,
            error_kind=error.kind if error else None,
            error_message=error.message if error else "",
            error_link=error.link if error else None,
        )
        try:
            self._folder.write(job.record)
        except OSError as error_:
            # The disk is full, say. The job goes on as it should; only the next program will not know.
            log.warning("the state of a download cannot be written: %s", error_)

    def _start_waiting(self) -> None:
        """Give free places to files that wait, in the order of their jobs."""
        if self._closed or self._tools is None:
            return
        running = [file for job in self._jobs.values() for file in job.files if file.running]
        places = self._at_once - sum(file.phase != "elsewhere" for file in running)
        keys = {file.key for file in running}
        for job in self._jobs.values():
            for file in job.files:
                if places > 0 and file.phase == "waiting" and not file.running and file.key not in keys:
                    file.running = True
                    file.stop = StopSignal()
                    file.rate = TransferRate()
                    file.phase = "downloading"
                    keys.add(file.key)
                    places -= 1
                    thread = threading.Thread(
                        target=self._work, args=(job, file, self._tools), name=f"download {file.key}"
                    )
                    self._threads.add(thread)
                    thread.start()

    def _clean_up(self, job: QueuedJob) -> None:
        """Delete what a job that has ended leaves, once none of its threads is left."""
        if job.state not in ("cancelled", "complete") or any(file.running for file in job.files):
            return
        self._forget(job)
        if job.cancelled:
            unfinished = tuple(file.record for file in job.files if file.phase != "complete")
            try:
                self._folder.discard_parts(unfinished)
            except OSError as error:
                log.warning("the rest of a download cannot be deleted: %s", error)
        self._let_go(job.record.id, job.lock)
        self._drop(job)

    def _drop(self, job: QueuedJob) -> None:
        """Forget a dismissed job, unless a thread is still at work on it."""
        if job.dismissed and not any(file.running for file in job.files):
            self._jobs.pop(job.record.id, None)

    def _forget(self, job: QueuedJob) -> None:
        """Delete the record of a job that has ended."""
        try:
            self._folder.forget(job.record.id)
        except OSError as error:
            log.warning("the record of a download cannot be deleted: %s", error)

    def _let_go(self, job_id: str, lock: FileLock) -> None:
        """Release a job's lock for good."""
        try:
            self._folder.forget(job_id)
            Path(lock.lock_file).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the rest of a download cannot be deleted: %s", error)
        lock.release()

    # In the threads of files

    def _work(self, job: QueuedJob, file: QueuedFile, tools: Tools) -> None:
        try:
            end = self._run(job, file, tools)
        except BaseException as unexpected:
            log.exception("a download failed in a way that it should not")
            end = JobError("internal", f"{file.record.file.name}: {type(unexpected).__name__}.")
        # All of it at once: whoever sees a job complete finds nothing left of its download.
        with self._lock:
            file.running = False
            self._threads.discard(threading.current_thread())
            if end == "complete":
                file.phase = "complete"
                file.received = file.record.size
                file.note = None
            elif end != "stopped" and not job.cancelled and job.record.state != "paused":
                file.phase = "failed"
                self._set_state(job, "failed", end)
            elif file.phase not in ("paused", "cancelled"):
                file.phase = "waiting"
            self._clean_up(job)
            self._start_waiting()
        self._tell(job)

    def _run(
        self, job: QueuedJob, file: QueuedFile, tools: Tools
    ) -> Literal["complete", "stopped"] | JobError:
        """Download the file, as far as it goes. "stopped" also means that another program has had it."""
        part = self._folder.part(file.record)
        stop = file.stop
        try:
            if not _take(part.lock):
                self._wait_for_other(job, file, part, stop)
                return "stopped"
            done = False
            try:
                self._download(job, file, tools, part, stop)
                done = True
            finally:
                part.release(forget=done)
        except Stopped:
            return "stopped"
        except DownloadError as error:
            return JobError(error.kind, error.message, error.link)
        except OSError as error:
            refused = disk_error(error, part.path)
            return JobError(refused.kind, refused.message)
        return "complete"

    def _download(
        self, job: QueuedJob, file: QueuedFile, tools: Tools, part: PartFile, stop: StopSignal
    ) -> None:
        """Raises DownloadError and Stopped."""

        def report(phase: Phase, received: int, note: str | None) -> None:
            now = time.monotonic()
            passing = phase == file.phase == "downloading"
            if passing and now - file.counted_at < _EVENT_EVERY_S:
                return
            with self._lock:
                if stop.stopped:
                    return
                file.phase = phase
                file.received = received
                file.rate.add(received, now)
                file.note = f"{file.record.file.name}: {note}" if note else None
                file.counted_at = now
                if passing and now - job.told_at < _EVENT_EVERY_S:
                    return
                job.told_at = now
            self._tell(job)

        destination = self._models / file.record.place
        Download(file.record.file, part, destination, tools, report=report, stop=stop).run()

    def _wait_for_other(self, job: QueuedJob, file: QueuedFile, part: PartFile, stop: StopSignal) -> None:
        """Wait, without taking a place, while another program downloads the file. Raises Stopped."""
        with self._lock:
            stop.check()
            file.phase = "elsewhere"
            self._start_waiting()
        self._tell(job)
        while not _take(part.lock):
            stop.wait(_ELSEWHERE_S)
        part.release(forget=False)

    # Telling

    def _view(self, job: QueuedJob) -> JobProgress:
        return job.progress(self._models, time.monotonic())

    def _tell(self, *jobs: QueuedJob) -> None:
        # One at a time, so that nobody hears of a state after the next one.
        with self._telling:
            for job in jobs:
                with self._lock:
                    progress = self._view(job)
                try:
                    self._on_progress(progress)
                except Exception:
                    log.exception("whoever listens to downloads has failed")


def _take(lock: FileLock, within: float = 0.0) -> bool:
    """Whether the lock is ours now. Raises OSError."""
    try:
        lock.acquire(timeout=within)
    except Timeout:
        return False
    return True
