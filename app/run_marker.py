"""A file that is there while the program runs: found at a start, the last run did not end properly."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from app import paths
from model_store.files import write_atomically

log = logging.getLogger(__name__)


class Run(Struct, frozen=True):
    """``started_at`` is in Unix seconds, 0 where the file could not be read."""

    pid: int = 0
    started_at: float = 0.0


class RunMarker:
    """For the one window that holds the home folder: it does not ask whether the process still lives."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.data_dir() / "running.json"

    def begin(self, now: float | None = None) -> Run | None:
        """Note that a run began; returns the last one if it never came to ``end``."""
        last: Run | None = None
        try:
            last = msgspec.json.decode(self.path.read_bytes(), type=Run)
        except FileNotFoundError:
            pass
        except (msgspec.DecodeError, OSError):
            last = Run()
        run = Run(os.getpid(), time.time() if now is None else now)
        try:
            write_atomically(self.path, msgspec.json.encode(run))
        except OSError as error:
            log.warning("the start of this run cannot be noted: %s", error)
        return last

    def end(self) -> None:
        """The run ended properly."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the end of this run cannot be noted: %s", error)
