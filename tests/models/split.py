"""A tiny llama in two files."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny


def write_split(path: Path, tiny: Tiny = Tiny(n_layer=4)) -> Path:
    """Write ``stem-00001-of-00002.gguf`` and its second part beside ``path``; returns the first's path."""
    with GgufFile(path, "llama", tiny.seed, shard_tensors=20) as file:
        file.transformer(tiny)
        file.tokenizer(tiny)
        file.embeddings(tiny)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.attention(at, tiny, head_norms=False)
            file.norm(at + "ffn_norm.weight", tiny)
            file.feed_forward(at, tiny)
    return path.with_name(f"{path.stem}-00001-of-00002.gguf")
