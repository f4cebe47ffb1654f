"""llama.cpp's sampler chain as a function from logits to the distribution it would sample from."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.candidates import Candidates
from native.errors import GrammarError, NativeError
from native.grammar import Grammar, Ids
from native.owned import Owned

Logits = npt.NDArray[np.float32]

# How many of the likeliest tokens are shown to the grammar before all of them are.
_FAVOURITES = (256, 4096)
_ROUNDING = 1e-4  # relative, and far above that of llama.cpp's sums of 32-bit floats


@dataclass(frozen=True)
class SamplerOptions:
    """llama.cpp's names. What each default does is nothing, but for ``temperature``: 0 is greedy.

    Penalties look at the last ``penalty_last_n`` tokens, prompt and answer alike, as in llama-server;
    -1 looks at all of them. ``logit_bias`` adds to the logits of single tokens; -inf bans one.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    @property
    def penalises(self) -> bool:
        changed = (self.repeat_penalty, self.frequency_penalty, self.presence_penalty) != (1.0, 0.0, 0.0)
        return changed and self.penalty_last_n != 0

    @property
    def plain_greedy(self) -> bool:
        """The next token is the likeliest one, and nothing else matters."""
        return self.temperature == 0 and not self.penalises and not self.logit_bias


class SamplerChain(Owned):
    """Owns llama.cpp's samplers in llama.cpp's order: bias, penalties, grammar, top-k, top-p, min-p,
    temperature.

    The chain shapes the distribution and never draws: drawing belongs to verification.
    """

    def __init__(
        self, n_vocab: int, options: SamplerOptions, grammar: Grammar | None = None, n_ctx: int = 0
    ) -> None:
        """``grammar`` is the chain's from here on. ``n_ctx``: what a penalty_last_n of -1 looks at."""
        self._shape: Any = None  # changes the logits of single tokens
        self._cut: Any = None  # drops unlikely tokens
        self._grammar = grammar
        self._options = options
        self._candidates = Candidates(n_vocab)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._window = n_ctx if options.penalty_last_n < 0 else options.penalty_last_n
        shape = []
        if options.logit_bias:
            shape.append(_bias(n_vocab, options.logit_bias))
        if options.penalises:
            penalties = (options.repeat_penalty, options.frequency_penalty, options.presence_penalty)
            shape.append(lib.llama_sampler_init_penalties(n_vocab, self._window, *penalties))
        if shape:
            self._shape = _chain(shape)
        if options.temperature > 0:
            cut = []
            if options.top_k > 0:
                cut.append(lib.llama_sampler_init_top_k(options.top_k))
            if options.top_p < 1.0:
                cut.append(lib.llama_sampler_init_top_p(options.top_p, 1))
            if options.min_p > 0.0:
                cut.append(lib.llama_sampler_init_min_p(options.min_p, 1))
            self._cut = _chain([*cut, lib.llama_sampler_init_temp(options.temperature)])
        self.greedy = options.temperature == 0
        self.remembers = options.penalises or grammar is not None  # what was said matters

    # ---- what was said

    def begin(self, history: Sequence[int]) -> None:
        """An answer begins behind ``history``, which penalties see and the grammar does not."""
        if self._options.penalises:
            lib.llama_sampler_reset(self._shape)
            for token in history[-self._window :]:
                lib.llama_sampler_accept(self._shape, token)

    def accept(self, token: int) -> None:
        """The answer goes on with ``token``. Raises GrammarError where the grammar forbids it."""
        if self._options.penalises:
            lib.llama_sampler_accept(self._shape, token)
        if self._grammar is not None:
            self._grammar.accept(token)

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """What is accepted inside is forgotten at its end; for chains without a grammar."""
        if not self._options.penalises:
            yield
            return
        kept = self._shape
        self._shape = lib.llama_sampler_clone(kept)
        try:
            yield
        finally:
            lib.llama_sampler_free(self._shape)
            self._shape = kept

    # ---- what comes next; ``logits`` have shape (n_vocab,)

    def shaped(self, logits: Logits) -> Logits:
        """The logits after bias and penalties."""
        if self._shape is None:
            return logits
        self._fill(self._ids, logits)
        return np.ascontiguousarray(self._candidates.apply(self._shape, len(self._ids))["logit"])

    def best(self, logits: Logits) -> int:
        """The likeliest token. Raises GrammarError where the grammar leaves none.

        The first of the tokens by likelihood that the grammar allows is the likeliest allowed one,
        so that the grammar is mostly asked about a single token.
        """
        logits = self.shaped(logits)
        token = int(logits.argmax())
        if self._grammar is None or (logits[token] > -math.inf and self._grammar.allows(token)):
            return token
        for ids in self._favourites(logits):
            allowed = ids[self._grammar.allowed(ids)]
            if len(allowed):
                return int(allowed[0])
        allowed = self._all_allowed(logits)
        return int(allowed[logits[allowed].argmax()])

    def distribution(self, logits: Logits) -> tuple[Ids, npt.NDArray[np.float64]]:
        """Token ids and probabilities of what survives the chain; needs a temperature above 0.

        Both results are copies of equal length; the probabilities sum to 1. Raises GrammarError where
        the grammar leaves no token.
        """
        if not self._cut:
            raise NativeError("the sampler chain is closed, or greedy")
        if self._grammar is None:
            self._fill(self._ids, logits)
            if self._shape:
                self._candidates.apply(self._shape, len(self._ids))
            count = len(self._ids)
        else:
            logits = self.shaped(logits)
            ids = self._survivors(logits)
            self._fill(ids, logits[ids])
            count = len(ids)
        survivors = self._candidates.apply(self._cut, count)
        scaled = survivors["logit"].astype(np.float64)
        weights = np.exp(scaled - scaled.max())
        return survivors["id"].copy(), weights / weights.sum()

    def close(self) -> None:
        """Free the samplers and the grammar; harmless when called again."""
        shape, self._shape = self._shape, None
        cut, self._cut = self._cut, None
        for chain in (shape, cut):
            if chain:
                lib.llama_sampler_free(chain)
        if self._grammar is not None:
            self._grammar.close()

    # ---- inside

    def _fill(self, ids: Ids, logits: Logits) -> None:
        data = self._candidates.data[: len(ids)]
        data["id"] = ids
        data["logit"] = logits

    def _favourites(self, logits: Logits) -> Iterator[Ids]:
        """Ever more of the likeliest tokens, the likeliest first, but never all."""
        for count in _FAVOURITES:
            if count < len(logits):
                ids = np.argpartition(logits, -count)[-count:].astype(np.int32)
                ids = ids[np.argsort(-logits[ids], kind="stable")]
                yield ids[logits[ids] > -math.inf]

    def _all_allowed(self, logits: Logits) -> Ids:
        assert self._grammar is not None
        ids = self._ids[self._grammar.allowed() & (logits > -math.inf)]
        if not len(ids):
            raise GrammarError("the grammar leaves this model nothing that it could say")
        return ids

    def _survivors(self, logits: Logits) -> Ids:
        """Allowed tokens, of which the rest of the chain makes what it makes of all allowed ones.

        A grammar takes long to look at a whole vocabulary. Mostly the likeliest few hundred tokens
        settle what survives: see ``_settled``.
        """
        assert self._grammar is not None
        for ids in self._favourites(logits):
            allowed = ids[self._grammar.allowed(ids)]
            if len(allowed) and self._settled(logits[allowed], float(logits[ids[-1]])):
                return allowed
        return self._all_allowed(logits)

    def _settled(self, known: Logits, least: float) -> bool:
        """Whether allowed tokens that were not looked at can change nothing.

        ``known`` are the logits of the likeliest allowed tokens, falling; all others have at most
        ``least``. Top-k leaves at most k - len(known) of the others, so that their weight lies between
        0 and a bound. Top-p keeps the fewest tokens whose weight reaches its share of the total: it
        keeps the same where that is so at both ends of the bound. Min-p drops whatever lies too far
        below the first token.
        """
        options = self._options
        others = (options.top_k or len(self._ids)) - len(known)
        if others <= 0:
            return True
        fall = known.astype(np.float64) - float(known[0])
        least -= float(known[0])
        kept_by_min_p = len(known)
        if options.min_p > 0.0:
            threshold = math.log(options.min_p)
            kept_by_min_p = int((fall > threshold - _ROUNDING).sum())
        if options.top_p >= 1.0:
            return options.min_p > 0.0 and least < threshold - _ROUNDING
        sums = np.cumsum(np.exp(fall))
        total = float(sums[-1])
        most = total + others * math.exp(least)
        fewest = np.searchsorted(sums, options.top_p * total * (1.0 - _ROUNDING)) + 1
        highest = np.searchsorted(sums, options.top_p * most * (1.0 + _ROUNDING)) + 1
        if highest > len(known) and not (options.min_p > 0.0 and least < threshold - _ROUNDING):
            return False
        return min(int(fewest), kept_by_min_p) == min(int(highest), kept_by_min_p)


def _chain(samplers: Sequence[Any]) -> Any:
    """A ``llama_sampler`` chain that owns ``samplers``."""
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    for sampler in samplers:
        lib.llama_sampler_chain_add(chain, sampler)
    return chain


def _bias(n_vocab: int, biases: Mapping[int, float]) -> Any:
    array = (lib.llama_logit_bias * len(biases))()
    for entry, (token, bias) in zip(array, biases.items(), strict=True):
        entry.token, entry.bias = token, bias
    return lib.llama_sampler_init_logit_bias(n_vocab, len(biases), array)
