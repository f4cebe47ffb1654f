"""Tells from a GGUF's metadata what the file is for. Its name is never believed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from model_store.gguf_header import GgufHeader

Kind = Literal["chat", "drafter", "projector", "embedding", "adapter", "other"]

_HEADS = {
    "eagle3": "an EAGLE-3 head",
    "dflash": "a DFlash drafter",
    "gemma4-assistant": "an MTP head",
}
MARKOV_HEAD = "markov_w1.weight"
"""The tensor that makes a DFlash file a DSpark one."""
CONFIDENCE_HEAD = "conf_proj.weight"
"""One that not every DSpark file has."""
SELECTOR = "selector_hidden.weight"
"""One of DFlash 2, which chooses among paths of tokens."""

_EMBEDDERS = {
    "bert",
    "distilbert",
    "eurobert",
    "gemma-embedding",
    "jina-bert-v2",
    "jina-bert-v3",
    "llama-embed",
    "modern-bert",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "t5encoder",
}
_DIFFUSERS = {"dream", "llada", "llada-moe", "rnd1"}
_BLOCK = re.compile(r"blk\.(\d+)\.(nextn\.)?")


@dataclass(frozen=True, slots=True)
class Classified:
    """What a file is. ``noun`` goes into a sentence: "it is …"."""

    kind: Kind
    noun: str


def classify(header: GgufHeader) -> Classified:
    """Say what the file with this header is for."""
    arch = header.architecture
    general_type = header.text("general.type")
    if general_type == "adapter" or arch == "controlvector":
        return Classified("adapter", "an adapter for another model")
    if general_type == "imatrix" or "imatrix.chunk_count" in header.metadata:
        return Classified("other", "an importance matrix for quantising")
    if arch == "clip" or general_type == "mmproj":
        return Classified("projector", "a projector for pictures or sound")
    if arch == "dflash" and header.tensor(MARKOV_HEAD) is not None:
        return Classified("drafter", "a DSpark drafter")
    if arch in _HEADS:
        return Classified("drafter", _HEADS[arch])
    if arch.endswith("-assistant") or _has_only_next_token_blocks(header):
        return Classified("drafter", "an MTP head")
    if arch in _EMBEDDERS or (header.number("{arch}.pooling_type") or 0) > 0:
        return Classified("embedding", "an embedding model")
    if not arch:
        return Classified("other", "not a language model (it names no architecture)")
    # A split model may keep its first part free of tensors.
    if not header.tensor_count and (header.number("split.count") or 1) <= 1:
        return Classified("other", "a vocabulary without a model")
    if arch == "t5":
        return Classified("other", "an encoder-decoder model")
    if arch in _DIFFUSERS:
        return Classified("other", "a diffusion model, which does not write from left to right")
    if header.text("tokenizer.ggml.model") in ("", "none", "no_vocab"):
        return Classified("other", f"not a language model (architecture {arch}, no tokenizer)")
    return Classified("chat", "a chat model")


def _has_only_next_token_blocks(header: GgufHeader) -> bool:
    """Whether each block of layers is a next-n (MTP) one, so that the file has no model around them."""
    blocks: set[str] = set()
    next_token_blocks: set[str] = set()
    for tensor in header.tensors:
        match = _BLOCK.match(tensor.name)
        if match:
            blocks.add(match[1])
            if match[2]:
                next_token_blocks.add(match[1])
    return bool(next_token_blocks) and blocks == next_token_blocks
