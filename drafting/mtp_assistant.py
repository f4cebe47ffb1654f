"""The MTP drafter of Gemma 4: a small model that looks into its target's own KV cache.

It has none of its own, so there is nothing to read and nothing to rewind. All tokens of a draft are said
at the position of the first, as in llama.cpp's common/speculative.cpp; what passes from one to the next is
the hidden state alone.
"""

from __future__ import annotations

import numpy as np

from drafting.hidden_states import Floats, HiddenStates
from drafting.neural import NeuralDrafter, NeuralName
from drafting.parameters import AUTOMATIC
from drafting.target import Row
from native.context import Logits
from native.head_context import HeadContext


class MtpAssistant(NeuralDrafter):
    """The target's KV cache must hold all committed tokens but the last when a draft is asked for.

    llama.cpp empties the KV cache that it is to share when the context is made.
    """

    name: NeuralName = "mtp"

    def __init__(self, context: HeadContext, hidden: HiddenStates, seq: int = 0) -> None:
        """``hidden``: of the last layer of the target, whose sequence ``seq`` it drafts for."""
        super().__init__(context, AUTOMATIC.mtp)
        self._head = context
        self._hidden = hidden
        self._seq = seq

    @property
    def behind(self) -> int:
        return 0

    def practise(self, rows: int) -> None:
        if rows == 1:
            self._said_behind(0, np.zeros((1, self._hidden.width), dtype=np.float32))

    def _room(self) -> int:
        # The target's next pass needs a place for the last committed token and for each of the draft.
        return self.context.n_ctx - len(self._tokens)

    def _read(self, end: int) -> None:
        """The target has."""

    def _start(self) -> Logits | None:
        last = len(self._tokens) - 1
        known = self._hidden.span(self._seq)
        if last - 1 not in known or self._head.length(self._seq) != last:
            return None
        return self._said_behind(self._tokens[last], self._hidden.rows(self._seq, range(last - 1, last)))

    def _extend(self, token: int) -> Logits:
        return self._said_behind(token, self._head.states()[-1:].copy())

    def _said_behind(self, token: int, state: Floats) -> Logits:
        """The logits of the token after this one, which came of this hidden state."""
        position = self._head.length(self._seq)
        self._head.decode_states([Row(self._seq, token, position, True)], state)
        row: Logits = self._head.logits()[-1]
        return row
