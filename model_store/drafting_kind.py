"""What a file can do in speculative decoding, and what it asks of its target, read from its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model_store.classify import MARKOV_HEAD, classify
from model_store.gguf_header import GgufHeader
from native.architectures import ASSISTANTS, MTP, SEVERAL_HEADS

DraftKind = Literal["draft", "eagle3", "mtp", "dflash", "dspark"]

NOUNS: dict[DraftKind, str] = {
    "draft": "a draft model",
    "eagle3": "an EAGLE-3 head",
    "mtp": "an MTP head",
    "dflash": "a DFlash drafter",
    "dspark": "a DSpark drafter",
}
TO_KEEP = ("eagle3.target_layers", "dflash.target_layers")
"""The arrays that ``read_header`` must keep for it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a drafter asks of its target.

    ``hidden_size`` is the length of the hidden states it reads, None when it reads none.
    ``target_layers`` are the layers whose inputs it reads, counted from 0. ``architecture`` is the only
    one its target may have, None for any. ``shared`` names what it borrows from its target instead of
    having its own.
    """

    hidden_size: int | None = None
    target_layers: tuple[int, ...] = ()
    architecture: str | None = None
    shared: tuple[Literal["token embeddings", "output layer"], ...] = ()


def drafting_kind(header: GgufHeader) -> DraftKind | None:
    """How the file can draft for another model; None when it cannot. A chat model can as a draft model."""
    kind = classify(header).kind
    if kind == "chat":
        return "draft"
    if kind != "drafter":
        return None
    if header.architecture == "eagle3":
        return "eagle3"
    if header.architecture == "dflash":
        return "dflash" if header.tensor(MARKOV_HEAD) is None else "dspark"
    return "mtp"


def heads_inside(header: GgufHeader) -> int:
    """MTP heads that a chat model brings along and llama.cpp can draft with; 0 for any other file.

    Many conversions name the heads and leave them out.
    """
    heads = header.number("{arch}.nextn_predict_layers") or 0
    arch = header.architecture
    if heads < 1 or arch not in MTP or classify(header).kind != "chat":
        return 0
    if heads > 1 and arch not in SEVERAL_HEADS:
        return 0
    return heads if has_next_token_layers(header) else 0


def has_next_token_layers(header: GgufHeader) -> bool:
    """Whether MTP layers are in the file; of a split model, whose first part tells nothing, it is assumed."""
    is_split = (header.number("split.count") or 1) > 1
    return is_split or any(".nextn." in tensor.name for tensor in header.tensors)


def needs(header: GgufHeader) -> Needs:
    """What a drafter of this kind asks; the header must be read with ``keep_arrays=TO_KEEP``."""
    kind = drafting_kind(header)
    own_hidden_size = header.number("{arch}.embedding_length")
    if kind == "eagle3":
        return Needs(
            header.number("{arch}.target_hidden_size"),
            header.numbers("{arch}.target_layers"),
            shared=_shared(header),
        )
    if kind in ("dflash", "dspark"):
        return Needs(own_hidden_size, header.numbers("{arch}.target_layers"), shared=_shared(header))
    if kind == "mtp":
        arch = header.architecture
        if arch in ASSISTANTS:
            return Needs(header.number("{arch}.embedding_length_out"), architecture=ASSISTANTS[arch])
        return Needs(own_hidden_size, architecture=arch)
    return Needs()


def _shared(header: GgufHeader) -> tuple[Literal["token embeddings", "output layer"], ...]:
    if header.tensor("token_embd.weight") is None:
        # DFlash uses its own embeddings as an output layer where it has no other.
        no_output = header.tensor("output.weight") is None
        return ("token embeddings", "output layer") if no_output else ("token embeddings",)
    if header.architecture == "eagle3" and header.tensor("output.weight") is None:
        return ("output layer",)
    return ()
