"""What drafters share that go on from the target's hidden states: how far they have read them."""

from __future__ import annotations

from drafting.hidden_states import HiddenStates
from drafting.neural import SEQ, NeuralDrafter
from drafting.parameters import NeuralParameters
from native.context import Context


class HiddenDrafter(NeuralDrafter):
    """Its KV cache holds what it read of committed positions, up to ``_end``; what it drafted behind them
    is rewound, since the target's hidden states are the better ones.

    Positions whose hidden states were not kept are left out: then it drafts from the later ones alone.
    """

    def __init__(
        self, context: Context, parameters: NeuralParameters, hidden: HiddenStates, seq: int
    ) -> None:
        """``hidden``: of the target, whose sequence ``seq`` it drafts for."""
        super().__init__(context, parameters)
        self._hidden = hidden
        self._seq = seq
        self._end = 0

    def _cut(self, end: int) -> None:
        """Keep what was read of positions before ``end``."""
        self._end = max(0, min(self._end, end))

    def _go_on(self, first: int) -> None:
        """Rewind the KV cache to ``_end``. Reading begins at ``first`` instead where nothing before it can
        be read any more, or where the KV cache is not what it should be."""
        self.context.rewind(SEQ, self._end)
        if self._end < first or self.context.length(SEQ) != self._end:
            self.context.forget(SEQ)
            self._end = first

    def _unread(self) -> None:
        """Forget what was read."""
        self.context.forget(SEQ)
        self._end = 0
