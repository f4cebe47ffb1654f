"""The EAGLE-3 drafter: one layer that goes on from the target's own hidden states (Li et al. 2025).

Its encoder makes one vector g of the hidden states of three target layers. Its decoder reads pairs:
at position p, the token at p + 1 and g of p, so that what it says at p is the token at p + 2. Where the
target has not computed a position yet, the decoder's own last hidden state stands for g. This is how
llama.cpp's common/speculative.cpp lines them up.
"""

from __future__ import annotations

import collections.abc

import numpy as np

from drafting.hidden_drafter import HiddenDrafter
from drafting.hidden_states import HiddenStates
from drafting.history import common_prefix
from drafting.neural import SEQ, NeuralName
from drafting.parameters import AUTOMATIC
from drafting.target import Row
from native.context import Logits
from native.head_context import HeadContext

# Logits of all rows of a pass are handed out or of none: so many rows at a draft's start are cheap.
_LAST_ROWS = 8


class Eagle3(HiddenDrafter):
    """It reads pairs made of committed tokens and true hidden states."""

    name: NeuralName = "eagle3"

    def __init__(self, context: HeadContext, hidden: HiddenStates, seq: int = 0) -> None:
        """``hidden``: of the target, whose sequence ``seq`` it drafts for."""
        super().__init__(context, AUTOMATIC.eagle3, hidden, seq)
        self._head = context
        self._position = 0  # of the next drafted token's pair

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        # The pair at p holds the token at p + 1, and its hidden state depends on all before.
        self._cut(common_prefix(self._tokens, tokens) - 1)
        super().begin(tokens)

    @property
    def behind(self) -> int:
        return len(self._tokens) - 1 - self._end

    def practise(self, rows: int) -> None:
        states = self._head.encode(np.zeros((rows, self._hidden.width), dtype=np.float32))
        self._head.decode_states([Row(SEQ, 0, i, rows <= _LAST_ROWS) for i in range(rows)], states)
        self._unread()

    def _room(self) -> int:
        # Its positions lie one before the target's, and the last drafted token is never decoded here.
        return self.context.n_ctx - len(self._tokens) + 2

    def _read(self, end: int) -> None:
        self._pair(end - 1, 0)

    def _start(self) -> Logits | None:
        end = len(self._tokens) - 1
        known = self._hidden.span(self._seq)
        if not known.start < end <= known.stop:
            return None
        self._cut(end - 1)  # at least the last pair is read again, since its logits start the draft
        self._pair(end, _LAST_ROWS)
        self._position = end
        row: Logits = self._head.logits()[-1]
        return row

    def _pair(self, end: int, outputs: int) -> None:
        """Make the pairs of positions before ``end``; the last of them, up to ``outputs``, with logits."""
        known = self._hidden.span(self._seq)
        end = min(end, known.stop)
        self._go_on(known.start)
        while self._end < end:
            start = self._end
            left = end - start
            n = left if left <= outputs else min(left - outputs, self._head.n_batch)
            states = self._head.encode(self._hidden.rows(self._seq, range(start, start + n)))
            rows = [Row(SEQ, self._tokens[p + 1], p, left <= outputs) for p in range(start, start + n)]
            self._head.decode_states(rows, states)
            self._end = start + n

    def _extend(self, token: int) -> Logits:
        state = self._head.states()[-1:].copy()
        self._head.decode_states([Row(SEQ, token, self._position, True)], state)
        self._position += 1
        row: Logits = self._head.logits()[-1]
        return row
