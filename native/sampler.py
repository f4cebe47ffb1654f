"""llama.cpp's sampler chain as a function from logits to the distribution it would sample from."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.errors import NativeError
from native.owned import Owned

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class SamplerChain(Owned):
    """Owns a ``llama_sampler`` chain: top-k, top-p, min-p, temperature, in llama.cpp's order.

    The chain shapes the distribution and never draws: drawing belongs to verification.
    """

    def __init__(
        self,
        n_vocab: int,
        *,
        temperature: float,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
    ) -> None:
        """``temperature`` must be above 0 (at 0 the answer is the argmax, no chain needed)."""
        if temperature <= 0:
            raise NativeError("a sampler chain needs a temperature above 0")
        self._chain: Any = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        if top_k > 0:
            self._add(lib.llama_sampler_init_top_k(top_k))
        if top_p < 1.0:
            self._add(lib.llama_sampler_init_top_p(top_p, 1))
        if min_p > 0.0:
            self._add(lib.llama_sampler_init_min_p(min_p, 1))
        self._add(lib.llama_sampler_init_temp(temperature))
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._candidates = np.zeros(n_vocab, dtype=_TOKEN_DATA)
        self._array: Any = lib.llama_token_data_array()

    def _add(self, sampler: Any) -> None:
        lib.llama_sampler_chain_add(self._chain, sampler)  # the chain owns it from here

    def distribution(
        self, logits: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Token ids and probabilities of what survives the chain; ``logits`` has shape (n_vocab,).

        Both results are copies of equal length; the probabilities sum to 1.
        """
        if not self._chain:
            raise NativeError("the sampler chain is closed")
        candidates, array = self._candidates, self._array
        candidates["id"] = self._ids
        candidates["logit"] = logits
        array.data = candidates.ctypes.data_as(lib.llama_token_data_p)
        array.size = len(candidates)
        array.selected = -1
        array.sorted = False
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        survivors = self._survivors(array)
        scaled = survivors["logit"].astype(np.float64)
        weights = np.exp(scaled - scaled.max())
        return survivors["id"].copy(), weights / weights.sum()

    def _survivors(self, array: Any) -> npt.NDArray[Any]:
        """A sampler may have moved the candidates to memory of its own."""
        address = ctypes.cast(array.data, ctypes.c_void_p).value
        if address == self._candidates.ctypes.data:
            return self._candidates[: array.size]
        if not address:
            raise NativeError("the sampler chain left no candidates")
        size = array.size * _TOKEN_DATA.itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=_TOKEN_DATA)

    def close(self) -> None:
        """Free the chain; harmless when called again."""
        chain, self._chain = self._chain, None
        if chain:
            lib.llama_sampler_free(chain)
