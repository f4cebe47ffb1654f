"""An embedding GGUF in memory: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from app.protocol import Load, ModelReport
from app.worker.loaded_model import EngineError
from app.worker.weights import load_weights, loaded_file
from drafting.drafter import Interrupted
from model_store.check import ModelFileError, check_model_file
from native.embedding_context import EmbeddingContext
from native.errors import ContextError, DecodeAborted, NativeError

_MOST_TOKENS = 8192  # of one text; attention looks both ways, so that its memory grows with the square


class EmbeddingModel:
    """An Embedder of the engine's."""

    def __init__(self, request: Load, progress: Callable[[float], bool]) -> None:
        """Raises EngineError."""
        path = Path(request.model_path)
        try:
            header = check_model_file(path, "embed")
        except ModelFileError as error:
            raise EngineError("bad_model", str(error)) from error
        options = request.options
        model = self._model = load_weights(path, options, progress, heads=False)
        threads = options.n_threads or psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
        n_ctx = min(model.n_ctx_train or _MOST_TOKENS, _MOST_TOKENS)
        try:
            self._context = EmbeddingContext(model, n_ctx, threads)
        except ContextError as error:
            model.close()
            raise EngineError("out_of_memory", f"{error}.") from error
        self.report = ModelReport(
            path=str(path),
            name=path.stem,
            architecture=model.architecture,
            description=model.description,
            size_bytes=model.size_bytes,
            kv_bytes=0,
            n_vocab=model.n_vocab,
            n_ctx=n_ctx,
            n_ctx_train=model.n_ctx_train,
            max_draft=0,
            n_threads=threads,
            recurrent=False,
            hybrid=False,
            swa=False,
            draft_model_path=None,
            drafters=(),
            file=loaded_file(path, header),
            embeds=True,
        )

    def embed(self, texts: Sequence[str]) -> tuple[tuple[bytes, ...], int]:
        """A vector for each text, and how many tokens were read. Raises EngineError and Interrupted."""
        read = [self._model.tokenize(text, parse_special=False, add_special=True) for text in texts]
        for place, tokens in enumerate(read):
            if not tokens:
                raise EngineError("bad_input", f"Text {place + 1} is empty.")
            if len(tokens) > self._context.n_ctx:
                raise EngineError(
                    "bad_input",
                    f"Text {place + 1} has {len(tokens):,} tokens, where this model reads "
                    f"{self._context.n_ctx:,} at most.",
                )
        try:
            vectors = tuple(self._context.embed(tokens).astype("<f4").tobytes() for tokens in read)
        except DecodeAborted as error:
            raise Interrupted(str(error)) from error
        except NativeError as error:
            raise EngineError("internal", f"The engine failed: {error}") from error
        return vectors, sum(map(len, read))

    def abort(self) -> None:
        self._context.abort()

    def allow(self) -> None:
        self._context.allow()

    def close(self) -> None:
        self._model.close()
