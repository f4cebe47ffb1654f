"""Looks at a model file before the native loader sees it, and says in words what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from model_store.classify import Classified, classify
from model_store.fingerprint import TO_HASH
from model_store.gguf_header import GgufError, GgufHeader, read_header
from model_store.memory_shape import TO_KEEP
from model_store.split import split_name

_MAX_LAYERS = 512  # llama.cpp's own bound
_USES = {"chat": "a chat model", "draft": "a draft model", "embed": "an embedding model"}
Use = Literal["chat", "draft", "embed"]


class ModelFileError(Exception):
    """The file cannot be used as asked; the text is one sentence for the person, with the file's name."""


def check_model_file(path: Path, use: Use) -> GgufHeader:
    """Return the header of ``path`` when it can serve as ``use``; of a split model, that of its first part.

    "draft" means an ordinary draft model, which runs in a context of its own. The header is good for
    a tokenizer fingerprint. Raises ModelFileError.
    """
    header = read_model_file(path)
    check_use(shown_name(path), header, use)
    return header


def check_use(name: str, header: GgufHeader, use: Use) -> None:
    """Raises ModelFileError when a file with this header cannot serve as ``use``."""
    problem = unfit_for(classify(header), use)
    if problem is not None:
        raise ModelFileError(f"{name} cannot be used as {_USES[use]}: it is {problem}.")
    problem = impossible(header)
    if problem is not None:
        raise ModelFileError(f"{name} cannot be used: {problem}.")


def read_model_file(path: Path) -> GgufHeader:
    """The header of ``path``, whatever it is for; of a split model, that of its first part.

    It is good for pairing and for telling how much memory the model takes. All parts must be there and
    whole. Raises ModelFileError.
    """
    name = shown_name(path)
    split = split_name(path)
    if split is not None and split.number != 1:
        raise ModelFileError(
            f"{name} is part {split.number} of {split.total}: choose {shown_name(split.parts[0])} instead."
        )
    header = _read(path)
    for part in split.parts[1:] if split is not None else ():
        _read(part)
    return header


def unfit_for(classified: Classified, use: Use) -> str | None:
    """Why a file of this kind cannot serve as ``use``, to follow "it is"; None when it can."""
    if classified.kind == ("embedding" if use == "embed" else "chat"):
        return None
    if classified.kind == "drafter" and use == "draft":
        return f"{classified.noun}, which needs hidden states of its target"
    if classified.kind == "drafter":
        return f"{classified.noun}, which only drafts for another model"
    return classified.noun


def impossible(header: GgufHeader) -> str | None:
    """Numbers that every model has and at which llama.cpp would end the process; None when they are fine."""
    layers = header.number("{arch}.block_count")
    if layers is not None and not 0 < layers <= _MAX_LAYERS:
        return f"it claims {layers:,} layers"
    heads = header.number("{arch}.nextn_predict_layers") or 0
    if layers is not None and heads > layers:
        return f"it claims {heads:,} MTP layers of {layers:,}"
    experts = header.number("{arch}.expert_count") or 0
    used = header.number("{arch}.expert_used_count")
    if used is not None and (used > experts or (experts and not used)):
        return f"it claims to use {used:,} of {experts:,} experts"
    return None


def shown_name(path: Path) -> str:
    """The file's name as text that can be printed and encoded, whatever bytes it has on disk."""
    return path.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def describe_os_error(error: OSError) -> str:
    """What kept us from reading a file, in the operating system's words."""
    return f"cannot be read: {(error.strerror or type(error).__name__).lower()}"


def _read(path: Path) -> GgufHeader:
    name = shown_name(path)
    try:
        if path.is_dir():
            raise ModelFileError(f"{name} is a folder, not a GGUF file.")
        return read_header(path, keep_arrays=TO_KEEP, hash_arrays=TO_HASH)
    except FileNotFoundError:
        raise ModelFileError(f"{name} was not found in {path.parent}.") from None
    except OSError as error:
        raise ModelFileError(f"{name} {describe_os_error(error)}.") from error
    except GgufError as error:
        raise ModelFileError(f"{name} cannot be used: {error}.") from error
    except ValueError:  # a path with a zero byte in it
        raise ModelFileError(f"{name!r} is not a file name.") from None
