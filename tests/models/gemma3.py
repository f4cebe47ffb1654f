"""A tiny Gemma 3: every other layer sees a sliding window only."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

WINDOW = 32  # tokens


def write_gemma3(path: Path, tiny: Tiny = Tiny()) -> Path:
    """Layer 0 has a window of 32 tokens, layer 1 sees everything, and so on."""
    with GgufFile(path, "gemma3", tiny.seed) as file:
        file.transformer(tiny)
        file.numbers(attention__sliding_window=WINDOW, attention__sliding_window_pattern=2)
        file.tokenizer(tiny)
        gemma_weights(file, tiny)
    return path


def gemma_weights(file: GgufFile, tiny: Tiny) -> None:
    """Embeddings, layers and output head, which Gemma 3 and 4 have in common."""
    # llama.cpp multiplies Gemma's embeddings by the root of their length
    file.weight("token_embd.weight", tiny.n_vocab, tiny.n_embd)
    file.norm("output_norm.weight", tiny)
    file.weight("output.weight", tiny.n_vocab, tiny.n_embd, scale=3.0)
    for layer in range(tiny.n_layer):
        at = f"blk.{layer}."
        file.norm(at + "attn_norm.weight", tiny)
        file.attention(at, tiny)
        file.norm(at + "post_attention_norm.weight", tiny)
        file.norm(at + "ffn_norm.weight", tiny)
        file.feed_forward(at, tiny)
        file.norm(at + "post_ffw_norm.weight", tiny)
