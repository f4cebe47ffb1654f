"""The context of a drafter head: it reads hidden states beside tokens, and hands out its own."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_cpp import llama_cpp as lib

from native import staging
from native.context import Context, ContextOptions, Floats, Row, floats_at
from native.errors import DecodeAborted, DecodeError, NativeError
from native.log import mark, problems_since
from native.model import Model

_FLOATS = ctypes.POINTER(ctypes.c_float)


class HeadContext(Context):
    """Owns the ``llama_context`` of a head (EAGLE-3, MTP) that drafts for ``target``'s model."""

    def __init__(self, model: Model, options: ContextOptions, target: Context) -> None:
        """Raises ContextError, or NativeError where this build of llama.cpp lacks what heads need."""
        self._ext: Any = None
        staging.require()
        super().__init__(model, options, target)
        staging.function("set_embeddings_nextn")(self.handle, True, True)
        self._ext = lib.llama_batch_ext_init(self.handle)

    def close(self) -> None:
        ext, self._ext = self._ext, None
        if ext:
            lib.llama_batch_ext_free(ext)
        super().close()

    @property
    def target_layers(self) -> tuple[int, ...]:
        """The layers of the target whose hidden states this head reads."""
        model = self.model.handle
        count = staging.function("model_target_layer_ids_n")(model)
        return tuple(staging.function("model_target_layer_ids")(model)[:count])

    def encode(self, features: Floats) -> Floats:
        """Run the head's encoder over target features, shape (rows, features); the KV cache stays as it is.

        Returns a copy of shape (rows, n_embd). At most n_batch rows, each of which also takes memory for
        a row of logits. Raises DecodeAborted and DecodeError.
        """
        handle = self.handle
        batch = self._ext
        rows = np.ascontiguousarray(features, dtype=np.float32)
        lib.llama_batch_ext_clear(batch)
        # The encoder looks at no position, but llama.cpp checks that they go on from the KV cache's.
        start = self.length(0)
        for i, row in enumerate(rows):
            index = lib.llama_batch_ext_add_embd(batch, 0, embd(row))
            if index < 0:
                raise DecodeError(f"the head's encoder takes no row of {len(row)} values (code {index})")
            lib.llama_batch_ext_set_pos(batch, index, ctypes.byref(ctypes.c_int32(start + i)))
            lib.llama_batch_ext_set_output_embd(batch, index, True)
        self._output_rows = self._rows = 0
        before = mark()
        status = lib.llama_process(handle, lib.LLAMA_PROCESS_TYPE_ENCODE, batch)
        if status == 2:
            raise DecodeAborted("the pass was aborted")
        if status != 0:
            raise DecodeError(f"llama.cpp could not run the encoder (code {status})", problems_since(before))
        address = staging.function("get_embeddings_nextn")(handle)
        return floats_at(address, len(rows), self.model.n_embd).copy()

    @property
    def n_heads(self) -> int:
        """Next-n layers, of which a pass runs one: 0 for a head of another kind."""
        return self.model.n_layer_nextn

    def select(self, head: int) -> None:
        """Run this next-n layer from the next pass on, counted from 0."""
        staging.function("set_nextn_layer_offset")(self.handle, head)

    def decode_states(self, rows: Sequence[Row], states: Floats) -> None:
        """Run one pass over ``rows``, each with a hidden state, shape (rows, width), beside its token.

        Logits are wanted of all rows or of none: these graphs compute every row and hand out the first.
        Raises what ``decode`` does.
        """
        handle = self.handle
        batch = self._ext
        outputs = sum(row[3] for row in rows)
        if outputs not in (0, len(rows)):
            raise NativeError("a head gives logits of all rows of a pass or of none")
        if len(rows) != len(states) or not 0 < len(rows) <= self.n_batch:
            raise NativeError(f"{len(states)} hidden states for {len(rows)} rows, where {self.n_batch} fit")
        states = np.ascontiguousarray(states, dtype=np.float32)
        lib.llama_batch_ext_clear(batch)
        for (seq, token, pos, output), state in zip(rows, states, strict=True):
            index = lib.llama_batch_ext_add_token(batch, seq, token)
            if index < 0:
                raise DecodeError(f"the head does not know token {token} (code {index})")
            lib.llama_batch_ext_set_embd_token(batch, index, embd(state))
            lib.llama_batch_ext_set_pos(batch, index, ctypes.byref(ctypes.c_int32(pos)))
            lib.llama_batch_ext_set_output_logits(batch, index, output)
        self._run(lambda: lib.llama_process(handle, lib.LLAMA_PROCESS_TYPE_DECODE, batch), rows, outputs)

    def states(self) -> Floats:
        """The hidden states that the last pass's output rows end in, shape (rows, width).

        A view into llama.cpp's memory: valid until the next pass or close.
        """
        address = staging.function("get_embeddings_nextn")(self.handle)
        return floats_at(address, self._output_rows, self.model.n_embd_out)


def embd(row: Floats) -> Any:
    """A row as llama.cpp takes it: it must outlive the call that it is for."""
    data = lib.llama_embd()
    data.data = row.ctypes.data_as(_FLOATS)
    data.n_rows, data.n_embd = 1, len(row)
    return data
