"""llama.cpp's log: forwarded to Python's logging and captured around calls that may fail."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
from collections.abc import Iterator

from llama_cpp import llama_cpp as lib

log = logging.getLogger("llama.cpp")

# GGML_LOG_LEVEL_*: 1 debug, 2 info (llama.cpp's chatter, debug for us), 3 warning, 4 error, and 5
# continues the line before it.
_LEVELS = {1: logging.DEBUG, 2: logging.DEBUG, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUE = 5

_lock = threading.Lock()
_captures: list[list[tuple[int, str]]] = []
_level = logging.DEBUG
_line = ""


def _receive(level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
    """One call may bring part of a line, or several."""
    global _level, _line
    with _lock:
        if level != _CONTINUE:
            _level = _LEVELS.get(level, logging.DEBUG)
        *lines, _line = (_line + text.decode("utf-8", "replace")).split("\n")
        for capture in _captures:
            capture.extend((_level, line) for line in lines)
        current = _level
    for line in lines:
        if line.strip(" ."):
            log.log(current, "%s", line)


_callback = lib.llama_log_callback(_receive)  # llama.cpp keeps the pointer, so it must stay alive
lib.llama_log_set(_callback, ctypes.c_void_p(0))


class Capture:
    """Lines llama.cpp logged inside a ``capture`` block."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, str]] = []

    @property
    def lines(self) -> list[str]:
        return [line for _, line in self._entries]

    @property
    def problems(self) -> list[str]:
        """Warnings and errors only."""
        return [line for level, line in self._entries if level >= logging.WARNING]

    def _add_to(self, captures: list[list[tuple[int, str]]]) -> list[tuple[int, str]]:
        captures.append(self._entries)
        return self._entries


@contextlib.contextmanager
def capture() -> Iterator[Capture]:
    """Collect what llama.cpp logs, from whichever of its threads, until the block ends."""
    result = Capture()
    with _lock:
        entries = result._add_to(_captures)
    try:
        yield result
    finally:
        with _lock:
            _captures[:] = [c for c in _captures if c is not entries]
