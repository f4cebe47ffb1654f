"""The bytes of a file of earlier answers: token ids and nothing else, and a way to tell damage."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np

from drafting.follower_counts import Ints

VERSION = 1
MAX_BYTES = 1 << 26  # no file of ours is that long

_MAGIC = b"slipansw"
_HEAD = struct.Struct("<8sI32sII")  # magic, version, tokenizer fingerprint, answers, tokens of them all
_CHECKSUM = hashlib.sha256
_CHECKSUM_BYTES = 32


class AnswerFileError(ValueError):
    """The bytes are no answers that could be used; the text is a reason in a few words."""


def encode(answers: Sequence[Ints], fingerprint: str) -> bytes:
    """Head, length of each answer, token ids (all little-endian), SHA-256 of what comes before it."""
    lengths = np.array([len(answer) for answer in answers], "<u4")
    tokens = np.concatenate([np.zeros(0, "<i4"), *answers]).astype("<i4")
    head = _HEAD.pack(_MAGIC, VERSION, fingerprint.encode(), len(lengths), len(tokens))
    body = head + lengths.tobytes() + tokens.tobytes()
    return body + _CHECKSUM(body).digest()


def decode(data: bytes, fingerprint: str) -> list[Ints]:
    """The answers, oldest first. Raises AnswerFileError, also for another tokenizer's."""
    if not data:
        raise AnswerFileError("it is empty")
    if len(data) < _HEAD.size or not data.startswith(_MAGIC):
        raise AnswerFileError("it is damaged")
    _, version, tokenizer, n_answers, n_tokens = _HEAD.unpack_from(data)
    if version != VERSION:
        raise AnswerFileError(f"it has the format {version}, and this program reads {VERSION}")
    at = _HEAD.size + 4 * (n_answers + n_tokens)
    body = data[:at]
    if len(data) != at + _CHECKSUM_BYTES or _CHECKSUM(body).digest() != data[at:]:
        raise AnswerFileError("it is damaged")
    if tokenizer != fingerprint.encode():
        raise AnswerFileError("it belongs to another tokenizer")
    lengths = np.frombuffer(body, "<u4", n_answers, _HEAD.size)
    tokens = np.frombuffer(body, "<i4", n_tokens, _HEAD.size + 4 * n_answers).astype(np.int32)
    if lengths.sum() != n_tokens:
        raise AnswerFileError("it is damaged")
    return np.split(tokens, np.cumsum(lengths)[:-1]) if n_answers else []
