"""A tiny LFM2: short convolutions between attention layers, a hybrid that people run."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

_KERNEL = 3  # tokens that a convolution sees


def write_lfm2(path: Path, tiny: Tiny = Tiny()) -> Path:
    """Layers alternate: convolution, attention."""
    heads = [tiny.n_head_kv if layer % 2 else 0 for layer in range(tiny.n_layer)]
    with GgufFile(path, "lfm2", tiny.seed) as file:
        file.transformer(tiny, kv_heads=heads)
        file.numbers(shortconv__l_cache=_KERNEL)
        file.tokenizer(tiny)
        file.weight("token_embd.weight", tiny.n_vocab, tiny.n_embd, scale=8.0)
        file.norm("token_embd_norm.weight", tiny)  # the last norm, by the name that LFM2 has for it
        file.weight("output.weight", tiny.n_vocab, tiny.n_embd, scale=3.0)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.norm(at + "ffn_norm.weight", tiny)
            file.feed_forward(at, tiny)
            if layer % 2:
                file.attention(at, tiny)
            else:
                file.weight(at + "shortconv.conv.weight", tiny.n_embd, _KERNEL, scale=2.0)
                file.weight(at + "shortconv.in_proj.weight", 3 * tiny.n_embd, tiny.n_embd)
                file.weight(at + "shortconv.out_proj.weight", tiny.n_embd, tiny.n_embd)
    return path
