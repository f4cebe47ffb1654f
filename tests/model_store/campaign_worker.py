"""The program that the fault campaign starts and kills: it downloads repositories until all are there.

    python -m tests.model_store.campaign_worker MODELS ENDPOINT CRASH REPOSITORY...

CRASH is how many changes of files it survives: at the next one it is killed by itself. 0 means for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from model_store.download import RetryPolicy
from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.hub import Hub

# More tries than a program makes in a row, as faults come far closer together than in life
POLICY = RetryPolicy(stall=0.3, first_wait=0.01, longest_wait=0.05, tries=20)
_CHANGES = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.truncate"})
_RESUMES = 2  # how often a person tries a failed job again


def crash_after(changes: int, folder: Path) -> None:
    """Kill this process at its next change of a file in ``folder`` after so many."""
    left = changes

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in _CHANGES and str(arguments[0]).startswith(str(folder)):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


class Worker:
    """Ends when each job is complete, or has failed more often than a person would try it again."""

    def __init__(self, models: Path, hub: Hub) -> None:
        self.queue = DownloadQueue(models, hub, self._note, reserve=0, policy=POLICY)
        self._failures: dict[str, int] = {}
        self._changed = threading.Event()

    def run(self, hub: Hub, repos: list[str]) -> bool:
        """Whether all of these repositories are there."""
        self.queue.start()
        jobs = [self.queue.add(hub.repository(repo).files, repo).id for repo in repos]
        unfinished = set(jobs)
        while unfinished:
            self._changed.wait(0.05)
            self._changed.clear()
            states = {job.id: job.state for job in self.queue.jobs()}
            unfinished = {
                job
                for job in unfinished
                if states[job] != "complete"
                and not (states[job] == "failed" and self._failures.get(job, 0) > _RESUMES)
            }
            for job in unfinished:
                if states[job] == "failed":
                    self.queue.resume(job)
        self.queue.close()
        return all(states[job] == "complete" for job in jobs)

    def _note(self, job: JobProgress) -> None:
        if job.state == "failed":
            print(f"failed {job.title} {job.error and job.error.kind}", flush=True)
            self._failures[job.id] = self._failures.get(job.id, 0) + 1
        self._changed.set()


def main(models: str, endpoint: str, crash: str, *repos: str) -> int:
    hub = Hub(endpoint)
    worker = Worker(Path(models), hub)
    if int(crash):
        crash_after(int(crash), Path(models))
    return 0 if worker.run(hub, list(repos)) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
