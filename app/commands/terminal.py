"""What commands write on a terminal beside their results."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

_BAR = 24
_CLEAR = "\r\033[K"


def printable(text: str) -> str:
    """``text`` from a file or a server, so that it can do nothing to a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def note(text: str) -> None:
    """One line on standard error."""
    print(f"slipstream: {printable(text)}", file=sys.stderr)


def show_bar(stream: TextIO, done: int, total: int, words: str) -> None:
    """How far something has come, in the place of the bar that was shown before."""
    filled = _BAR * done // max(total, 1)
    line = "█" * filled + "·" * (_BAR - filled) + f" {words}"
    stream.write(_CLEAR + line[: shutil.get_terminal_size().columns - 1])
    stream.flush()


def clear_bar(stream: TextIO) -> None:
    """Take the bar away, so that what follows starts on a clean line."""
    stream.write(_CLEAR)
    stream.flush()
