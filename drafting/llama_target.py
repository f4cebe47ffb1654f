"""llama.cpp as a target: a native context behind the loop's interface."""

from __future__ import annotations

import collections.abc
import itertools
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from drafting.distribution import Distribution
from drafting.drafter import Interrupted
from drafting.hidden_states import Floats, HiddenStates
from drafting.target import Row, SavedState, TokenChance
from native.context import Context
from native.errors import DecodeAborted
from native.grammar import Grammar
from native.sampler import SamplerChain, SamplerOptions
from native.saved_sequence import SavedSequence

_HIDDEN_BYTES = 256 << 20  # of hidden states kept for a sequence
_seq = attrgetter("seq")


@dataclass(frozen=True)
class SavedSlot:
    """``hidden``: the states of its positions from ``first`` on, where a drafter reads them."""

    memory: SavedSequence
    first: int = 0
    hidden: Floats | None = None

    def usable(self, length: int) -> int:
        return self.memory.usable(length)

    @property
    def n_bytes(self) -> int:
        return self.memory.n_bytes + (self.hidden.nbytes if self.hidden is not None else 0)


class LlamaTarget:
    """``hidden``: the states that a neural drafter reads, None where none does."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.hidden: HiddenStates | None = None
        self.n_ctx = context.n_ctx
        self.n_vocab = context.model.n_vocab
        self.n_batch = context.n_batch
        self.n_outputs = context.n_outputs
        self.n_slots = context.options.n_seq_max
        # Of layers with a sliding window llama.cpp saves the window alone.
        self.saves_all = not context.model.n_swa

    def keep_hidden(
        self, layers: collections.abc.Sequence[int], *, last_as_input: bool = False
    ) -> HiddenStates:
        """Keep what these layers compute, for every row from the next pass on; see Context.keep_hidden."""
        self.context.keep_hidden(layers, last_as_input=last_as_input)
        width = sum(self.context.hidden_width(layer) for layer in layers)
        capacity = min(self.n_ctx, _HIDDEN_BYTES // (4 * width))
        if self.hidden is None or self.hidden.width != width:
            self.hidden = HiddenStates(width, capacity)
        return self.hidden

    def decode(self, rows: collections.abc.Sequence[Row]) -> None:
        try:
            self.context.decode(rows)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error
        if self.hidden is not None:
            layers = self.context.hidden()
            if len(rows) == 1:  # most passes: as little work as can be
                self.hidden.put(rows[0].seq, rows[0].pos, layers)
                return
            start = 0
            for seq, run in itertools.groupby(rows, key=_seq):
                end = start + len(list(run))
                self.hidden.put(seq, rows[start].pos, [layer[start:end] for layer in layers])
                start = end

    def rewind(self, seq: int, length: int) -> int:
        left = self.context.rewind(seq, length)
        if self.hidden is not None:
            self.hidden.cut(seq, left)
        return left

    def forget(self, seq: int) -> None:
        if self.hidden is not None:
            self.hidden.drop(seq)
        self.context.forget(seq)

    def save(self, seq: int, most_bytes: int) -> SavedSlot | None:
        saved = self.context.save(seq, most_bytes)
        if saved is None or self.hidden is None:
            return SavedSlot(saved) if saved is not None else None
        known = self.hidden.span(seq)
        if not known or saved.n_bytes + 4 * self.hidden.width * len(known) > most_bytes:
            return SavedSlot(saved)  # a drafter then begins behind it
        return SavedSlot(saved, known.start, self.hidden.rows(seq, known).copy())

    def restore(self, seq: int, saved: SavedState) -> int:
        assert isinstance(saved, SavedSlot)
        left = self.context.restore(seq, saved.memory)
        if self.hidden is not None:
            self.hidden.drop(seq)
            if left and saved.hidden is not None:
                self.hidden.put(seq, saved.first, [saved.hidden])
        return left


class LlamaSource:
    """Next-token distributions from a context's logits: argmax without a chain, else the chain's.

    The chain follows the answer by what it is told of each place (see TokenSource): rejected tokens
    never reach it.
    """

    def __init__(self, context: Context, chain: SamplerChain | None) -> None:
        self._context = context
        self._chain = chain

    def at(self, output: int, last: int | None) -> Distribution | int:
        row = self._context.logits()[output]
        chain = self._chain
        if chain is None:
            return int(row.argmax())
        if last is not None and chain.remembers:
            chain.accept(last)
        return chain.best(row) if chain.greedy else Distribution(*chain.distribution(row))

    def chance(self, output: int, token: int, top: int) -> TokenChance:
        row = self._context.logits()[output].astype(np.float64)
        row -= row.max()
        row -= np.log(np.exp(row).sum())
        first = np.argpartition(row, -top)[-top:] if top else np.empty(0, dtype=np.intp)
        ordered = first[np.argsort(-row[first], kind="stable")]
        return TokenChance(token, float(row[token]), tuple((int(t), float(row[t])) for t in ordered))

    def close(self) -> None:
        """Free the sampler chain; harmless when called again."""
        if self._chain is not None:
            self._chain.close()


def llama_source(
    context: Context,
    options: SamplerOptions,
    prompt: collections.abc.Sequence[int],
    grammar: Grammar | None = None,
) -> LlamaSource:
    """The source for one answer behind ``prompt``; it closes ``grammar`` when it is closed."""
    if options.plain_greedy and grammar is None:
        return LlamaSource(context, None)
    chain = SamplerChain(context.model.n_vocab, options, grammar, context.n_ctx)
    chain.begin(prompt)
    return LlamaSource(context, chain)
