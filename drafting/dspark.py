"""The DSpark drafter: DFlash with a Markov head and a confidence head (DeepSeek 2026).

The Markov head adds to each row of a block what the token drafted before it makes likely. llama.cpp
computes it within the pass, before anything is drawn, and goes on from the favourite of each row.
"""

from __future__ import annotations

from drafting.dflash import DFlash
from drafting.distribution import Distribution
from drafting.hidden_states import HiddenStates
from drafting.neural import NeuralName
from drafting.parameters import AUTOMATIC
from native.block_context import BlockContext
from native.context import Logits


class DSpark(DFlash):
    """Where another token than a row's favourite is drawn the draft ends with it: the rows behind were
    computed for the favourite. What was drawn keeps its q, so verification stays lossless.
    """

    name: NeuralName = "dspark"

    def __init__(
        self, context: BlockContext, hidden: HiddenStates, seq: int = 0, *, states_confidence: bool
    ) -> None:
        """``states_confidence``: the file has a confidence head, whose word ``p_min`` then looks at."""
        super().__init__(context, hidden, seq)
        self.configure(AUTOMATIC.dspark)
        self._states_confidence = states_confidence
        self._confidences: list[float] = []

    @property
    def _known_rows(self) -> int:
        return 0 if self._blocks.drafts_from_anchor else 1

    def _decode_block(self, token: int, first: int) -> None:
        super()._decode_block(token, first)
        if self._states_confidence:
            self._confidences = self._blocks.confidences()

    def _distribution(self, row: Logits) -> tuple[Distribution, float]:
        q, share = super()._distribution(row)
        return q, self._confidences[self._place] if self._states_confidence else share

    def _extend(self, token: int) -> Logits | None:
        if token != int(self._block[self._place].argmax()):
            return None
        return super()._extend(token)
