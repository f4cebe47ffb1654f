"""Direction overrides made visible where they could deceive: in names, titles and links."""

from __future__ import annotations

import re

# Embeddings, overrides and isolates can make a name or a link read as another one.
CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")


def visible(text: str) -> str:
    """``text`` with every direction control spelled out, such as ``⟨U+202E⟩``."""
    return CONTROLS.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", text)
