"""llama.cpp as a target: a native context behind the loop's interface."""

from __future__ import annotations

import collections.abc

from drafting.distribution import Distribution
from drafting.drafter import Interrupted
from drafting.target import Row
from native.context import Context, Logits
from native.errors import DecodeAborted
from native.sampler import SamplerChain


class LlamaTarget:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.n_ctx = context.n_ctx
        self.n_vocab = context.model.n_vocab
        self.n_batch = context.n_batch
        self.n_outputs = context.n_outputs

    def decode(self, rows: collections.abc.Sequence[Row]) -> None:
        try:
            self.context.decode(rows)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error

    def rewind(self, seq: int, length: int) -> bool:
        return self.context.rewind(seq, length)

    def forget(self, seq: int) -> None:
        self.context.forget(seq)


class LlamaSource:
    """Next-token distributions from a context's logits: argmax without a chain, else sampled."""

    def __init__(self, context: Context, chain: SamplerChain | None) -> None:
        self._context = context
        self._chain = chain

    def at(self, output: int) -> Distribution | int:
        row = self._context.logits()[output]
        return int(row.argmax()) if self._chain is None else self._distribution(row)

    def distribution(self, output: int) -> Distribution:
        """The same for a drafter, which samples; the source must have a chain."""
        return self._distribution(self._context.logits()[output])

    def _distribution(self, row: Logits) -> Distribution:
        if self._chain is None:
            raise ValueError("a greedy source has no distribution")
        return Distribution(*self._chain.distribution(row))

    def close(self) -> None:
        """Free the sampler chain; harmless when called again."""
        if self._chain is not None:
            self._chain.close()


def llama_source(
    context: Context, *, temperature: float, top_k: int, top_p: float, min_p: float
) -> LlamaSource:
    """The source for one request's sampling settings; temperature 0 is greedy."""
    if temperature == 0:
        return LlamaSource(context, None)
    chain = SamplerChain(
        context.model.n_vocab, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )
    return LlamaSource(context, chain)
