"""The map-k drafter: what followed the newest earlier occurrence of the last n tokens.

The method is llama.cpp's ``ngram-map-k``: a hash map from n-grams of the context to their place.
"""

from __future__ import annotations

from drafting.drafter import NO_DRAFT, Draft, Draw, HistoryDrafter

_BASE = 1_000_003
_PRIME = (1 << 61) - 1


class NgramMap(HistoryDrafter):
    name = "map-k"

    def __init__(self, n: int = 12, m: int = 48, min_hits: int = 1) -> None:
        """``n``: length of the key; ``m``: longest draft; ``min_hits``: earlier occurrences needed."""
        super().__init__()
        self.n, self.m, self.min_hits = n, m, min_hits
        self._leaving = pow(_BASE, n, _PRIME)
        self._forget()

    def _forget(self) -> None:
        self._hash = 0  # of the last n tokens
        self._places: dict[int, int] = {}  # n-gram hash -> where its newest occurrence ends
        self._hits: dict[int, int] = {}
        self._match: int | None = None  # where an earlier occurrence of the last n tokens ends

    def _learn(self, token: int) -> None:
        """Roll the hash on by one token (Karp and Rabin 1987) and note the n-gram's place."""
        end = len(self.history)
        self._hash = (self._hash * _BASE + token + 1) % _PRIME
        if end > self.n:
            self._hash = (self._hash - (self.history[end - self.n - 1] + 1) * self._leaving) % _PRIME
        if end < self.n:
            return
        key = self._hash
        self._match = self._places.get(key)
        hits = self._hits.get(key, 0)
        if hits < self.min_hits:
            self._match = None
        self._places[key] = end
        self._hits[key] = hits + 1

    def propose(self, limit: int, draw: Draw) -> Draft:
        place = self._match
        if place is None or self.history[place - self.n : place] != self.history[-self.n :]:
            return NO_DRAFT  # no earlier occurrence, or only one with the same hash
        length = min(limit, self.m)
        # Where the match lies so close that it runs into the end, the text is repeating itself
        # with that distance as its period: go round again.
        period = len(self.history) - place
        return Draft([self.history[place + i % period] for i in range(length)])
