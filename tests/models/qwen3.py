"""A tiny Qwen3: attention with norms on each head's query and key."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny


def write_qwen3(path: Path, tiny: Tiny = Tiny()) -> Path:
    with GgufFile(path, "qwen3", tiny.seed) as file:
        file.transformer(tiny)
        file.tokenizer(tiny)
        file.embeddings(tiny)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.attention(at, tiny)
            file.norm(at + "ffn_norm.weight", tiny)
            file.feed_forward(at, tiny)
    return path
