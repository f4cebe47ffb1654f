"""A tiny Mamba: no attention at all, its whole past is one state."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

_STATE = 8
_RANK = 4  # of the time step's projection
_KERNEL = 4  # tokens that the convolution sees


def write_mamba(path: Path, tiny: Tiny = Tiny()) -> Path:
    inner = 2 * tiny.n_embd  # llama.cpp knows no other expansion
    with GgufFile(path, "mamba", tiny.seed) as file:
        file.numbers(
            context_length=tiny.n_ctx_train,
            embedding_length=tiny.n_embd,
            block_count=tiny.n_layer,
            feed_forward_length=0,
            attention__head_count=0,
            attention__layer_norm_rms_epsilon=1e-5,
            vocab_size=tiny.n_vocab,
            ssm__conv_kernel=_KERNEL,
            ssm__inner_size=inner,
            ssm__state_size=_STATE,
            ssm__time_step_rank=_RANK,
        )
        file.tokenizer(tiny)
        file.embeddings(tiny)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.weight(at + "ssm_in.weight", 2 * inner, tiny.n_embd)
            file.weight(at + "ssm_conv1d.weight", inner, _KERNEL, scale=2.0)
            file.constant(at + "ssm_conv1d.bias", inner, value=0.0)
            file.weight(at + "ssm_x.weight", _RANK + 2 * _STATE, inner)
            file.weight(at + "ssm_dt.weight", inner, _RANK)
            file.random(at + "ssm_dt.bias", inner, low=-3.0, high=-1.0)
            file.random(at + "ssm_a", inner, _STATE, low=-1.0, high=-0.1)
            file.constant(at + "ssm_d", inner)
            file.weight(at + "ssm_out.weight", tiny.n_embd, inner)
    return path
