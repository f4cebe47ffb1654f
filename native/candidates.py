"""The array of candidate tokens that llama.cpp's samplers work on, over memory that numpy sees."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.errors import NativeError

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Candidates:
    """Room for ``size`` tokens, and a ``llama_token_data_array`` over it."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(size, dtype=_TOKEN_DATA)
        self._address = self.data.ctypes.data
        self._pointer = self.data.ctypes.data_as(lib.llama_token_data_p)
        self._array: Any = lib.llama_token_data_array()

    def apply(self, sampler: Any, count: int) -> npt.NDArray[Any]:
        """Run a ``llama_sampler`` over the first ``count`` and return what it leaves: a view.

        A sampler may have moved the candidates to memory of its own; then the view is of that.
        """
        array = self._array
        array.data = self._pointer
        array.size = count
        array.selected = -1
        array.sorted = False
        lib.llama_sampler_apply(sampler, ctypes.byref(array))
        address = ctypes.cast(array.data, ctypes.c_void_p).value
        if address == self._address:
            return self.data[: array.size]
        if not address:
            raise NativeError("the sampler left no candidates")
        size = array.size * _TOKEN_DATA.itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=_TOKEN_DATA)
