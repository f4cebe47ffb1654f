"""The first difference between two tokenizers, in words; none when one speaks the other's token ids."""

from __future__ import annotations

import re

from model_store.fingerprint import FIRST_TOKEN, tokenizer_fingerprint, vocabulary_size
from model_store.gguf_header import GgufHeader
from model_store.gguf_source import GgufSource

MAX_PADDING = 128
"""Vocabularies of one family differ in filler tokens at the end by up to this many."""

_SPECIAL = re.compile(r"tokenizer\.ggml\.(\w+)_token_id")
_UNIMPORTANT = ("mask",)  # a diffusion drafter has one of its own
_TOO_MANY = "the vocabularies are too large to be compared"


def tokenizer_difference(target: GgufSource, drafter: GgufSource) -> str | None:
    """What keeps ``drafter`` from using its target's token ids, to follow its name and a colon.

    Token texts are read only when the fingerprints differ. Raises GgufError and OSError.
    """
    theirs, ours = target.header, drafter.header
    if vocabulary_size(theirs) is None or vocabulary_size(ours) is None:
        return "it has no vocabulary" if vocabulary_size(theirs) else "the target has no vocabulary"
    if tokenizer_fingerprint(theirs) == tokenizer_fingerprint(ours):
        return None
    return (
        _sizes(theirs, ours) or _settings(theirs, ours) or _texts(target.token_texts(), drafter.token_texts())
    )


def _sizes(target: GgufHeader, drafter: GgufHeader) -> str | None:
    ours, theirs = vocabulary_size(drafter) or 0, vocabulary_size(target) or 0
    if abs(ours - theirs) <= MAX_PADDING:
        return None
    return (
        f"its vocabulary has {ours:,} tokens, the target's {theirs:,}, "
        f"and more than {MAX_PADDING} of difference cannot be padding"
    )


def _settings(target: GgufHeader, drafter: GgufHeader) -> str | None:
    for key, noun in (("model", "tokenizer"), ("pre", "pre-tokenizer")):
        ours, theirs = (_shown(h.text(f"tokenizer.ggml.{key}")) for h in (drafter, target))
        if ours != theirs:
            return f"its {noun} is {ours}, the target's {theirs}"
    for key, token in (("add_bos_token", "first"), ("add_eos_token", "last")):
        flags = [h.metadata.get(f"tokenizer.ggml.{key}") for h in (drafter, target)]
        if None not in flags and flags[0] != flags[1]:
            ours, theirs = ("adds no", "does") if flags[1] else ("adds a", "does not")
            return f"it {ours} {token} token to a text, the target {theirs}"
    for key in drafter.metadata:
        special = _SPECIAL.fullmatch(key)
        if special is None or special[1] in _UNIMPORTANT:
            continue
        ours_id, theirs_id = drafter.number(key), target.number(key)
        # A file that leaves one out says nothing about it.
        if theirs_id is not None and ours_id != theirs_id:
            return f"its {special[1]} token is {ours_id}, the target's {theirs_id}"
    return None


def _texts(target: tuple[str, ...] | None, drafter: tuple[str, ...] | None) -> str | None:
    if target is None or drafter is None:
        return _TOO_MANY
    for token in range(FIRST_TOKEN, min(len(target), len(drafter))):
        if drafter[token] != target[token]:
            return f"token {token}: {_shown(drafter[token])} vs {_shown(target[token])} in the target"
    return None


def _shown(text: str) -> str:
    """``text`` from a file, short and in one line."""
    text = text if len(text) <= 60 else text[:60] + "…"
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return f"`{shown}`" if shown else "not named"
