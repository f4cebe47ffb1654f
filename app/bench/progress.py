"""How far a measurement has come: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

_BAR = 24


class ProgressLine:
    """Writes to ``stream``, which is standard error: standard output is for results."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._is_terminal = stream.isatty()

    def show(self, done: int, total: int, name: str) -> None:
        """``done`` of ``total`` are over and ``name`` comes now."""
        if not self._is_terminal:
            self._write(f"{done + 1}/{total} {name}\n")
            return
        filled = _BAR * done // max(total, 1)
        bar = "█" * filled + "·" * (_BAR - filled)
        line = f"{bar} {done}/{total}{self._remaining(done, total)}  {name}"
        width = shutil.get_terminal_size().columns - 1
        self._write("\r\033[K" + line[:width])

    def clear(self) -> None:
        """Take the bar away, so that what follows starts on a clean line."""
        if self._is_terminal:
            self._write("\r\033[K")

    def _remaining(self, done: int, total: int) -> str:
        if done <= 0:
            return ""
        seconds = (self._clock() - self._began) / done * (total - done)
        return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
