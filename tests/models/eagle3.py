"""A tiny EAGLE-3 head: one layer over hidden states of three of its target's layers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.models.gguf_file import GgufFile
from tests.tiny_gguf import Tiny

N_DRAFT = 256  # tokens that it can draft


def write_eagle3(
    path: Path,
    tiny: Tiny = Tiny(),
    *,
    target_layers: Sequence[int] = (1, 2, 3),
    target_hidden_size: int | None = None,
    reduced: bool = True,
    own_embeddings: bool = False,
) -> Path:
    """``tiny`` is the target's: hidden size and vocabulary are shared with it.

    A ``reduced`` head drafts every other token of the vocabulary and has an output matrix of its own;
    otherwise it drafts all of them through its target's.
    """
    hidden = tiny.n_embd if target_hidden_size is None else target_hidden_size
    with GgufFile(path, "eagle3", tiny.seed + 1) as file:
        file.transformer(tiny, layers=1)
        file.numbers(
            target_layers=target_layers,
            target_hidden_size=hidden,
            norm_before_residual=False,
            norm_before_fc=False,
        )
        file.tokenizer(tiny)
        file.weight("fc.weight", tiny.n_embd, len(target_layers) * hidden)
        if own_embeddings:
            file.weight("token_embd.weight", tiny.n_vocab, tiny.n_embd, scale=8.0)
        file.norm("output_norm.weight", tiny)
        if reduced:
            file.weight("output.weight", N_DRAFT, tiny.n_embd, scale=3.0)
            file.tensor("d2t", np.arange(0, 2 * N_DRAFT, 2, dtype=np.int64))
        at = "blk.0."
        file.norm(at + "attn_norm.weight", tiny)
        file.norm(at + "attn_norm_2.weight", tiny)
        file.attention(at, tiny, inputs=2 * tiny.n_embd, head_norms=False)
        file.norm(at + "ffn_norm.weight", tiny)
        file.feed_forward(at, tiny)
    return path
