"""A name for a tokenizer: two files with the same one mean the same text by the same token ids."""

from __future__ import annotations

import hashlib
import json
import re

from model_store.gguf_header import GgufHeader, Skipped

FIRST_TOKEN = 5
"""Ids before this one are special tokens, whose texts vary between conversions of one model."""

TOKENS = "tokenizer.ggml.tokens"
TO_HASH = {TOKENS: FIRST_TOKEN}
"""What ``read_header`` must hash for it: a few milliseconds for 262,144 tokens."""

# More special ids than a file has today, so that a new one is not overlooked.
_SPECIAL = re.compile(r"tokenizer\.ggml\.\w+_token_id")
_SETTINGS = (
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
)


def tokenizer_fingerprint(header: GgufHeader) -> str | None:
    """32 hexadecimal digits for the tokenizer of a GGUF (of a split one: of its first part).

    It covers the vocabulary's type, the pre-tokenizer, the texts of all ids from 5 up, the special
    ids, and whether begin and end tokens are added. None for a header without a vocabulary, or one
    that was not read with ``hash_arrays=TO_HASH``.
    """
    metadata = header.metadata
    tokens = metadata.get(TOKENS)
    if not isinstance(tokens, Skipped) or not tokens.sha256:
        return None
    said = {key: value for key, value in metadata.items() if key in _SETTINGS or _SPECIAL.fullmatch(key)}
    described = json.dumps([tokens.length, tokens.sha256.hex(), said], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:32]


def vocabulary_size(header: GgufHeader) -> int | None:
    """Tokens in the vocabulary, the filler ones included; None for a file without one."""
    tokens = header.metadata.get(TOKENS)
    if isinstance(tokens, Skipped):
        return tokens.length
    return len(tokens) if isinstance(tokens, tuple) else None
