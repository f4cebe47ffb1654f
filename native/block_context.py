"""The context of a block drafter (DFlash): it reads hidden states alone, and a block of tokens at once."""

from __future__ import annotations

import ctypes

import numpy as np
from llama_cpp import llama_cpp as lib

from native.context import Context, ContextOptions, Floats
from native.errors import DecodeError
from native.head_context import HeadContext, embd
from native.model import Model

_BLOCK_SIZE = 16  # where the file names none, as in llama.cpp


class BlockContext(HeadContext):
    """Owns the ``llama_context`` of a DFlash drafter, with a Markov head (DSpark) or without.

    Every row of a block sees the whole block, unless the file wants otherwise; so a block must be
    decoded in one pass, and rewound before the next.
    """

    def __init__(self, model: Model, options: ContextOptions, target: Context) -> None:
        """Raises what HeadContext does."""
        super().__init__(model, options, target)
        lib.llama_set_causal_attn(self.handle, self._says("attention.causal", otherwise=False))

    @property
    def block_size(self) -> int:
        """Rows of the blocks that it was trained on."""
        return int(self.model.metadata.get("dflash.block_size", _BLOCK_SIZE))

    @property
    def drafts_from_anchor(self) -> bool:
        """Whether the row of a DSpark block's first token, which is known, already drafts the next."""
        return self._says("sample_from_anchor", otherwise=True)

    @property
    def mask(self) -> int:
        """The token that stands for one to be drafted."""
        return int(lib.llama_vocab_mask(self.model.vocab_handle))

    def _says(self, key: str, *, otherwise: bool) -> bool:
        value = self.model.metadata.get(f"dflash.{key}")
        return otherwise if value is None else value == "true"

    def inject(self, features: Floats, first: int) -> None:
        """Put target features, shape (rows, features), into the KV cache at positions from ``first`` on.

        Raises what ``decode`` does.
        """
        handle = self.handle
        batch = self._ext
        features = np.ascontiguousarray(features, dtype=np.float32)
        if not 0 < len(features) <= self.n_batch:
            raise DecodeError(f"a pass of {len(features)} hidden states, where 1 to {self.n_batch} fit")
        lib.llama_batch_ext_clear(batch)
        for i, row in enumerate(features):
            index = lib.llama_batch_ext_add_embd(batch, 0, embd(row))
            if index < 0:
                raise DecodeError(f"the drafter takes no hidden state of {len(row)} values (code {index})")
            pos = first + i
            # A model whose positions have several dimensions reads as many.
            lib.llama_batch_ext_set_pos(batch, index, (ctypes.c_int32 * 4)(pos, pos, pos, 0))
            lib.llama_batch_ext_set_output_logits(batch, index, False)
        rows = [(0, 0, first + i, False) for i in range(len(features))]
        self._run(lambda: lib.llama_process(handle, lib.LLAMA_PROCESS_TYPE_DECODE, batch), rows, 0)

    def confidences(self) -> list[float]:
        """What a DSpark confidence head says of the last block's rows: how likely the token that the row
        drafts is accepted (0 to 1), if those before it are and are the favourites."""
        return [float(value) for value in self.states()[:, 0]]
