"""Whether a draft model's vocabulary fits its target: it must speak the target's very token ids."""

from __future__ import annotations

from model_store.fingerprint import FIRST_TOKEN
from native.model import Model

MAX_PADDING = 128
"""Vocabularies of one family differ in filler tokens at the end by up to this many."""


def vocabulary_mismatch(target: Model, draft: Model) -> str | None:
    """Why ``draft`` cannot draft for ``target``, naming the first difference; None when it can."""
    if target.vocab_type != draft.vocab_type:
        return f"vocabulary of type {draft.vocab_type}, target has {target.vocab_type}"
    if abs(target.n_vocab - draft.n_vocab) > MAX_PADDING:
        return f"vocabulary of {draft.n_vocab:,} tokens, target has {target.n_vocab:,}"
    if (draft.bos, draft.eos) != (target.bos, target.eos):
        return f"begin and end tokens {draft.bos} and {draft.eos}, target has {target.bos} and {target.eos}"
    for token in range(FIRST_TOKEN, min(target.n_vocab, draft.n_vocab)):
        ours, theirs = draft.token_text(token), target.token_text(token)
        if ours != theirs:
            return f"token {token} is {ours!r}, in the target {theirs!r}"
    return None
