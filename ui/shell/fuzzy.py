"""How well a few typed letters fit a name, and which letters of it they are."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from msgspec import Struct

_AT_START, _AT_WORD, _INSIDE, _INITIALS, _SCATTERED = 100, 80, 50, 40, 10
_WIDEST = 3  # scattered letters may span this many times their number


class Match(Struct, frozen=True):
    """``score`` is larger for a better fit; ``positions`` are places in the name, ascending."""

    score: int
    positions: tuple[int, ...] = ()


def match(query: str, name: str) -> Match | None:
    """None unless every word of ``query`` is found in ``name``, its letters in order.

    Case and accents do not count. A word at the start counts most, then one at the start of another
    word, inside one, the first letters of several, and last letters that stand near each other.
    """
    folded = _folded(name)
    score = 0
    positions: set[int] = set()
    for word in _folded(query).split():
        found = _word(word, folded)
        if found is None:
            return None
        score += found.score
        positions.update(found.positions)
    # Of equal fits the shorter name is the likelier one.
    return Match(score * 100 - min(len(name), 99), tuple(sorted(positions)))


def _word(word: str, name: str) -> Match | None:
    at = name.find(word)
    if at == 0:
        return Match(_AT_START, tuple(range(len(word))))
    starts = _word_starts(name)
    for start in starts:
        if name.startswith(word, start):
            return Match(_AT_WORD, tuple(range(start, start + len(word))))
    if at > 0:
        return Match(_INSIDE, tuple(range(at, at + len(word))))
    if len(word) < 2:
        return None
    initials = _in_order(word, name, starts)
    if initials is not None:
        return Match(_INITIALS, initials)
    return _scattered(word, name)


def _scattered(word: str, name: str) -> Match | None:
    best: tuple[int, ...] | None = None
    for start in (at for at, letter in enumerate(name) if letter == word[0]):
        found = _in_order(word, name, range(start, min(len(name), start + _WIDEST * len(word))))
        if found is not None and (best is None or found[-1] - found[0] < best[-1] - best[0]):
            best = found
    return None if best is None else Match(_SCATTERED, best)


def _in_order(word: str, name: str, places: tuple[int, ...] | range) -> tuple[int, ...] | None:
    found: list[int] = []
    for place in places:
        if len(found) < len(word) and name[place] == word[len(found)]:
            found.append(place)
    return tuple(found) if len(found) == len(word) else None


@lru_cache(maxsize=4096)
def _word_starts(name: str) -> tuple[int, ...]:
    return tuple(
        at for at in range(len(name)) if name[at].isalnum() and (at == 0 or not name[at - 1].isalnum())
    )


@lru_cache(maxsize=8192)
def _folded(text: str) -> str:
    """As long as ``text``: a letter for each letter, without case and accents."""
    return "".join(_fold(letter) for letter in text)


@lru_cache(maxsize=4096)
def _fold(letter: str) -> str:
    return unicodedata.normalize("NFKD", letter)[0].lower()[:1] or letter
