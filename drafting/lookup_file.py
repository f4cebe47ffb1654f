"""Reads llama.cpp's lookup cache files: the static tier of the cache drafter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drafting.follower_counts import FollowerCounts, key_arrays
from drafting.ngram_cache import STATIC_N

_TOKENS = 4  # of an n-gram in the file; shorter ones are filled up with -1
_NONE = -1


class LookupFileError(ValueError):
    """The bytes are no lookup cache that could be used; the text is a reason in one line."""


def read_lookup_file(data: bytes, n_vocab: int) -> FollowerCounts:
    """The counts of two-token contexts in a file as ``llama-lookup-create`` writes it.

    That is a sequence of records of 32-bit little-endian numbers: an n-gram of four tokens, how many
    pairs come, and the pairs of a token that followed and its count. Contexts of other lengths are
    passed over. Raises LookupFileError.
    """
    if len(data) % 4:
        raise LookupFileError("it ends in the middle of a number")
    words = np.frombuffer(data, "<i4").astype(np.int32)
    starts, pairs = _records(words.data)
    grams = words[starts[:, None] + np.arange(_TOKENS)]
    used = (grams[:, STATIC_N - 1] != _NONE) & (grams[:, STATIC_N] == _NONE)
    starts, pairs, grams = starts[used], pairs[used], grams[used]
    if not len(starts):
        raise LookupFileError(f"it has no contexts of {STATIC_N} tokens")
    # Where each pair lies: behind its record's start, and one after the other.
    before = np.cumsum(pairs) - pairs
    at = np.repeat(starts + _TOKENS + 1 - 2 * before, pairs) + 2 * np.arange(pairs.sum())
    tokens, counts = words[at], words[at + 1]
    gram_tokens = grams[:, :STATIC_N]
    if counts.min() < 1 or min(tokens.min(), gram_tokens.min()) < 0:
        raise LookupFileError("it is damaged")
    if max(tokens.max(), gram_tokens.max()) >= n_vocab:
        raise LookupFileError("it was made for another vocabulary")
    keys = key_arrays([grams[:, n] for n in reversed(range(STATIC_N))])[-1]
    return FollowerCounts(np.repeat(keys, pairs), tokens, counts)


def _records(words: memoryview[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each record starts, and its number of pairs."""
    starts, pairs = [], []
    at, end = 0, len(words)
    while at < end:
        if at + _TOKENS >= end:
            raise LookupFileError("it ends too early")
        count = words[at + _TOKENS]
        starts.append(at)
        pairs.append(count)
        at += _TOKENS + 1 + 2 * count
        if count < 1 or at > end:
            raise LookupFileError("it is damaged or ends too early")
    return np.array(starts, np.int64), np.array(pairs, np.int64)
