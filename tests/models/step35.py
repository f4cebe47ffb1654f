"""A tiny Step 3.5: attention alone, every other layer in a sliding window, and MTP heads in a chain."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

WINDOW = 32  # tokens


def write_step35(path: Path, tiny: Tiny = Tiny(), *, heads: int = 3) -> Path:
    """Layer 0 has a window of 32 tokens, layer 1 sees everything; ``heads`` MTP layers follow, windowed
    but for the last one."""
    layers = tiny.n_layer + heads
    with GgufFile(path, "step35", tiny.seed) as file:
        file.transformer(tiny, layers=layers)
        windowed = [layer % 2 == 0 for layer in range(tiny.n_layer)] + [True] * (heads - 1) + [False]
        file.numbers(
            expert_feed_forward_length=tiny.n_ff,  # its layers here have no experts
            attention__sliding_window=WINDOW,
            attention__sliding_window_pattern=windowed[:layers],
            nextn_predict_layers=heads,
        )
        file.tokenizer(tiny)
        file.embeddings(tiny)
        for layer in range(layers):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.attention(at, tiny)
            file.norm(at + "ffn_norm.weight", tiny)
            file.feed_forward(at, tiny)
            if layer >= tiny.n_layer:
                file.weight(at + "nextn.eh_proj.weight", tiny.n_embd, 2 * tiny.n_embd)
                file.norm(at + "nextn.enorm.weight", tiny)
                file.norm(at + "nextn.hnorm.weight", tiny)
                file.norm(at + "nextn.shared_head_norm.weight", tiny)
    return path
