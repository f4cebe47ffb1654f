"""How fast a large file is downloaded over loopback, next to curl, and with how much memory.

    python -m tests.model_store.download_speed --size 2000000000 --rounds 3

The server is a process of its own, as its work would otherwise count as ours. Both write to the same disk;
curl neither compares a hash nor waits for the disk in the end, and we do.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from model_store.download_job import JobProgress
from model_store.download_queue import DownloadQueue
from model_store.hub import Hub, HubFile
from tests.model_store.local_hub import LocalHub

REPO = "owner/large-GGUF"


def serve(path: Path) -> None:
    """Offer ``path`` until the input ends."""
    with LocalHub() as hub:
        hub.add(REPO, {"large.gguf": path})
        print(hub.url, flush=True)
        sys.stdin.read()


def curl(url: str, folder: Path) -> float:
    """Seconds."""
    started = time.monotonic()
    subprocess.run(["curl", "-sL", "-o", str(folder / "curl"), url], check=True)
    took = time.monotonic() - started
    (folder / "curl").unlink()
    return took


def ours(hub: Hub, file: HubFile, folder: Path) -> float:
    """Seconds until the file is in its place. Raises RuntimeError."""
    ended = threading.Event()
    states: list[JobProgress] = []

    def note(job: JobProgress) -> None:
        if job.state in ("complete", "failed"):
            states.append(job)
            ended.set()

    queue = DownloadQueue(folder / "models", hub, note, reserve=0)
    queue.start()
    started = time.monotonic()
    queue.add([file])
    ended.wait()
    took = time.monotonic() - started
    queue.close()
    if states[0].state != "complete":
        raise RuntimeError(f"the download failed: {states[0].error}")
    states[0].files[0].path.unlink()
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=2_000_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    with tempfile.TemporaryDirectory(prefix="speed") as name:
        folder = Path(name)
        with (folder / "large").open("wb") as large:
            large.truncate(options.size)
        command = [sys.executable, "-m", "tests.model_store.download_speed", "--serve", str(folder / "large")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            hub = Hub(server.stdout.readline().strip(), within=60)
            file = hub.repository(REPO).files[0]
            for _ in range(options.rounds):
                theirs, mine = curl(hub.url(file), folder), ours(hub, file, folder)
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                rates = [f"{options.size / seconds / 1e6:,.0f} MB/s" for seconds in (theirs, mine)]
                print(
                    f"curl {rates[0]}, ours {rates[1]} ({theirs / mine:.2f}x), memory {memory:.0f} MiB",
                    flush=True,
                )
            server.communicate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
