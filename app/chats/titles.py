"""Titles: one short line out of whatever a person wrote, safe to show and to name a file after."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from app.visible_text import visible

NO_TITLE = "New chat"
MAX_CHARACTERS = 60  # as a person counts them: an emoji with its skin tone is one
_LONGEST_LOOKED_AT = 4000
_MOST_MARKS = 8  # per character; stacks of hundreds of accents are no writing

_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_LEAD = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+)+")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|~~|`+|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w))")
_RESERVED = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')
_DEVICES = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def title_of(text: str) -> str:
    """A title from a message: its first line that says something, without Markdown, "" if none does."""
    for line in text[:_LONGEST_LOOKED_AT].splitlines():
        if _FENCE.match(line):
            continue
        line = _LINK.sub(r"\1", _LEAD.sub("", line))
        if title := one_line(_EMPHASIS.sub("", line)):
            return title
        if title := one_line(line):  # nothing but marks: then these are the title
            return title
    return ""


def one_line(text: str, most: int = MAX_CHARACTERS) -> str:
    """``text`` in a line of at most ``most`` characters, cut at a word; what could deceive is spelled
    out."""
    text = visible(" ".join(_without_controls(text).split()))
    found: list[str] = []
    for character in characters(text):
        found.append(character)
        if len(found) > most:
            break
    else:
        return text
    kept = "".join(found[: most - 1])
    # At a word, unless the last one is long or the writing has no spaces.
    at = kept.rfind(" ")
    if len(kept) * 0.6 <= at and text[len(kept)] != " ":
        kept = kept[:at]
    return f"{kept.rstrip(' ,;:.-–—')}…"


def characters(text: str) -> Iterator[str]:
    """Characters as a person counts them, near enough: marks, joined emoji and flags stay together."""
    cluster = ""
    for point in text:
        joins = (
            unicodedata.combining(point) != 0
            or unicodedata.category(point) in ("Mn", "Me", "Mc")
            or point in "\u200d\ufe0e\ufe0f"
            or "\U0001f3fb" <= point <= "\U0001f3ff"
            or "\U000e0020" <= point <= "\U000e007f"
            or cluster.endswith("\u200d")
            or (_is_flag(point) and len(cluster) == 1 and _is_flag(cluster))
        )
        if cluster and not joins:
            yield cluster
            cluster = ""
        if not cluster or len(cluster) <= _MOST_MARKS:
            cluster += point
    if cluster:
        yield cluster


def file_name(title: str, suffix: str) -> str:
    """A name for an exported file that every system takes; ``suffix`` with its dot."""
    name = _RESERVED.sub(" ", unicodedata.normalize("NFC", one_line(title)))
    name = " ".join(name.split()).strip(" .…")
    while len(name.encode("utf-8")) > 180:
        name = name[:-1]
    if not name or _DEVICES.match(name):
        name = f"Chat {name}".strip()
    return f"{name}{suffix}"


def _is_flag(point: str) -> bool:
    return "\U0001f1e6" <= point <= "\U0001f1ff"


def _without_controls(text: str) -> str:
    return "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") else c for c in text)
