"""Writing direction of a paragraph, and direction overrides made visible where they could deceive."""

from __future__ import annotations

import re
import unicodedata

from app.visible_text import CONTROLS, visible

__all__ = ["holds_rtl", "is_rtl", "parts_visible", "visible"]

_LOOK_AHEAD = 400
# Hebrew, Arabic and their neighbours, the forms of them, and the scripts beyond U+FFFF.
_RTL = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)


def parts_visible(text: str) -> list[str]:
    """``text`` cut so that each direction control is a part of its own."""
    return (
        [part for part in re.split(f"({CONTROLS.pattern})", text) if part] if not text.isascii() else [text]
    )


def is_rtl(text: str) -> bool:
    """Whether the first strong character is right-to-left (rules P2 and P3 of UAX #9)."""
    for character in text[:_LOOK_AHEAD]:
        kind = unicodedata.bidirectional(character)
        if kind == "L":
            return False
        if kind in ("R", "AL"):
            return True
    return False


def holds_rtl(text: str) -> bool:
    """Whether something in ``text`` may be written from right to left."""
    return not text.isascii() and _RTL.search(text) is not None
