"""A sequence of a context outside of it: all that its memory holds of it, in ordinary memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.recurrent_state import Kept, kept_bytes

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class SavedSequence:
    """``can_cut``: it can be cut anywhere when it is put back. ``kept``: earlier states of a recurrent
    memory, which goes back to these alone."""

    length: int
    data: _Bytes
    can_cut: bool = True
    kept: Sequence[Kept] = ()

    def usable(self, length: int) -> int:
        """How many of its first ``length`` tokens it has once it is put back and cut there."""
        if length >= self.length:
            return self.length
        if self.can_cut:
            return length
        return max((each.length for each in self.kept if each.length <= length), default=0)

    @property
    def n_bytes(self) -> int:
        return self.data.nbytes + kept_bytes(self.kept)


def copy_out(context: Any, seq: int, most_bytes: int) -> _Bytes | None:
    """What a ``llama_context`` holds of a sequence; None where that is more, or cannot be copied."""
    size = int(lib.llama_state_seq_get_size_ext(context, seq, lib.LLAMA_STATE_SEQ_FLAGS_NONE))
    if not 0 < size <= most_bytes:
        return None
    try:
        data = np.empty(size, dtype=np.uint8)
    except MemoryError:
        return None
    written = lib.llama_state_seq_get_data_ext(
        context, _pointer(data), size, seq, lib.LLAMA_STATE_SEQ_FLAGS_NONE
    )
    return data if int(written) == size else None


def copy_in(context: Any, seq: int, data: _Bytes) -> bool:
    """Put it into a sequence, in the place of what that held. False: it holds nothing to rely on now."""
    read = lib.llama_state_seq_set_data_ext(
        context, _pointer(data), data.nbytes, seq, lib.LLAMA_STATE_SEQ_FLAGS_NONE
    )
    return int(read) == data.nbytes


def _pointer(data: _Bytes) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
