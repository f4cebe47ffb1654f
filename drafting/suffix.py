"""The suffix drafter: the longest earlier match of the text's end, and what followed it.

In the spirit of suffix decoding (Oliaro et al. 2024), with hash chains in place of a suffix tree:
the longest of the newest matches leads, and the other matches vote on how sure to be.
"""

from __future__ import annotations

from bisect import bisect_right

from drafting.drafter import NO_DRAFT, Draft, Draw, IndexDrafter
from drafting.history import History
from drafting.parameters import SuffixParameters

# n and how many matches are looked at. A long key finds the matches that matter among many; the
# short ones are for where it finds none.
_KEYS = ((8, 8), (3, 16), (1, 8))
_LONGEST_MATCH = 64
# How often the next token was the drafted one, on recorded answers of small models: by matched
# tokens, for a match that is alone, that all others agree with, that some contradict.
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
_RIGHT = (
    (0.35, 0.65, 0.18),
    (0.56, 0.90, 0.44),
    (0.69, 0.88, 0.36),
    (0.79, 0.93, 0.50),
    (0.81, 0.95, 0.50),
    (0.86, 0.97, 0.50),
    (0.91, 0.97, 0.50),
    (0.94, 0.98, 0.50),
    (0.97, 0.98, 0.60),
    (0.975, 0.99, 0.70),
    (0.98, 0.99, 0.80),
)
_ALONE, _AGREED, _CONTESTED = range(3)


class Suffix(IndexDrafter):
    name = "suffix"

    def __init__(self, history: History | None = None, longest: int = 48) -> None:
        super().__init__(history)
        self.longest = longest
        self._p_min = 0.0

    def configure(self, parameters: SuffixParameters) -> None:
        """For the next answers."""
        self.longest, self._p_min = parameters.n_max, parameters.p_min

    def propose(self, limit: int, draw: Draw) -> Draft:
        return self._longest_match(min(limit, self.longest)).probable(self._p_min)

    def _longest_match(self, limit: int) -> Draft:
        matches = self._matches()
        if not matches:
            return NO_DRAFT
        tokens = self.history.tokens
        n = len(tokens)
        drafted: list[int] = []
        confidence: list[float] = []
        length = matches[0][1]
        alive = [place for place, _ in matches]
        for i in range(limit):
            # What follows a match that runs into the end goes on with the draft itself.
            nexts = [tokens[p + i] if p + i < n else drafted[p + i - n] for p in alive]
            token = nexts[0]
            agreeing = nexts.count(token)
            if agreeing < len(nexts):
                support = _CONTESTED
                alive = [p for p, t in zip(alive, nexts, strict=True) if t == token]
            else:
                support = _AGREED if agreeing > 1 else _ALONE
            drafted.append(token)
            confidence.append(_RIGHT[bisect_right(_LENGTHS, length + i) - 1][support])
        return Draft(drafted, confidence=confidence)

    def _matches(self) -> list[tuple[int, int]]:
        """(place, matched tokens) of earlier matches, longest first and newest first among equals."""
        for n, most in _KEYS:
            places = self.history.earlier(n, most)
            if places:
                matches = [(place, self._matched(place, n)) for place in places]
                matches.sort(key=lambda match: -match[1])
                return matches
        return []

    def _matched(self, place: int, n: int) -> int:
        """How many tokens before ``place`` equal those before the end; the last n are known to."""
        tokens = self.history.tokens
        end, longest = len(tokens), min(_LONGEST_MATCH, place)
        while n < longest and tokens[place - n - 1] == tokens[end - n - 1]:
            n += 1
        return n
