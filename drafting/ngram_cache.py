"""The cache drafter: how often each token followed each of the last 1 to 4 tokens in this context.

The method is llama.cpp's lookup cache (``ngram-cache``), context tier.
"""

from __future__ import annotations

from drafting.drafter import NO_DRAFT, Draft, Draw, HistoryDrafter
from drafting.parameters import CacheParameters

N_MAX = 4
# By n: how often a context must have been seen, and what share its favourite must have, to be
# believed. llama.cpp's values for the context tier: longer contexts need less proof.
_MIN_SEEN = (0, 2, 2, 1, 1)
_MIN_SHARE = (0.0, 0.66, 0.5, 0.5, 0.5)
# By n: how much a context seen but a few times may mislead, fitted to recorded answers.
_DOUBT = (0.0, 1.2, 0.6, 0.5, 0.1)


class _Followers:
    """What followed one context, and how often; ``favourite`` is the newest of the most frequent."""

    __slots__ = ("counts", "favourite", "seen")

    def __init__(self, token: int) -> None:
        self.counts = {token: 1}
        self.favourite = token
        self.seen = 1

    def add(self, token: int) -> None:
        self.seen += 1
        count = self.counts[token] = self.counts.get(token, 0) + 1
        if count >= self.counts[self.favourite]:
            self.favourite = token

    @property
    def share(self) -> float:
        return self.counts[self.favourite] / self.seen


class NgramCache(HistoryDrafter):
    name = "cache"

    def __init__(self) -> None:
        super().__init__()
        self._forget()
        self.configure(CacheParameters())

    def configure(self, parameters: CacheParameters) -> None:
        """For the next answers; what is counted stays the same."""
        self._parameters = parameters

    def _forget(self) -> None:
        # For each n, from the last n tokens to what followed. Most contexts occur once, and there
        # are four for each token of the history: those are only their follower's number.
        self._contexts: list[dict[tuple[int, ...], int | _Followers]] = [{} for _ in range(N_MAX + 1)]

    def _learn(self, token: int) -> None:
        before = self.history[-N_MAX - 1 : -1]
        for n in range(1, len(before) + 1):
            contexts, key = self._contexts[n], tuple(before[-n:])
            followers = contexts.get(key)
            if followers is None:
                contexts[key] = token
                continue
            if isinstance(followers, int):
                followers = contexts[key] = _Followers(followers)
            followers.add(token)

    def propose(self, limit: int, draw: Draw) -> Draft:
        tail = self.history[-N_MAX:]
        draft: list[int] = []
        confidence: list[float] = []
        while len(draft) < limit and (found := self._most_likely(tail)) is not None:
            token, sure = found
            draft.append(token)
            confidence.append(sure)
            tail = [*tail[1 - N_MAX :], token]
        if not draft:
            return NO_DRAFT
        return Draft(draft, confidence=confidence).probable(self._parameters.p_min)

    def _most_likely(self, tail: list[int]) -> tuple[int, float] | None:
        """The favourite of the longest context that is sure enough, and how sure (0 to 1)."""
        longest, shortest = self._parameters.ngram_max, self._parameters.ngram_min
        for n in range(min(len(tail), longest), shortest - 1, -1):
            followers = self._contexts[n].get(tuple(tail[-n:]))
            if followers is None:
                continue
            if isinstance(followers, int):
                seen, share, favourite = 1, 1.0, followers
            else:
                seen, share, favourite = followers.seen, followers.share, followers.favourite
            if seen >= _MIN_SEEN[n] and share >= _MIN_SHARE[n]:
                return favourite, share * (1 - _DOUBT[n] / (seen + 1))
        return None
