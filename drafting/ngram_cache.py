"""The cache drafter: how often each token followed each of the last 1 to 4 tokens in this context.

The method is llama.cpp's lookup cache (``ngram-cache``), context tier.
"""

from __future__ import annotations

from drafting.drafter import NO_DRAFT, Draft, Draw, HistoryDrafter

N_MAX = 4
# By n: how often a context must have been seen, and what share its favourite must have, to be
# believed. llama.cpp's values for the context tier: longer contexts need less proof.
_MIN_SEEN = (0, 2, 2, 1, 1)
_MIN_SHARE = (0.0, 0.66, 0.5, 0.5, 0.5)


class NgramCache(HistoryDrafter):
    name = "cache"

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def _forget(self) -> None:
        # For each n, from the last n tokens to the tokens that followed and how often. The newest
        # follower is moved to the end, so that among equals the newest wins.
        self._followers: list[dict[tuple[int, ...], dict[int, int]]] = [{} for _ in range(N_MAX + 1)]

    def _learn(self, token: int) -> None:
        before = self.history[-N_MAX - 1 : -1]
        for n in range(1, len(before) + 1):
            counts = self._followers[n].setdefault(tuple(before[-n:]), {})
            counts[token] = counts.pop(token, 0) + 1

    def propose(self, limit: int, draw: Draw) -> Draft:
        tail = self.history[-N_MAX:]
        draft: list[int] = []
        while len(draft) < limit and (token := self._most_likely(tail)) is not None:
            draft.append(token)
            tail = [*tail[1 - N_MAX :], token]
        return Draft(draft) if draft else NO_DRAFT

    def _most_likely(self, tail: list[int]) -> int | None:
        """The favourite of the longest context that is sure enough."""
        for n in range(len(tail), 0, -1):
            counts = self._followers[n].get(tuple(tail[-n:]))
            if counts is None:
                continue
            seen = sum(counts.values())
            favourite = max(reversed(counts), key=counts.__getitem__)
            if seen >= _MIN_SEEN[n] and counts[favourite] >= _MIN_SHARE[n] * seen:
                return favourite
        return None
