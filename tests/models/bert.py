"""A tiny BERT: an encoder whose attention looks both ways, and which gives vectors instead of words."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

MEAN = 1


def write_bert(path: Path, tiny: Tiny = Tiny(n_ctx_train=64), pooling: int = MEAN) -> Path:
    n_embd = tiny.n_embd
    with GgufFile(path, "bert", tiny.seed) as file:
        file.numbers(
            context_length=tiny.n_ctx_train,
            embedding_length=n_embd,
            block_count=tiny.n_layer,
            feed_forward_length=tiny.n_ff,
            attention__head_count=tiny.n_head,
            attention__causal=False,
            attention__layer_norm_epsilon=1e-5,
            pooling_type=pooling,
        )
        file.tokenizer(tiny, segments=2)
        file.weight("token_embd.weight", tiny.n_vocab, n_embd, scale=8.0)
        file.weight("token_types.weight", 2, n_embd)
        file.weight("position_embd.weight", tiny.n_ctx_train, n_embd)
        _norm(file, "token_embd_norm", n_embd)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
                file.weight(f"{at}{name}.weight", n_embd, n_embd)
                file.constant(f"{at}{name}.bias", n_embd, value=0.0)
            _norm(file, at + "attn_output_norm", n_embd)
            file.weight(at + "ffn_up.weight", tiny.n_ff, n_embd)
            file.constant(at + "ffn_up.bias", tiny.n_ff, value=0.0)
            file.weight(at + "ffn_down.weight", n_embd, tiny.n_ff)
            file.constant(at + "ffn_down.bias", n_embd, value=0.0)
            _norm(file, at + "layer_output_norm", n_embd)
    return path


def _norm(file: GgufFile, name: str, width: int) -> None:
    file.constant(f"{name}.weight", width)
    file.constant(f"{name}.bias", width, value=0.0)
