"""Text for tooltips, which Qt takes for HTML where it looks like it."""

from __future__ import annotations

from html import escape


def plain(text: str) -> str:
    """``text`` so that it is shown as it is: names of files and words of servers load and hide nothing."""
    if "<" not in text and "&" not in text:
        return text
    return f"<qt>{escape(text, quote=False)}</qt>".replace("\n", "<br>")
