"""``slipstream models get``: downloads a model and its drafter, and shows how far they are."""

from __future__ import annotations

import argparse
import json
import queue
import sys
from collections.abc import Callable, Sequence

import msgspec

from app.cli import INTERRUPTED, UsageError
from app.commands.terminal import clear_bar, printable, show_bar
from app.duration_words import time_left
from app.loading import loading
from app.settings import SettingsFile
from model_store.download_job import JobProgress
from model_store.drafting_kind import NOUNS
from model_store.fit import shown_bytes
from model_store.offer import Offer
from model_store.offer_lookup import OfferError
from model_store.repo_link import parse_repo
from model_store.store import Event, Store

_ENDED = ("complete", "failed", "cancelled")


def run_get(options: argparse.Namespace, open_store: Callable[[Callable[[Event], None]], Store]) -> int:
    """Download what was named, or go on with what is unfinished. Raises UsageError, and what the store
    raises."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    store = open_store(events.put)
    try:
        if options.name is None:
            started = _resumed(store)
        else:
            offer = _offer(store, options)
            if offer is not None:
                _show_offer(offer, options)
                if options.dry_run:
                    return 0
            elif options.dry_run:
                raise UsageError(f"{options.name} is no chat model: it would be downloaded as it is")
            started = {(store.get(offer) if offer is not None else store.get_file(options.name)).id}
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


def _offer(store: Store, options: argparse.Namespace) -> Offer | None:
    """What to get; None for a link to a file that is no chat model. Raises OfferError, HubError and
    ModelFileError."""
    planned = loading(SettingsFile().load())
    try:
        return store.offer(options.name, quantisation=options.quant, drafter=options.drafter, loading=planned)
    except OfferError as error:
        link = parse_repo(options.name, store.hub.endpoint)
        is_file = link is not None and (link.path or "").lower().endswith(".gguf")
        if error.kind == "no_model" and is_file and options.quant is None and options.drafter == "auto":
            return None
        raise


def _show_offer(offer: Offer, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps({"event": "offer", "size": offer.size, **msgspec.to_builtins(offer)}), flush=True)
        return
    label = f" {offer.target.label}" if offer.target.label else ""
    lines = [f"{offer.title}{label} from {offer.repo}, {shown_bytes(offer.target.size)}"]
    if offer.drafter is not None:
        size = f", {shown_bytes(offer.drafter.size)}" if offer.drafter.files else ""
        lines.append(f"with {NOUNS[offer.drafter.kind]}: {offer.drafter.name}{size}")
    lines += [offer.why, offer.fit.words, *offer.notices]
    if options.dry_run:
        lines += ["", "Quantisations:"]
        lines += [f"  {c.label or '-':12}{shown_bytes(c.size):>10}  {c.fit.words}" for c in offer.targets]
        lines += ["", "Drafters:"] if offer.drafters else []
        for drafter in offer.drafters:
            problem = f"  {drafter.problem}" if drafter.problem else ""
            size = shown_bytes(drafter.size) if drafter.files else "inside"
            lines.append(f"  {drafter.kind:12}{size:>10}  {drafter.name}{problem}")
    # Results are for standard output: here, what would be done.
    print("\n".join(map(printable, lines)), file=sys.stdout if options.dry_run else sys.stderr)


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
            self._write(f"{printable(job.note)}\n")
        self._notes[job.id] = job.note
        if not self._is_terminal:
            return
        received, size = sum(j.received for j in jobs), sum(j.size for j in jobs)
        rate = sum(j.rate for j in jobs if j.state == "active")
        words = f"{shown_bytes(received)} of {shown_bytes(size)}"
        if rate > 0:
            words += f", {shown_bytes(round(rate))}/s, {time_left((size - received) / rate)}"
        show_bar(sys.stderr, received, size, words)

    def _show_end(self, job: JobProgress) -> None:
        if self._as_json:
            print(json.dumps({"event": job.state, **job_row(job)}), flush=True)
        elif job.state == "complete":
            self._write("")
            for file in job.files:
                print(f"{file.path}  ({file.file.size:,} bytes, checked)")
        if job.error is not None:
            link = f" {job.error.link}" if job.error.link else ""
            self._write(f"slipstream: {printable(job.error.message)}{link}\n")
        elif job.state == "cancelled":
            self._write("slipstream: the download was cancelled\n")

    def _write(self, text: str) -> None:
        """After taking the bar away."""
        if self._is_terminal:
            clear_bar(sys.stderr)
        sys.stderr.write(text)
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
