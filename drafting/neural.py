"""What neural drafters share: q made by the target's sampler settings, and drafting token by token."""

from __future__ import annotations

import collections.abc
from abc import ABC, abstractmethod
from functools import partial
from typing import Literal

import numpy as np

from drafting.distribution import Distribution
from drafting.drafter import NO_DRAFT, Draft, Draw, Interrupted
from drafting.parameters import NeuralParameters
from drafting.sharpness import Sharpness
from native.context import Context, Logits
from native.errors import DecodeAborted
from native.sampler import SamplerChain, SamplerOptions

NeuralName = Literal["draft", "eagle3", "mtp", "dflash", "dspark"]
SEQ = 0  # each sequence's drafter has a context of its own
_TOP = 10  # confidence is the favourite's share among this many, as in llama.cpp's draft sampler


class NeuralDrafter(ABC):
    """A model in a context of its own, which follows the committed tokens when it is asked to.

    What it drew from q is handed over with q, for verification (Leviathan et al. 2023, Chen et al. 2023).
    """

    name: NeuralName
    costly = True
    doubt = 1.0  # it is another witness than those that look the text up
    drafts_blocks = False  # a draft takes as long whatever its length

    def __init__(self, context: Context, parameters: NeuralParameters) -> None:
        self.context = context
        self.configure(parameters)
        self._tokens: list[int] = []
        self._options = SamplerOptions()
        self._chain = SamplerChain(context.model.n_vocab, self._options)
        self._sharpness = Sharpness()

    def set_sampling(self, options: SamplerOptions) -> None:
        """Draw the way the target will, from the next request on, or more sharply where that was accepted
        more often.

        Its grammar is left out: what it forbids is rejected, and looking at it takes time that a
        small model does not have.
        """
        self._chain.close()
        self._chain = SamplerChain(self.context.model.n_vocab, options, n_ctx=self.context.n_ctx)
        if options != self._options:
            self._sharpness = Sharpness()
        self._options = options

    def configure(self, parameters: NeuralParameters) -> None:
        """For the next answers.

        ``p_min`` looks at the distribution, never at the token drawn from it: a rule about the token
        would change q behind the verifier's back.
        """
        self._parameters = parameters

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._chain.begin(tokens)

    def commit(self, tokens: collections.abc.Sequence[int]) -> None:
        self._tokens.extend(tokens)
        if self._chain.remembers:
            for token in tokens:
                self._chain.accept(token)

    def judged(self, drafted: int, accepted: int) -> None:  # noqa: B027  part of the interface
        """Its next pass is the same however the last draft fared."""

    @property
    @abstractmethod
    def behind(self) -> int:
        """Committed tokens that it must read before its next draft."""

    def catch_up(self) -> None:
        """Read all but the last of them, which the next draft reads anyway. Raises Interrupted."""
        try:
            self._read(len(self._tokens) - 1)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error

    def propose(self, limit: int, draw: Draw) -> Draft:
        limit = min(limit, self._parameters.n_max, self._room())
        if limit < 1:
            return NO_DRAFT
        try:
            row = self._start()
            if row is None:
                return NO_DRAFT
            with self._chain.trial():
                return self._draft(row, limit, draw)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error

    def _draft(self, row: Logits, limit: int, draw: Draw) -> Draft:
        drafted: list[int] = []
        made: list[Distribution] = []
        qs: list[Distribution] = []
        confidences: list[float] = []
        position = len(self._tokens)
        while True:
            q, confidence = self._distribution(row)
            if confidence < self._parameters.p_min:
                break
            made.append(q)
            q = self._sharpness.sharpened(q)
            token = draw(q, position + len(drafted))
            drafted.append(token)
            qs.append(q)
            confidences.append(min(confidence, 0.99))
            if len(drafted) == limit:
                break
            if self._chain.remembers:
                self._chain.accept(token)
            following = self._extend(token)
            if following is None:
                break
            row = following
        if not drafted:
            return NO_DRAFT
        return Draft(drafted, qs, confidences, learn=partial(self._learn, made))

    def _learn(
        self, made: collections.abc.Sequence[Distribution], targets: collections.abc.Sequence[Distribution]
    ) -> None:
        for q, p in zip(made, targets, strict=False):
            self._sharpness.learn(q, p)

    def _distribution(self, row: Logits) -> tuple[Distribution, float]:
        """q by a row of logits, and how sure it is of its favourite (0 to 1)."""
        if not self._chain.greedy:
            q = Distribution(*self._chain.distribution(row))
            return q, float(q.probs.max())
        row = self._chain.shaped(row)
        top = row[np.argpartition(row, -_TOP)[-_TOP:]].astype(np.float64)
        confidence = 1.0 / np.exp(top - top.max()).sum()
        return Distribution.certain(int(row.argmax())), float(confidence)

    # ---- what kinds differ in; all raise DecodeError

    @abstractmethod
    def practise(self, rows: int) -> None:
        """Read so many tokens of no meaning, as a draft or a catch-up would, and forget them."""

    @abstractmethod
    def _room(self) -> int:
        """Tokens that its context has room to draft."""

    @abstractmethod
    def _read(self, end: int) -> None:
        """Forget what was not committed, and read the first ``end`` committed tokens."""

    @abstractmethod
    def _start(self) -> Logits | None:
        """Read all committed tokens: the logits of the first token to draft, None where it cannot."""

    @abstractmethod
    def _extend(self, token: int) -> Logits | None:
        """Read a drafted token: the logits of the one after it, None where its draft ends with it."""
