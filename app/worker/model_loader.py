"""Puts a GGUF into memory as what it is: a model that writes, or one that turns texts into vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.protocol import Load
from app.worker.embedding_model import EmbeddingModel
from app.worker.llama_model import LlamaModel
from model_store.check import ModelFileError, read_model_file
from model_store.classify import classify


def load_model(request: Load, progress: Callable[[float], bool]) -> LlamaModel | EmbeddingModel:
    """Raises EngineError."""
    try:
        embeds = classify(read_model_file(Path(request.model_path))).kind == "embedding"
    except ModelFileError:
        embeds = False  # which is said where it is looked at as a chat model
    return EmbeddingModel(request, progress) if embeds else LlamaModel(request, progress)
