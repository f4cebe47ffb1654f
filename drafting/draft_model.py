"""The draft-model drafter: a small GGUF with the target's vocabulary guesses token by token.

Speculative decoding in its first form (Leviathan et al. 2023, Chen et al. 2023): it sees the
target's token ids, draws from its own distribution q and hands q over for verification.
"""

from __future__ import annotations

import collections.abc

from drafting.neural import SEQ, NeuralDrafter, NeuralName
from drafting.parameters import AUTOMATIC
from drafting.target import Row
from native.context import Context, Logits


class DraftModel(NeuralDrafter):
    """Its KV cache holds ``_cached``; whatever of it the target did not commit is rewound before the
    next draft. When its context is full it pauses, and the answer goes on without it.
    """

    name: NeuralName = "draft"

    def __init__(self, context: Context) -> None:
        super().__init__(context, AUTOMATIC.draft)
        self._cached: list[int] = []
        self._matched = 0  # leading tokens of _cached known to equal those of _tokens

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        super().begin(tokens)
        self._matched = 0

    @property
    def behind(self) -> int:
        return len(self._tokens) - self._match()

    def practise(self, rows: int) -> None:
        self.context.decode([Row(SEQ, 0, i, i == rows - 1) for i in range(rows)])
        self.context.forget(SEQ)
        self._cached.clear()
        self._matched = 0

    def _room(self) -> int:
        # The last drafted token is never decoded here, so the context needs one place less.
        return self.context.n_ctx - len(self._tokens) + 1

    def _match(self) -> int:
        tokens, cached = self._tokens, self._cached
        n = self._matched
        while n < min(len(tokens), len(cached)) and tokens[n] == cached[n]:
            n += 1
        self._matched = n
        return n

    def _read(self, end: int) -> None:
        tokens, cached = self._tokens, self._cached
        n = min(self._match(), end)
        if n < len(cached):
            self.context.rewind(SEQ, n)
            self._matched = self.context.length(SEQ)
            del cached[self._matched :]
        while len(cached) < end:
            start = len(cached)
            piece = tokens[start : min(end, start + self.context.n_batch)]
            rows = [Row(SEQ, t, start + i, False) for i, t in enumerate(piece)]
            rows[-1] = rows[-1]._replace(output=start + len(piece) == len(tokens))
            self.context.decode(rows)
            cached.extend(piece)
            self._matched = len(cached)

    def _start(self) -> Logits:
        # At least the last token is read again, since its logits start the draft.
        if self._match() == len(self._tokens):
            self._read(len(self._tokens) - 1)
        self._read(len(self._tokens))
        row: Logits = self.context.logits()[0]
        return row

    def _extend(self, token: int) -> Logits:
        self.context.decode([Row(SEQ, token, len(self._cached), True)])
        self._cached.append(token)
        row: Logits = self.context.logits()[0]
        return row
