"""A grammar that an answer must follow, by llama.cpp's grammar sampler."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.candidates import Candidates
from native.errors import GrammarError
from native.gbnf import check_gbnf
from native.log import mark, problems_since
from native.model import Model
from native.owned import Owned

Ids = npt.NDArray[np.int32]

_FEW = 4096


class Grammar(Owned):
    """Owns a ``llama_sampler`` that stands where the text said so far has led it.

    llama.cpp ends the process on a token that the grammar does not allow, so none ever gets there.
    """

    def __init__(
        self,
        model: Model,
        gbnf: str,
        *,
        root: str = "root",
        ends: Set[int] = frozenset(),
        hidden: Set[int] = frozenset(),
    ) -> None:
        """``root`` is the rule to follow. ``ends``: tokens that end the answer beside those that
        llama.cpp knows as such; all of them are allowed where the grammar may end, and nowhere else.
        ``hidden``: tokens that are never allowed, since what the grammar takes for their text will not
        be seen.

        Raises GrammarError for a text that is no GBNF.
        """
        self._sampler: Any = None
        if not model.end_of_generation:
            raise GrammarError("this model has no token that could end the answer")
        check_gbnf(gbnf)
        try:
            text = gbnf.encode()
        except UnicodeEncodeError as error:
            raise GrammarError("it holds characters that no text has") from error
        before = mark()
        self._sampler = lib.llama_sampler_init_grammar(model.vocab_handle, text, root.encode())
        if not self._sampler:
            raise GrammarError("llama.cpp cannot read it", problems_since(before))
        self._ends = model.end_of_generation | ends
        self._more_ends = tuple(ends - model.end_of_generation)
        self._end = min(model.end_of_generation)
        self._hidden = np.zeros(model.n_vocab, dtype=np.bool_)
        self._hidden[list(hidden - self._ends)] = True
        self._few = Candidates(min(_FEW, model.n_vocab))
        self._all = np.arange(model.n_vocab, dtype=np.int32)

    def allowed(self, ids: Ids | None = None) -> npt.NDArray[np.bool_]:
        """Which of ``ids`` may come next, one by one; of all tokens, by id, where None."""
        if not self._sampler:
            raise GrammarError("the grammar is closed")
        ids = self._all if ids is None else ids
        candidates = self._few if len(ids) <= len(self._few.data) else Candidates(len(ids))
        data = candidates.data[: len(ids)]
        data["id"] = ids
        data["logit"] = 0.0
        for end in self._more_ends:
            data["id"][ids == end] = self._end
        candidates.apply(self._sampler, len(ids))
        left: npt.NDArray[np.bool_] = data["logit"] == 0.0  # what is rejected gets -inf
        return left & ~self._hidden[ids]

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""
        return bool(self.allowed(np.array([token], dtype=np.int32))[0])

    def accept(self, token: int) -> None:
        """The text goes on with ``token``. Raises GrammarError for one that is not allowed."""
        if token in self._ends:
            return  # nothing comes after it
        if not self.allows(token):
            raise GrammarError(f"the grammar does not allow token {token} there")
        lib.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Free it; harmless when called again."""
        sampler, self._sampler = self._sampler, None
        if sampler:
            lib.llama_sampler_free(sampler)
