"""The map drafters: what followed earlier occurrences of the last n tokens.

The methods are llama.cpp's ``ngram-simple``, ``ngram-map-k`` and ``ngram-map-k4v``. All three ask
one question of the history (where was this n-gram before?) and differ in what they make of it.
"""

from __future__ import annotations

from drafting.drafter import NO_DRAFT, Draft, Draw, IndexDrafter
from drafting.history import History
from drafting.parameters import MapParameters

# How often the next token was the one after a match of 12, on recorded answers of small models.
_CONFIDENCE = 0.96
# Older occurrences than these say little of the text at hand.
_NEWEST = 64


class NgramMap(IndexDrafter):
    """The newest occurrence leads, once there were ``min_hits`` of them."""

    name = "map-k"
    covered_by = "suffix"

    def __init__(self, history: History | None = None, n: int = 12, m: int = 48, min_hits: int = 1) -> None:
        """``n``: length of the key; ``m``: longest draft; ``min_hits``: earlier occurrences needed."""
        super().__init__(history)
        self.n, self.m, self.min_hits = n, m, min_hits

    def configure(self, parameters: MapParameters) -> None:
        """For the next answers. Only another ``n`` needs another index of the history."""
        if parameters.n != self.n:
            self.history.drop_index(self.n)
        self.n, self.m, self.min_hits = parameters.n, parameters.m, parameters.min_hits

    def propose(self, limit: int, draw: Draw) -> Draft:
        places = self.history.earlier(self.n, self.min_hits)
        if len(places) < self.min_hits:
            return NO_DRAFT
        return self._follow(places[0], limit)

    def _follow(self, place: int, limit: int) -> Draft:
        length = min(limit, self.m)
        return Draft(self.history.following(place, length), confidence=[_CONFIDENCE] * length)


class NgramSimple(NgramMap):
    """The newest occurrence leads, however often there was one."""

    name = "simple"


class NgramMapK4V(NgramMap):
    """Counts up to four continuations; one must dominate, and its newest occurrence leads."""

    name = "map-k4v"
    continuations = 4

    def propose(self, limit: int, draw: Draw) -> Draft:
        places = self.history.earlier(self.n, _NEWEST)
        if len(places) < self.min_hits:
            return NO_DRAFT
        newest: dict[int, int] = {}  # next token -> the newest place it followed
        counts: dict[int, int] = {}
        for place in places:
            token = self.history.tokens[place]
            if token not in newest and len(newest) == self.continuations:
                continue
            newest.setdefault(token, place)
            counts[token] = counts.get(token, 0) + 1
        favourite = max(counts, key=counts.__getitem__)  # the newest among equals comes first
        if counts[favourite] <= 2 * (sum(counts.values()) - counts[favourite]):
            return NO_DRAFT
        return self._follow(newest[favourite], limit)
