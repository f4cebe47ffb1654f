"""Between what a person types into a search and SQLite's full-text index (FTS5).

The index cuts text at white space and punctuation. Chinese, Japanese and other writing without
spaces would be one long word each, so its characters are indexed one by one; a run of them in a
query is a phrase, which finds it anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from msgspec import Struct

from app.chats.message import clean_text

MARK_START, MARK_END = "\x02", "\x03"
_GAP = "\u200b"  # zero width space: no letter to the index, nothing to the eye
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\u200b]")
_PHRASE = re.compile(r'"([^"]+)"|(\S+)')
_MOST_WORDS = 32
_LONGEST_QUERY = 1000


class SearchQuery(Struct, frozen=True):
    """``match`` is for FTS5; each of ``literals`` must be there as it stands, whatever the case of
    its ASCII letters. With neither there is nothing to look for."""

    match: str | None
    literals: tuple[str, ...] = ()


def indexed(text: str) -> str:
    """``text`` as the index gets it."""
    return _UNSPACED.sub(lambda match: f"{_GAP}{match[0]}{_GAP}", _CONTROLS.sub(" ", text))


def shown(indexed_text: str) -> str:
    """An excerpt of the index as it was written."""
    return indexed_text.replace(_GAP, "")


def parse_query(text: str) -> SearchQuery:
    """Any text is a query: all its words must be there, the end of each may be missing. Words in
    double quotes belong together. Signs such as ``%`` or ``c++`` mean themselves."""
    text = _CONTROLS.sub(" ", clean_text(text[:_LONGEST_QUERY]))
    phrases: list[str] = []
    literals: list[str] = []
    for quoted, word in _PHRASE.findall(text)[:_MOST_WORDS]:
        part = (quoted or word).strip()
        if any(_is_letter(character) for character in part):
            # The quotes make FTS5 take everything in them for text.
            phrases.append('"{}"{}'.format(indexed(part).replace('"', '""'), "" if quoted else "*"))
        if any(not _is_letter(c) and not c.isspace() for c in part):
            literals.append(indexed(part))
    return SearchQuery(" AND ".join(phrases) or None, tuple(literals))


def places_of(text: str, marked: Iterable[str] = ()) -> re.Pattern[str] | None:
    """Finds in a message what the query ``text`` found there, and the words that were ``marked`` in it;
    None: there is nothing to find."""
    words = set(marked)
    parts: list[str] = []
    for quoted, word in _PHRASE.findall(clean_text(text[:_LONGEST_QUERY]))[:_MOST_WORDS]:
        if part := (quoted or word).strip():
            spaced = r"\s+".join(map(re.escape, part.split()))
            # The end of a word may be missing in a query, but not its beginning.
            whole = not _UNSPACED.search(part)
            start = r"(?<!\w)" if whole and _is_letter(part[0]) else ""
            end = r"\w*" if whole and word and _is_letter(part[-1]) else ""
            parts.append(f"{start}{spaced}{end}")
    parts += [re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip()]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def _is_letter(character: str) -> bool:
    """As FTS5's unicode61 sees it: letters, numbers and private use make words."""
    category = unicodedata.category(character)
    return category[0] in "LN" or category == "Co" or unicodedata.combining(character) != 0
