"""Writing direction of a paragraph, and direction overrides made visible where they could deceive."""

from __future__ import annotations

import re
import unicodedata

# Embeddings, overrides and isolates can make a name or a link read as another one.
_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
_LOOK_AHEAD = 400


def visible(text: str) -> str:
    """``text`` with every direction control spelled out, such as ``⟨U+202E⟩``."""
    return _CONTROLS.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", text)


def is_rtl(text: str) -> bool:
    """Whether the first strong character is right-to-left (rules P2 and P3 of UAX #9)."""
    for character in text[:_LOOK_AHEAD]:
        kind = unicodedata.bidirectional(character)
        if kind == "L":
            return False
        if kind in ("R", "AL"):
            return True
    return False
