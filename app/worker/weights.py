"""Puts a file's weights into memory, in the way that makes passes fastest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from app.protocol import EngineOptions, LoadedFile
from app.worker.loaded_model import EngineError
from model_store.file_key import file_key
from model_store.fingerprint import tokenizer_fingerprint
from model_store.gguf_header import GgufHeader
from model_store.split import parts_of
from native.errors import LoadCancelled, NativeError
from native.huge_pages import has_huge_pages
from native.model import Model

# A mapped file can leave memory and come back; what a process owns cannot. So that is for models
# beside which there is much room.
_SHARE_OF_FREE = 0.4


def load_weights(
    path: Path, options: EngineOptions, progress: Callable[[float], bool], *, heads: bool
) -> Model:
    """``heads``: with the MTP layers that are in the file. Raises EngineError."""
    try:
        return Model(
            path,
            n_gpu_layers=options.n_gpu_layers,
            heads=heads,
            mapped=not (has_huge_pages() and has_room(path)),
            progress=progress,
        )
    except LoadCancelled as error:
        raise EngineError("cancelled", str(error)) from error
    except NativeError as error:
        raise EngineError("bad_model", str(error)) from error


def loaded_file(path: Path, header: GgufHeader) -> LoadedFile | None:
    """What is kept of a file that was loaded; None when it went away meanwhile."""
    try:
        return LoadedFile(file_key(path), tokenizer_fingerprint(header))
    except OSError:
        return None


def has_room(path: Path) -> bool:
    """Whether the weights may take memory that nothing but the end of the process gives back."""
    try:
        size = sum(part.stat().st_size for part in parts_of(path))
    except OSError:
        return False
    return size <= _SHARE_OF_FREE * psutil.virtual_memory().available
