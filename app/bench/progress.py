"""How far a measurement has come: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from app.commands.terminal import clear_bar, show_bar


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
            self._stream.write(f"{done + 1}/{total} {name}\n")
            self._stream.flush()
            return
        show_bar(self._stream, done, total, f"{done}/{total}{self._remaining(done, total)}  {name}")

    def clear(self) -> None:
        """Take the bar away, so that what follows starts on a clean line."""
        if self._is_terminal:
            clear_bar(self._stream)

    def _remaining(self, done: int, total: int) -> str:
        if done <= 0:
            return ""
        seconds = (self._clock() - self._began) / done * (total - done)
        return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
