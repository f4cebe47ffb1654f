"""A tiny Qwen3.5: gated delta-net layers between attention layers, and MTP heads behind them."""

from __future__ import annotations

from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

_STATE = 16  # width of one head's state
_KEY_HEADS, _VALUE_HEADS = 2, 4
_KERNEL = 4  # tokens that the convolution sees


def write_qwen35(path: Path, tiny: Tiny = Tiny(), *, heads: int = 1, trunk: bool = True) -> Path:
    """Layers alternate: recurrent, attention. ``heads`` MTP layers follow.

    Without ``trunk`` the file has its MTP layers alone, as a separate head file has.
    """
    with GgufFile(path, "qwen35", tiny.seed) as file:
        file.transformer(tiny, layers=tiny.n_layer + heads)
        sections = tiny.n_embd // tiny.n_head // 2
        file.numbers(
            rope__dimension_sections=[sections - 4, 2, 2, 0],
            full_attention_interval=2,
            ssm__conv_kernel=_KERNEL,
            ssm__inner_size=_STATE * _VALUE_HEADS,
            ssm__state_size=_STATE,
            ssm__time_step_rank=_VALUE_HEADS,
            ssm__group_count=_KEY_HEADS,
        )
        if heads:
            file.numbers(nextn_predict_layers=heads)
        file.tokenizer(tiny)
        file.embeddings(tiny)
        for layer in range(tiny.n_layer if trunk else 0):
            at = f"blk.{layer}."
            _around(file, at, tiny)
            if layer % 2:
                file.attention(at, tiny, gated=True)
            else:
                _delta_net(file, at, tiny)
        for layer in range(tiny.n_layer, tiny.n_layer + heads):
            at = f"blk.{layer}."
            _around(file, at, tiny)
            file.attention(at, tiny, gated=True)
            file.weight(at + "nextn.eh_proj.weight", tiny.n_embd, 2 * tiny.n_embd)
            file.norm(at + "nextn.enorm.weight", tiny)
            file.norm(at + "nextn.hnorm.weight", tiny)
            file.norm(at + "nextn.shared_head_norm.weight", tiny)
    return path


def _around(file: GgufFile, at: str, tiny: Tiny) -> None:
    file.norm(at + "attn_norm.weight", tiny)
    file.norm(at + "post_attention_norm.weight", tiny)
    file.feed_forward(at, tiny)


def _delta_net(file: GgufFile, at: str, tiny: Tiny) -> None:
    values = _STATE * _VALUE_HEADS
    mixed = 2 * _STATE * _KEY_HEADS + values
    file.weight(at + "attn_qkv.weight", mixed, tiny.n_embd)
    file.weight(at + "attn_gate.weight", values, tiny.n_embd)
    file.weight(at + "ssm_conv1d.weight", mixed, _KERNEL, scale=2.0)
    file.random(at + "ssm_dt.bias", _VALUE_HEADS, low=-3.0, high=-1.0)
    file.random(at + "ssm_a", _VALUE_HEADS, low=-1.0, high=-0.1)
    file.weight(at + "ssm_beta.weight", _VALUE_HEADS, tiny.n_embd)
    file.weight(at + "ssm_alpha.weight", _VALUE_HEADS, tiny.n_embd)
    file.constant(at + "ssm_norm.weight", _STATE)
    file.weight(at + "ssm_out.weight", tiny.n_embd, values)
