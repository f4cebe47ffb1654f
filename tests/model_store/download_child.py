"""A program of its own that downloads a repository's files: run with models folder, endpoint, repository."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.hub import Hub
from tests.model_store.queue_bench import PATIENT


def main(models: str, endpoint: str, repo: str, *paths: str) -> int:
    """Without a repository: goes on with the jobs that are there. Prints each job's state as it ends."""
    ended = threading.Event()
    open_jobs: set[str] = set()

    def note(job: JobProgress) -> None:
        print(job.state, job.received, flush=True)
        if job.state in ("complete", "failed", "cancelled"):
            open_jobs.discard(job.id)
            if not open_jobs:
                ended.set()

    hub = Hub(endpoint)
    queue = DownloadQueue(Path(models), hub, note, reserve=0, policy=PATIENT)
    if repo:
        repository = hub.repository(repo)
        open_jobs.add(queue.add([repository.file(path) for path in paths]).id)
    queue.start()
    open_jobs.update(job.id for job in queue.jobs() if job.ours and job.state in ("waiting", "active"))
    if open_jobs:
        ended.wait()
    queue.close()
    return 0 if all(job.state == "complete" for job in queue.jobs() if job.ours) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
