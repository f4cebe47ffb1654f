"""What commands write on a terminal beside their results."""

from __future__ import annotations

import sys


def printable(text: str) -> str:
    """``text`` from a file or a server, so that it can do nothing to a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def note(text: str) -> None:
    """One line on standard error."""
    print(f"slipstream: {printable(text)}", file=sys.stderr)
