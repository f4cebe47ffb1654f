"""The sequences of a target's KV cache, and what each still holds of an earlier answer."""

from __future__ import annotations

from collections.abc import Sequence

from app.worker.prompt_cache import Cached, PromptCache
from drafting.history import common_prefix
from drafting.target import Target

_WORTH = 2  # tokens of another chat that may be lost for each token that need not be read
# Reading a token again takes 20 times what copying one does where a graphics card reads, and hundreds of
# times where the processor does; but not every conversation goes on.
_FEW, _COPIED = 32, 16


class Slots:
    """A request takes the slot that has most of its prompt already, and gives it back when it ends.

    Unless what a slot has besides is worth more than that: all chats begin alike, with a template's
    first words, and one that shares no more takes the slot that nobody asked for longest. What a slot
    loses goes to the prompt cache and comes back from there, into any slot. So does what other free
    slots hold: the attention of all sequences runs over the KV cache as a whole.
    """

    def __init__(self, target: Target, count: int, cache: PromptCache) -> None:
        self._target = target
        self._cache = cache
        # Of free ones, the one first that was used longest ago.
        self._kept: dict[int, Sequence[int]] = dict.fromkeys(range(count), ())
        self._read: dict[int, int] = {}  # tokens of them that exact mode has read as a prompt

    @property
    def n_free(self) -> int:
        return len(self._kept)

    def take(self, tokens: list[int], exact: bool) -> tuple[int, int]:
        """A free slot, cut to the prefix it shares with ``tokens``, and how many tokens that is.

        At least the last token is computed again: its logits start the answer. Exact mode takes
        only what it would compute to the last bit as it is: whole blocks of prompts that it has
        read, or the same prompt.
        """
        target = self._target
        slot, common = self._choose(tokens)
        computed = min(common, len(tokens) - 1)
        read = self._read.pop(slot, 0)
        if exact:
            computed = min(computed, read)
            if not computed == read == len(tokens) - 1:
                computed -= computed % target.n_batch
        del self._kept[slot]
        left = target.rewind(slot, computed)
        while exact and left < computed:
            computed = left - left % target.n_batch
            left = target.rewind(slot, computed)
        return slot, left

    def give_back(self, slot: int, kept: Sequence[int], read: int = 0) -> None:
        """``kept``: the tokens in it; the first ``read`` of them were read by exact mode."""
        self._kept[slot] = kept
        if read:
            self._read[slot] = min(len(kept), read)

    # ---- inside

    def _choose(self, tokens: list[int]) -> tuple[int, int]:
        """A free slot that has, or has got, most of ``tokens``, and how many; the others lose what is
        special to them."""
        shared = {slot: common_prefix(kept, tokens) for slot, kept in self._kept.items()}
        slot = max(shared, key=lambda s: shared[s])
        lost = len(self._kept[slot]) - shared[slot]
        oldest = next(iter(self._kept))
        if shared[slot] * _WORTH < lost:
            slot = oldest
        cached, common = self._cache.best(tokens)
        if cached is not None and _pays(common - shared[slot], len(cached.tokens)):
            slot = oldest
            self._keep(slot, common_prefix(self._kept[slot], cached.tokens))
            left = self._bring_back(slot, cached)
            shared[slot] = min(common, left)
            self._cache.drop(cached)
            if left and _pays(len(cached.tokens) - common, len(cached.tokens)):
                self._cache.add(cached)  # the slot loses what is special to it
        else:
            self._keep(slot, shared[slot])
        if self._target.saves_all:
            self._clear_others(slot, tokens)
        return slot, shared[slot]

    def _clear_others(self, slot: int, tokens: list[int]) -> None:
        """All but what ``tokens`` begin with: a template's first words, or an agent's, are likely to come
        again."""
        for other, kept in self._kept.items():
            begun = common_prefix(kept, tokens)
            if other != slot and self._keep(other, begun):
                left = self._target.rewind(other, begun)
                self._kept[other] = kept[:left]
                if read := self._read.pop(other, 0):
                    self._read[other] = min(left, read)

    def _keep(self, slot: int, needed: int) -> bool:
        """Copy what a slot holds into the cache if it is to lose much of it: all but ``needed`` tokens.
        Whether it is there."""
        kept = self._kept[slot]
        if not _pays(len(kept) - needed, len(kept)):
            return False
        if self._cache.has(kept):
            return True
        room = self._cache.room
        state = self._target.save(slot, room) if room else None
        if state is not None:
            self._cache.add(Cached(kept, state, self._read.get(slot, 0)))
        return state is not None

    def _bring_back(self, slot: int, cached: Cached) -> int:
        """Put a conversation into a slot; the tokens that it has then."""
        left = self._target.restore(slot, cached.state)
        self._kept[slot] = cached.tokens[:left]
        self._read.pop(slot, None)
        if left and cached.read:
            self._read[slot] = cached.read
        return left


def _pays(saved: int, copied: int) -> bool:
    """To copy so many tokens, for so many that need not be read again perhaps."""
    return saved >= max(_FEW, copied / _COPIED)
