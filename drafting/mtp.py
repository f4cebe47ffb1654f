"""The MTP drafter: next-n layers trained with the target, which go on from its last hidden state.

(Gloeckle et al. 2024; DeepSeek-V3 2024.) A head reads pairs: at position p, the token at p and the hidden
state of p - 1, so that what it says at p is the token at p + 1. Position 0 has a state of zeros. One
head alone goes on by its own hidden state; of several, the second says the second token, and so on. This
is how llama.cpp's common/speculative.cpp lines them up.
"""

from __future__ import annotations

import collections.abc

import numpy as np

from drafting.hidden_drafter import HiddenDrafter
from drafting.hidden_states import Floats, HiddenStates
from drafting.history import common_prefix
from drafting.neural import SEQ, NeuralName
from drafting.parameters import AUTOMATIC
from drafting.target import Row
from native.context import Logits
from native.head_context import HeadContext


class Mtp(HiddenDrafter):
    """It reads pairs made of committed tokens and true hidden states.

    Several heads share the cells of one KV cache, each with a layer of its own in it: whatever is read
    must be read by all of them.
    """

    name: NeuralName = "mtp"

    def __init__(self, context: HeadContext, hidden: HiddenStates, seq: int = 0) -> None:
        """``hidden``: of the last layer of the target, whose sequence ``seq`` it drafts for."""
        super().__init__(context, AUTOMATIC.mtp, hidden, seq)
        self._heads = context
        self._chained = context.n_heads > 1
        self._rows: list[Row] = []  # of the next drafted token's pass, the last of them being new
        self._states: Floats = np.empty((0, hidden.width), dtype=np.float32)

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        self._cut(common_prefix(self._tokens, tokens))
        super().begin(tokens)

    @property
    def behind(self) -> int:
        return len(self._tokens) - self._end

    def practise(self, rows: int) -> None:
        pairs = [Row(SEQ, 0, i, rows == 1) for i in range(rows)]
        states = np.zeros((rows, self._hidden.width), dtype=np.float32)
        if rows == 1:
            self._heads.decode_states(pairs, states)
        else:
            self._by_all_heads(pairs, states)
        self._unread()

    def _room(self) -> int:
        # The last drafted token is never decoded here, so the context needs one place less.
        room = self.context.n_ctx - len(self._tokens) + 1
        return min(room, self._heads.n_heads) if self._chained else room

    def _read(self, end: int) -> None:
        known = self._hidden.span(self._seq)
        first = known.start + 1 if known.start else 0
        end = min(end, known.stop + 1)
        self._go_on(first)
        while self._end < end:
            stop = min(end, self._end + self._heads.n_batch)
            rows = [Row(SEQ, self._tokens[p], p, False) for p in range(self._end, stop)]
            self._by_all_heads(rows, self._before(self._end, stop))
            self._end = stop

    def _before(self, start: int, stop: int) -> Floats:
        """The hidden states that are paired with the tokens of these positions."""
        if start:
            return self._hidden.rows(self._seq, range(start - 1, stop - 1))
        states = np.zeros((stop, self._hidden.width), dtype=np.float32)
        if stop > 1:
            states[1:] = self._hidden.rows(self._seq, range(stop - 1))
        return states

    def _by_all_heads(self, rows: list[Row], states: Floats) -> None:
        if not self._chained:
            self._heads.decode_states(rows, states)
            return
        for head in range(self._heads.n_heads):
            self._by_head(head, rows, states)

    def _by_head(self, head: int, rows: list[Row], states: Floats) -> None:
        """Read ``rows`` in the place of what the head before may have read there."""
        self._heads.rewind(SEQ, rows[0].pos)
        self._heads.select(head)
        self._heads.decode_states(rows, states)

    def _start(self) -> Logits | None:
        last = len(self._tokens) - 1
        known = self._hidden.span(self._seq)
        if not known.start < last <= known.stop:
            return None
        self._cut(last)  # the last pair is read again where it was, since its logits start the draft
        self._read(last)
        self._rows = [Row(SEQ, self._tokens[last], last, True)]
        self._states = self._before(last, last + 1).copy()
        row = self._next()
        if not self._chained:
            self._end = last + 1  # a true pair as well; of several heads the others have not read it
        return row

    def _extend(self, token: int) -> Logits:
        row = Row(SEQ, token, self._rows[-1].pos + 1, True)
        state = self._heads.states()[-1:].copy()
        if self._chained:
            self._rows = [*self._rows, row]
            self._states = np.concatenate((self._states, state))
        else:
            self._rows, self._states = [row], state
        return self._next()

    def _next(self) -> Logits:
        """The logits behind the last of the rows, by the head whose turn it is."""
        if self._chained:
            self._by_head(len(self._rows) - 1, self._rows, self._states)
        else:
            self._heads.decode_states(self._rows, self._states)
        row: Logits = self._heads.logits()[-1]
        return row
