"""A program that fills its disk while it downloads, makes room, and goes on.

    python -m tests.model_store.disk_full_worker MODELS ENDPOINT REPOSITORY...

MODELS lies on a small disk of its own.
"""

from __future__ import annotations

import errno
import sys
import threading
import time
from pathlib import Path

from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.hub import Hub
from tests.model_store.campaign_worker import POLICY


def fill(ballast: Path) -> None:
    """Write until the system says that the disk is full."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def main(models_name: str, endpoint: str, *repos: str) -> int:
    models = Path(models_name)
    hub = Hub(endpoint)
    ballast = models / ".ballast"
    begun = threading.Event()

    def note(job: JobProgress) -> None:
        if job.state == "active" and job.received:
            begun.set()

    queue = DownloadQueue(models, hub, note, reserve=0, policy=POLICY)
    queue.start()
    wrong = 0
    for repo in repos:
        begun.clear()
        job = queue.add(hub.repository(repo).files)
        begun.wait(20)
        fill(ballast)
        until = time.monotonic() + 20
        while True:
            [now] = [each for each in queue.jobs() if each.id == job.id]
            if now.state in ("failed", "complete") or time.monotonic() > until:
                break
            time.sleep(0.005)
        kind = now.error.kind if now.error else None
        visible = [path for path in models.rglob("*.gguf") if path.parent.parent.name == repo.split("/")[0]]
        ballast.unlink()
        queue.resume(job.id)
        while now.state != "complete" and time.monotonic() < until + 20:
            time.sleep(0.005)
            [now] = [each for each in queue.jobs() if each.id == job.id]
        good = kind == "disk_full" and not visible and now.state == "complete"
        wrong += not good
        print(f"{repo}: {kind}, {len(visible)} visible, then {now.state}", flush=True)
        for file in now.files:  # make room for the next one
            path = models / file.path
            path.unlink(missing_ok=True)
    queue.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
