"""A queue on a local Hub, whose events a test can wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from model_store.download import RetryPolicy
from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.hub import Hub, HubFile
from model_store.local_path import HIDDEN
from tests.model_store.local_hub import LocalHub

QUICK = RetryPolicy(stall=1.5, first_wait=0.01, longest_wait=0.05)
PATIENT = RetryPolicy(stall=30.0, first_wait=0.01, longest_wait=0.05)  # for a busy machine
LONG_STALL = 10.0  # of a server, in seconds: more than it is waited for
_PATIENCE_S = 60.0


class QueueBench:
    """``events`` holds all there were. Closes its queue when it is left."""

    def __init__(
        self, models: Path, hub: LocalHub, *, reserve: int = 0, policy: RetryPolicy = QUICK, token: str = ""
    ) -> None:
        self.models = models
        self.hub = Hub(hub.url, token or None)
        self.events: list[JobProgress] = []
        self._changed = threading.Condition()
        self.queue = DownloadQueue(models, self.hub, self._note, reserve=reserve, policy=policy)

    def __enter__(self) -> QueueBench:
        self.queue.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.queue.close()

    def files(self, repo: str, *paths: str) -> list[HubFile]:
        """Files of a repository, all of them without names."""
        repository = self.hub.repository(repo)
        return [repository.file(path) for path in paths] if paths else list(repository.files)

    def get(self, repo: str, *paths: str) -> JobProgress:
        return self.queue.add(self.files(repo, *paths))

    def wait(self, job_id: str, what: Callable[[JobProgress], bool]) -> JobProgress:
        """The first event of the job, from now or before, that is so."""
        until = time.monotonic() + _PATIENCE_S
        with self._changed:
            while True:
                for event in self.events:
                    if event.id == job_id and what(event):
                        return event
                left = until - time.monotonic()
                assert left > 0, f"waited in vain; the last event: {self.events[-1:]}"
                self._changed.wait(left)

    def wait_for_state(self, job_id: str, *states: str) -> JobProgress:
        """The job as soon as it is in one of these states, if it is not now."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            [job] = [job for job in self.queue.jobs() if job.id == job_id]
            if job.state in states:
                return job
            time.sleep(0.005)
        raise AssertionError(f"the job did not become {states}: {job}")

    def end(self, job_id: str) -> JobProgress:
        """How the job ended, once everybody has been told."""
        ended = self.wait_for_state(job_id, "complete", "failed", "cancelled")
        self.wait(job_id, lambda event: event.state == ended.state)
        return ended

    def _note(self, progress: JobProgress) -> None:
        with self._changed:
            self.events.append(progress)
            self._changed.notify_all()


def unfinished(models: Path) -> list[str]:
    """What lies in the folder of unfinished downloads."""
    return sorted(path.name for path in (models / HIDDEN / "downloads").glob("*"))


def suffixes(models: Path) -> set[str]:
    return {Path(name).suffix for name in unfinished(models)}
