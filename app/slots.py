"""The sequences of a target's KV cache, and what each still holds of an earlier answer."""

from __future__ import annotations

from collections.abc import Sequence

from drafting.history import common_prefix
from drafting.target import Target

_WORTH = 2  # tokens of another chat that may be lost for each token that need not be read


class Slots:
    """A request takes the slot that has most of its prompt already, and gives it back when it ends.

    Unless what a slot has besides is worth more than that: all chats begin alike, with a template's
    first words, and one that shares no more takes the slot that nobody asked for longest.
    """

    def __init__(self, target: Target, count: int) -> None:
        self._target = target
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
        shared = {slot: common_prefix(kept, tokens) for slot, kept in self._kept.items()}
        slot = max(shared, key=lambda s: shared[s])
        lost = len(self._kept[slot]) - shared[slot]
        if shared[slot] * _WORTH < lost:
            slot = next(iter(self._kept))
        computed = min(shared[slot], len(tokens) - 1)
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
