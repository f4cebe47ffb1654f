"""The cache drafter: how often each token followed each of the last 1 to 4 tokens.

The method is llama.cpp's lookup cache (``ngram-cache``), with its three tiers and their thresholds:
this context, this person's earlier answers, and a static table of two-token contexts, which also
has a say in what the other two offer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from drafting.drafter import NO_DRAFT, Draft, Draw, IndexDrafter
from drafting.follower_counts import FollowerCounts, keys_of
from drafting.history import History
from drafting.ngram_trie import DEPTH
from drafting.parameters import CacheParameters
from drafting.past_answers import MIN_SEEN, MIN_SHARE, PastAnswers

STATIC_N = 2
"""Tokens of a context in the static table."""
# What a static count weighs, where a token that the table does not know weighs 1.
_STATIC_WEIGHT = 100


class _Tier(NamedTuple):
    """By n: how often a context must have been seen, and what share its favourite must have, to be
    believed (llama.cpp's values: longer contexts need less proof). Then what that is worth, fitted
    to recorded answers: how far the tier is trusted at all, how much a context seen but a few times
    may mislead, and how much more than its share a rival costs."""

    min_seen: tuple[int, ...]
    min_share: tuple[float, ...]
    trust: tuple[float, ...]
    doubt: tuple[float, ...]
    rivalry: int = 1

    def confidence(self, n: int, count: int, seen: int) -> float:
        """How sure (0 to 1) a follower is that came ``count`` of ``seen`` times; 0: not enough."""
        share = count / seen
        if seen < self.min_seen[n] or share < self.min_share[n]:
            return 0.0
        return self.trust[n] * share**self.rivalry * (1 - self.doubt[n] / (seen + 1))


_CERTAIN = (1.0,) * (DEPTH + 1)
_CONTEXT = _Tier((0, 2, 2, 1, 1), (0.0, 0.66, 0.5, 0.5, 0.5), _CERTAIN, (0.0, 1.2, 0.6, 0.5, 0.1))
_LEARNED = _Tier(MIN_SEEN, MIN_SHARE, (0.0, 0.22, 0.45, 0.55, 0.94), (0.0,) * (DEPTH + 1), rivalry=2)
_STATIC = _Tier((0, 0, 2), (0.0, 0.0, 0.5), (0.0, 0.0, 0.4), (0.0, 0.0, 0.0), rivalry=2)


class NgramCache(IndexDrafter):
    name = "cache"

    def __init__(
        self,
        history: History | None = None,
        past: PastAnswers | None = None,
        static: FollowerCounts | None = None,
    ) -> None:
        """``past`` and ``static`` (keys of ``STATIC_N`` tokens) are shared by all chats."""
        super().__init__(history)
        self._past = past
        self._static = static
        self.configure(CacheParameters(p_min=0.0))

    @property
    def covered_by(self) -> str | None:
        """Only the static table is its own."""
        return "suffix" if self._static is None else None

    def configure(self, parameters: CacheParameters) -> None:
        """For the next answers; what is counted stays the same."""
        self._parameters = parameters

    def propose(self, limit: int, draw: Draw) -> Draft:
        trie = self.history.trie
        node, depth = trie.context, trie.depth
        tail = self.history.tokens[-DEPTH:]
        drafted: list[int] = []
        confidence: list[float] = []
        reached = 1.0
        while len(drafted) < limit:
            found = self._in_context(node, depth, tail) or self._learned(tail) or self._from_static(tail)
            if found is None:
                break
            token, sure = found
            reached *= sure
            if reached < self._parameters.p_min:
                break
            drafted.append(token)
            confidence.append(sure)
            node, depth = trie.follow(node, depth, token)
            tail = [*tail[1 - DEPTH :], token]
        return Draft(drafted, confidence=confidence) if drafted else NO_DRAFT

    def _in_context(self, node: int, depth: int, tail: list[int]) -> tuple[int, float] | None:
        """The favourite of the longest context that is sure enough, and how sure (0 to 1)."""
        trie = self.history.trie
        while depth >= self._parameters.ngram_min:
            favourite = trie.favourite[node]
            if favourite >= 0 and depth <= self._parameters.ngram_max:
                token, count, seen = trie.token(favourite), trie.count(favourite), trie.seen(node, depth)
                if self._static is not None and count < seen:
                    token, count = self._weighed(tail, token, count, partial(trie.followed, node))
                if sure := _CONTEXT.confidence(depth, count, seen):
                    return token, sure
            node, depth = trie.link[node], depth - 1
        return None

    def _learned(self, tail: list[int]) -> tuple[int, float] | None:
        """The same from earlier answers."""
        if self._past is None or not len(self._past):
            return None
        counts = self._past.counts
        keys = keys_of(tail, self._parameters.ngram_max)
        for n in range(len(keys), self._parameters.ngram_min - 1, -1):
            row = counts.find(keys[n - 1])
            if row >= 0:
                token, count = counts.favourite(row)
                if self._static is not None:
                    token, count = self._weighed(tail, token, count, counts.followers(row).get)
                if sure := _LEARNED.confidence(n, count, counts.seen(row)):
                    return token, sure
        return None

    def _from_static(self, tail: list[int]) -> tuple[int, float] | None:
        """The static table's favourite, where nobody else knows more."""
        row = self._static_row(tail)
        if self._static is None or row < 0 or self._parameters.ngram_min > STATIC_N:
            return None
        token, count = self._static.favourite(row)
        sure = _STATIC.confidence(STATIC_N, count, self._static.seen(row))
        return (token, sure) if sure else None

    def _static_row(self, tail: list[int]) -> int:
        if self._static is None or len(tail) < STATIC_N:
            return -1
        return self._static.find(keys_of(tail, STATIC_N)[-1])

    def _weighed(
        self, tail: list[int], favourite: int, count: int, followed: Callable[[int], int | None]
    ) -> tuple[int, int]:
        """The follower with the most weight, and how often it came: counts times static counts.

        Only the static table's 16 most frequent are put against the favourite.
        """
        row = self._static_row(tail)
        if self._static is None or row < 0:
            return favourite, count
        static = self._static.followers(row)
        best, best_count = favourite, count
        most = count * (_STATIC_WEIGHT * static.get(favourite, 0) or 1)
        for token, weight in static.items():
            its = followed(token) or 0
            if its * _STATIC_WEIGHT * weight > most:
                best, best_count, most = token, its, its * _STATIC_WEIGHT * weight
        return best, best_count
