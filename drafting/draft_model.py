"""The draft-model drafter: a small GGUF with the target's vocabulary guesses token by token.

Speculative decoding in its first form (Leviathan et al. 2023, Chen et al. 2023): it sees the
target's token ids, draws from its own distribution q and hands q over for verification.
"""

from __future__ import annotations

import collections.abc

import numpy as np

from drafting.distribution import Distribution
from drafting.drafter import NO_DRAFT, Draft, Draw, Interrupted
from drafting.parameters import AUTOMATIC, DraftModelParameters
from drafting.target import Row
from native.context import Context
from native.errors import DecodeAborted
from native.sampler import SamplerChain, SamplerOptions

_SEQ = 0
_TOP = 10  # confidence is the favourite's share among this many, as in llama.cpp's draft sampler


class DraftModel:
    """Runs a draft model in a context of its own, kept in step with the committed tokens.

    Its KV cache holds ``_cached``; whatever of it the target did not commit is rewound before the
    next draft. When its context is full it pauses, and the answer goes on without it.
    """

    name = "draft"
    costly = True
    doubt = 1.0  # it is another witness than those that look the text up

    def __init__(self, context: Context) -> None:
        self.context = context
        self.configure(AUTOMATIC.draft)
        self._tokens: list[int] = []
        self._cached: list[int] = []
        self._matched = 0  # leading tokens of _cached known to equal those of _tokens
        self._chain = SamplerChain(context.model.n_vocab, SamplerOptions())

    def set_sampling(self, options: SamplerOptions) -> None:
        """Draw the way the target will, from the next request on.

        Its grammar is left out: what it forbids is rejected, and looking at it takes time that a
        small model does not have.
        """
        self._chain.close()
        self._chain = SamplerChain(self.context.model.n_vocab, options, n_ctx=self.context.n_ctx)

    def configure(self, parameters: DraftModelParameters) -> None:
        """For the next answers.

        ``p_min`` looks at the distribution, never at the token drawn from it: a rule about the token
        would change q behind the verifier's back.
        """
        self._parameters = parameters

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._matched = 0
        self._chain.begin(tokens)

    def commit(self, tokens: collections.abc.Sequence[int]) -> None:
        self._tokens.extend(tokens)
        if self._chain.remembers:
            for token in tokens:
                self._chain.accept(token)

    def judged(self, drafted: int, accepted: int) -> None:
        """Its next pass is the same however the last draft fared."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        # The last drafted token is never decoded here, so the context needs one place less.
        limit = min(limit, self._parameters.n_max, self.context.n_ctx - len(self._tokens) + 1)
        if limit < 1:
            return NO_DRAFT
        try:
            self._catch_up()
            with self._chain.trial():
                return self._draft(limit, draw)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error

    def _catch_up(self) -> None:
        """Rewind to what is still true and read the committed tokens it has not seen.

        At least the last token is read again, since its logits start the draft.
        """
        tokens, cached = self._tokens, self._cached
        n = self._matched
        while n < min(len(tokens), len(cached)) and tokens[n] == cached[n]:
            n += 1
        n = min(n, len(tokens) - 1)
        self._matched = n
        if n < len(cached):
            if not self.context.rewind(_SEQ, n):
                self.context.forget(_SEQ)
                n = self._matched = 0
            del cached[n:]
        while len(cached) < len(tokens):
            start = len(cached)
            piece = tokens[start : start + self.context.n_batch]
            last = start + len(piece) == len(tokens)
            rows = [Row(_SEQ, t, start + i, False) for i, t in enumerate(piece)]
            rows[-1] = rows[-1]._replace(output=last)
            self.context.decode(rows)
            cached.extend(piece)
        self._matched = len(tokens)

    def _draft(self, limit: int, draw: Draw) -> Draft:
        drafted: list[int] = []
        qs: list[Distribution] = []
        confidences: list[float] = []
        position = len(self._tokens)
        while True:
            q, confidence = self._next()
            if confidence < self._parameters.p_min:
                break
            token = draw(q, position + len(drafted))
            drafted.append(token)
            qs.append(q)
            confidences.append(min(confidence, 0.99))
            if len(drafted) == limit:
                break
            if self._chain.remembers:
                self._chain.accept(token)
            self.context.decode([Row(_SEQ, token, len(self._cached), True)])
            self._cached.append(token)
        return Draft(drafted, qs, confidences) if drafted else NO_DRAFT

    def _next(self) -> tuple[Distribution, float]:
        """q after the last decoded token, and how sure it is of its favourite (0 to 1)."""
        row = self.context.logits()[0]
        if not self._chain.greedy:
            q = Distribution(*self._chain.distribution(row))
            return q, float(q.probs.max())
        row = self._chain.shaped(row)
        top = row[np.argpartition(row, -_TOP)[-_TOP:]].astype(np.float64)
        confidence = 1.0 / np.exp(top - top.max()).sum()
        return Distribution.certain(int(row.argmax())), float(confidence)
