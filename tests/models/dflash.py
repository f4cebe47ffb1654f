"""A tiny DFlash drafter: a block of tokens a pass, over hidden states of its target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

MASK = 511  # a filler token, which no text has
_RANK = 16  # of the Markov head


def write_dflash(
    path: Path,
    tiny: Tiny = Tiny(n_layer=1),
    *,
    target_layers: Sequence[int] = (1, 2, 3),
    block_size: int = 8,
    markov: bool = False,
    confidence: bool = True,
    drafts_from_anchor: bool = True,
    causal: bool = False,
    selector: bool = False,
) -> Path:
    """``tiny`` has its target's hidden size and vocabulary, and embeddings and output are the target's.

    ``markov`` makes it a DSpark drafter, with a head for ``confidence`` or without; the row of a block's
    known token drafts too, unless ``drafts_from_anchor`` is false. ``causal`` hides from a block's rows
    those behind them. A ``selector`` makes it
    look like one of DFlash 2.
    """
    with GgufFile(path, "dflash", tiny.seed + 2) as file:
        file.transformer(tiny)
        file.numbers(target_layers=target_layers, block_size=block_size)
        if causal:
            file.numbers(attention__causal=True)
        if not drafts_from_anchor:
            file.numbers(sample_from_anchor=False)
        file.tokenizer(tiny, mask=MASK)
        file.weight("fc.weight", tiny.n_embd, len(target_layers) * tiny.n_embd)
        file.norm("enc.output_norm.weight", tiny)
        file.norm("output_norm.weight", tiny)
        for layer in range(tiny.n_layer):
            at = f"blk.{layer}."
            file.norm(at + "attn_norm.weight", tiny)
            file.attention(at, tiny)
            file.norm(at + "ffn_norm.weight", tiny)
            file.feed_forward(at, tiny)
        if selector:
            file.weight("selector_hidden.weight", _RANK, tiny.n_embd)
        if markov:
            file.weight("markov_w1.weight", tiny.n_vocab, _RANK, scale=4.0)
            file.weight("markov_w2.weight", tiny.n_vocab, _RANK, scale=3.0)
            if confidence:
                file.weight("conf_proj.weight", 1, tiny.n_embd + _RANK)
                file.constant("conf_proj.bias", 1, value=0.0)
    return path
