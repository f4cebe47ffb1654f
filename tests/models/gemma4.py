"""A tiny Gemma 4, and the assistant that drafts for it out of its KV cache."""

from __future__ import annotations

from pathlib import Path

from tests.models.gemma3 import gemma_weights
from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

WINDOW = 32  # tokens
_ASSISTANT_EMBD = 32


def write_gemma4(path: Path, tiny: Tiny = Tiny()) -> Path:
    """Layer 0 has a window of 32 tokens, layer 1 sees everything, and so on."""
    with GgufFile(path, "gemma4", tiny.seed) as file:
        file.transformer(tiny)
        _windows(file, tiny, tiny.n_layer)
        file.numbers(embedding_length_per_layer_input=0)
        file.tokenizer(tiny)
        gemma_weights(file, tiny)
        file.constant("rope_freqs.weight", tiny.n_embd // tiny.n_head // 2)
    return path


def write_gemma4_assistant(path: Path, target: Tiny = Tiny(), *, layers: int = 2, seed: int = 4) -> Path:
    """A head for ``target``, half as wide: its own queries, the target's last layers' keys and values."""
    width, heads = _ASSISTANT_EMBD, target.n_head
    head_width = target.n_embd // heads
    with GgufFile(path, "gemma4-assistant", seed) as file:
        file.numbers(
            context_length=target.n_ctx_train,
            embedding_length=width,
            embedding_length_out=target.n_embd,
            block_count=layers,
            nextn_predict_layers=layers,
            feed_forward_length=target.n_ff,
            attention__head_count=heads,
            attention__head_count_kv=target.n_head_kv,
            attention__key_length=head_width,
            attention__value_length=head_width,
            rope__dimension_count=head_width,
            attention__layer_norm_rms_epsilon=1e-5,
            vocab_size=target.n_vocab,
        )
        _windows(file, target, layers)
        file.tokenizer(target)
        file.weight("token_embd.weight", target.n_vocab, width, scale=3.0)
        file.constant("output_norm.weight", width)
        file.constant("rope_freqs.weight", head_width // 2)
        file.weight("nextn.pre_projection.weight", width, 2 * target.n_embd)
        file.weight("nextn.post_projection.weight", target.n_embd, width)
        for layer in range(layers):
            at = f"blk.{layer}."
            file.weight(at + "attn_q.weight", heads * head_width, width)
            file.weight(at + "attn_output.weight", width, heads * head_width)
            file.constant(at + "attn_q_norm.weight", head_width)
            file.weight(at + "ffn_gate.weight", target.n_ff, width)
            file.weight(at + "ffn_up.weight", target.n_ff, width)
            file.weight(at + "ffn_down.weight", width, target.n_ff)
            file.constant(at + "layer_output_scale.weight", 1)
            for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
                file.constant(f"{at}{norm}.weight", width)
    return path


def _windows(file: GgufFile, tiny: Tiny, layers: int) -> None:
    head_width = tiny.n_embd // tiny.n_head
    file.numbers(
        attention__sliding_window=WINDOW,
        attention__sliding_window_pattern=[layer % 2 == 0 for layer in range(layers)],
        attention__key_length_swa=head_width,
        attention__value_length_swa=head_width,
        rope__dimension_count_swa=head_width,
    )
