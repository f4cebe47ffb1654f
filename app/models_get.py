"""``slipstream models get``: downloads a model and its drafter, and shows how far they are."""

from __future__ import annotations

import argparse
import json
import queue
import shutil
import sys
from collections.abc import Callable, Sequence

from app.cli import INTERRUPTED, UsageError
from model_store.download_job import JobProgress
from model_store.fit import shown_bytes
from model_store.store import Event, Store

_ENDED = ("complete", "failed", "cancelled")
_BAR = 24


def run_get(options: argparse.Namespace, open_store: Callable[[Callable[[Event], None]], Store]) -> int:
    """Download what was named, or go on with what is unfinished. Raises UsageError, and what the store
    raises."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    store = open_store(events.put)
    try:
        started = _resumed(store) if options.name is None else {store.get(options.name).id}
        if not started:
            raise UsageError("no download is unfinished; name a model or a repository")
        # How things stood before is of no interest any more.
        while not events.empty():
            events.get()
        jobs = [job for job in store.queue.jobs() if job.id in started]
        return _Watch(options.json).until_ended(jobs, events)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        store.close()


def _resumed(store: Store) -> set[str]:
    """The ids of all unfinished jobs, which go on."""
    unfinished = [job.id for job in store.queue.jobs() if job.ours]
    for job_id in unfinished:
        store.queue.resume(job_id)
    return set(unfinished)


class _Watch:
    """Shows jobs until each has ended: a line on a terminal, or one JSON object for each change."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._is_terminal = sys.stderr.isatty() and not as_json
        self._notes: dict[str, str | None] = {}

    def until_ended(self, jobs: Sequence[JobProgress], events: queue.SimpleQueue[Event]) -> int:
        """The exit status."""
        latest = {job.id: job for job in jobs}
        try:
            while any(job.state not in _ENDED for job in latest.values()):
                event = events.get()
                if isinstance(event, JobProgress) and event.id in latest:
                    latest[event.id] = event
                    self._show(event, list(latest.values()))
        except KeyboardInterrupt:
            self._write("slipstream: stopped; the same command goes on from here\n")
            raise
        failed = [job for job in latest.values() if job.state != "complete"]
        for job in latest.values():
            self._show_end(job)
        return 1 if failed else 0

    def _show(self, job: JobProgress, jobs: Sequence[JobProgress]) -> None:
        if self._as_json:
            print(json.dumps({"event": "progress", **job_row(job)}), flush=True)
            return
        if job.note and job.note != self._notes.get(job.id):
            self._write(f"{job.note}\n")
        self._notes[job.id] = job.note
        if not self._is_terminal:
            return
        received, size = sum(j.received for j in jobs), sum(j.size for j in jobs)
        rate = sum(j.rate for j in jobs if j.state == "active")
        filled = _BAR * received // max(size, 1)
        line = f"{'█' * filled}{'·' * (_BAR - filled)} {shown_bytes(received)} of {shown_bytes(size)}"
        if rate > 0:
            line += f", {shown_bytes(round(rate))}/s, {_left((size - received) / rate)}"
        sys.stderr.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    def _show_end(self, job: JobProgress) -> None:
        if self._as_json:
            print(json.dumps({"event": job.state, **job_row(job)}), flush=True)
        elif job.state == "complete":
            self._write("")
            for file in job.files:
                print(f"{file.path}  ({file.file.size:,} bytes, checked)")
        if job.error is not None:
            link = f" {job.error.link}" if job.error.link else ""
            self._write(f"slipstream: {job.error.message}{link}\n")
        elif job.state == "cancelled":
            self._write("slipstream: the download was cancelled\n")

    def _write(self, text: str) -> None:
        """After taking the bar away."""
        sys.stderr.write(("\r\033[K" if self._is_terminal else "") + text)
        sys.stderr.flush()


def job_row(job: JobProgress) -> dict[str, object]:
    """A download as JSON; sizes in bytes, the rate in bytes a second."""
    return {
        "id": job.id,
        "title": job.title,
        "state": job.state,
        "received": job.received,
        "size": job.size,
        "rate": round(job.rate),
        "seconds_left": job.seconds_left,
        "note": job.note,
        "error": job.error and {"kind": job.error.kind, "message": job.error.message, "link": job.error.link},
        "files": [
            {
                "path": str(file.path),
                "repository": file.file.repo,
                "revision": file.file.revision,
                "file": file.file.path,
                "phase": file.phase,
                "received": file.received,
                "size": file.file.size,
                "sha256": file.file.sha256,
            }
            for file in job.files
        ],
    }


def _left(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h left"
    return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"
