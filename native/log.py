"""llama.cpp's log: forwarded to Python's logging, and its last lines kept for errors to quote."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections import deque

from llama_cpp import llama_cpp as lib

log = logging.getLogger("llama.cpp")

# GGML_LOG_LEVEL_*: 1 debug, 2 info (llama.cpp's chatter, debug for us), 3 warning, 4 error, and 5
# continues the line before it.
_LEVELS = {1: logging.DEBUG, 2: logging.DEBUG, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUE = 5

_KEPT_LINES = 5000

_lock = threading.Lock()
_recent: deque[tuple[int, int, str]] = deque(maxlen=_KEPT_LINES)  # number, level, line
_count = 0
_level = logging.DEBUG
_line = ""


def _receive(level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
    """One call may bring part of a line, or several."""
    global _count, _level, _line
    with _lock:
        if level != _CONTINUE:
            _level = _LEVELS.get(level, logging.DEBUG)
        *lines, _line = (_line + text.decode("utf-8", "replace")).split("\n")
        for line in lines:
            _count += 1
            _recent.append((_count, _level, line))
        current = _level
    for line in lines:
        if line.strip(" ."):
            log.log(current, "%s", line)


_callback = lib.llama_log_callback(_receive)  # llama.cpp keeps the pointer, so it must stay alive
lib.llama_log_set(_callback, ctypes.c_void_p(0))


def mark() -> int:
    """A place in the log, to ask later what came after it; costs nothing."""
    return _count


def problems_since(place: int) -> list[str]:
    """Warnings and errors that llama.cpp logged after ``place``, from whichever of its threads."""
    return [line for level, line in _since(place) if level >= logging.WARNING]


def lines_since(place: int) -> list[str]:
    """All lines that llama.cpp logged after ``place`` (the last 5,000 at most)."""
    return [line for _, line in _since(place)]


def _since(place: int) -> list[tuple[int, str]]:
    with _lock:
        return [(level, line) for number, level, line in _recent if number > place]
