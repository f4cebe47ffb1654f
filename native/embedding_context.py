"""A context that turns texts into vectors: one pass for each text, its hidden states pooled to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from native.errors import ContextError, DecodeAborted, DecodeError, NativeError
from native.log import mark, problems_since
from native.model import Model
from native.owned import Owned

Vector = npt.NDArray[np.float32]


class EmbeddingContext(Owned):
    """Owns the ``llama_context`` of an embedding model. Not thread-safe, but for ``abort``."""

    def __init__(self, model: Model, n_ctx: int, n_threads: int) -> None:
        """``n_ctx``: tokens of the longest text. Raises ContextError when llama.cpp cannot make one."""
        self.model = model
        self.n_ctx = n_ctx
        self._handle: Any = None
        self._batch: Any = None
        self._stopped = False
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = n_ctx  # attention looks both ways: all at once
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = n_threads
        params.embeddings = True
        if not int(model.metadata.get(f"{model.architecture}.pooling_type", 0)):
            params.pooling_type = lib.LLAMA_POOLING_TYPE_MEAN  # a vector for each token is of no use here
        params.no_perf = True
        before = mark()
        self._handle = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            raise ContextError(f"no context of {n_ctx} tokens could be made", problems_since(before))
        self._batch = lib.llama_batch_init(n_ctx, 0, 1)
        self.pooling = int(lib.llama_pooling_type(self._handle))
        self.width = model.n_embd_out
        model.adopt(self)

    def close(self) -> None:
        """Free the context; harmless when called again."""
        handle, self._handle = self._handle, None
        if handle:
            self.model.disown(self)
            lib.llama_free(handle)
        batch, self._batch = self._batch, None
        if batch is not None:
            lib.llama_batch_free(batch)

    def abort(self) -> None:
        """Stop before the next text; until ``allow``. Another thread may call."""
        self._stopped = True

    def allow(self) -> None:
        self._stopped = False

    def embed(self, tokens: Sequence[int]) -> Vector:
        """The vector of a text of 1 to ``n_ctx`` tokens, of length 1, shape (width,).

        Raises DecodeAborted and DecodeError.
        """
        if not self._handle:
            raise NativeError("the context is closed")
        if self._stopped:
            raise DecodeAborted("it was stopped")
        if not 0 < len(tokens) <= self.n_ctx:
            raise DecodeError(f"a text of {len(tokens)} tokens, where 1 to {self.n_ctx} fit")
        batch = self._batch
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, True
            batch.seq_id[i][0] = 0
        batch.n_tokens = len(tokens)
        memory = lib.llama_get_memory(self._handle)
        if memory:
            lib.llama_memory_clear(memory, True)
        before = mark()
        run = lib.llama_decode if self.model.has_decoder else lib.llama_encode
        status = run(self._handle, batch)
        if status != 0:
            raise DecodeError(f"llama.cpp could not embed a text (code {status})", problems_since(before))
        address = lib.llama_get_embeddings_seq(self._handle, 0)
        if not address:
            raise DecodeError("the model gave no vector for a text")
        vector = np.ctypeslib.as_array(address, shape=(self.width,)).astype(np.float32)
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length > 0 else vector
