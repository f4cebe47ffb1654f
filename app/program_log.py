"""The program's own log: a rotating file, and its last lines."""

from __future__ import annotations

import logging
import logging.handlers
from pathlib import Path

from app import paths

_MAX_BYTES = 1_000_000
_BACKUPS = 2
_OURS = ("app", "drafting", "model_store", "native", "qt", "ui")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def program_log() -> Path:
    """What the window's process writes."""
    return paths.log_dir() / "slipstream.log"


def worker_log() -> Path:
    """What the engine's process writes to its standard error."""
    return paths.log_dir() / "worker.log"


def crash_log() -> Path:
    """Where Python writes its stack when native code ends the window's process."""
    return paths.log_dir() / "crash.log"


def start_logging() -> logging.Handler | None:
    """Send what is logged to the program log: of our own packages from INFO on, of others warnings.

    None where the folder cannot be written: the program then runs without a log. Remove the handler
    from the root logger and close it to stop.
    """
    try:
        handler = logging.handlers.RotatingFileHandler(
            program_log(), maxBytes=_MAX_BYTES, backupCount=_BACKUPS, encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    return handler


def last_lines(path: Path, most: int = 200, most_bytes: int = 256_000) -> list[str]:
    """The end of a text file, oldest line first; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            content = file.read(most_bytes)
    except OSError:
        return []
    lines = content.decode("utf-8", "replace").splitlines()
    if size > most_bytes:
        lines = lines[1:]  # the first is cut
    return lines[-most:]
