"""The DFlash drafter: one pass over masked places gives a whole block of tokens (Chen et al. 2026).

The target's hidden states of the committed text go straight into its KV cache, one position each. Its
block is the last committed token, at the position where the target has not computed it yet, and masks
behind it; every row sees the whole block, and the row of a mask says which token belongs there. So
given the text the tokens of a block are drawn independently of each other. This is how llama.cpp's
common/speculative.cpp lines them up.
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
from native.block_context import BlockContext
from native.context import Logits


class DFlash(HiddenDrafter):
    """It reads the hidden states alone.

    A block that does not fit into its context any more is not drafted, and the answer goes on without.
    """

    name: NeuralName = "dflash"
    drafts_blocks = True

    def __init__(self, context: BlockContext, hidden: HiddenStates, seq: int = 0) -> None:
        """``hidden``: of the target, whose sequence ``seq`` it drafts for."""
        super().__init__(context, AUTOMATIC.dflash, hidden, seq)
        self._blocks = context
        self._block: Logits = np.empty((0, 0), dtype=np.float32)  # of the last block, valid while it drafts
        self._place = 0  # the row of the next token to draft

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        # The last token's place is the block's.
        self._cut(min(common_prefix(self._tokens, tokens), len(tokens) - 1))
        super().begin(tokens)

    @property
    def behind(self) -> int:
        return len(self._tokens) - 1 - self._end

    @property
    def _known_rows(self) -> int:
        """Rows of a block before the first that drafts."""
        return 1

    @property
    def _length(self) -> int:
        """Tokens that a block drafts. Fewer masks make other drafts, so the limit of one pass only cuts."""
        longest = min(self._blocks.block_size, self._blocks.n_batch) - self._known_rows
        return min(longest, self._parameters.n_max)

    def practise(self, rows: int) -> None:
        self._blocks.inject(np.zeros((rows, self._hidden.width), dtype=np.float32), 0)
        if rows == 1:  # a draft's
            self._decode_block(0, rows)
        self._unread()

    def _room(self) -> int:
        length = self._length
        rows = self._known_rows + length
        return length if len(self._tokens) - 1 + rows <= self._blocks.n_ctx else 0

    def _read(self, end: int) -> None:
        """Positions before ``end``, as far as their hidden states are known."""
        known = self._hidden.span(self._seq)
        end = min(end, known.stop)
        self._go_on(known.start)
        while self._end < end:
            positions = range(self._end, min(end, self._end + self._blocks.n_batch))
            self._blocks.inject(self._hidden.rows(self._seq, positions), positions.start)
            self._end = positions.stop

    def _start(self) -> Logits | None:
        end = len(self._tokens) - 1
        known = self._hidden.span(self._seq)
        if not known.start < end <= known.stop:
            return None
        self._read(end)
        self._decode_block(self._tokens[-1], end)
        row: Logits = self._block[self._place]
        return row

    def _decode_block(self, token: int, first: int) -> None:
        masks = self._known_rows + self._length - 1
        block = [token, *[self._blocks.mask] * masks]
        self._blocks.decode([Row(SEQ, t, first + i, True) for i, t in enumerate(block)])
        self._block = self._blocks.logits()
        self._place = self._known_rows

    def _extend(self, token: int) -> Logits | None:
        self._place += 1
        row: Logits = self._block[self._place]
        return row
