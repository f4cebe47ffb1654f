"""What the models folder's list says about one file, read from its header."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from model_store.classify import Kind, classify
from model_store.fingerprint import TO_HASH, tokenizer_fingerprint
from model_store.gguf_header import GgufError, GgufHeader, read_header

_MAX_DESCRIPTION = 200  # characters


class Scan(msgspec.Struct, frozen=True):
    """``problem`` says why the file cannot be used; nothing else is known then.

    ``fingerprint`` is that of its tokenizer, None where it has no vocabulary.
    """

    kind: Kind
    problem: str | None = None
    architecture: str = ""
    description: str = ""
    fingerprint: str | None = None


def scan_file(path: Path) -> Scan:
    """Read the header of ``path``. Raises OSError; what is wrong with the file itself is in the Scan."""
    try:
        header = read_header(path, hash_arrays=TO_HASH)
    except GgufError as error:
        return Scan("other", str(error))
    classified = classify(header)
    noun = None if classified.kind == "chat" else re.sub("^an? ", "", classified.noun)
    return Scan(
        classified.kind,
        None,
        header.architecture,
        _description(header, noun),
        tokenizer_fingerprint(header),
    )


def _description(header: GgufHeader, noun: str | None) -> str:
    """A line such as "llama, 135M, Q4_1, context 8,192"."""
    weights: Counter[str] = Counter()
    for tensor in header.tensors:
        weights[tensor.type] += tensor.size
    context = header.number("{arch}.context_length")
    words = [
        noun,
        header.architecture,
        header.text("general.size_label"),
        weights.most_common(1)[0][0] if weights else None,
        f"context {context:,}" if context else None,
    ]
    line = ", ".join(word for word in words if word)
    return "".join(char if char.isprintable() else " " for char in line)[:_MAX_DESCRIPTION]
