"""A packed table of what followed which n-grams, made at once and then only read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]

_FACTOR = 6364136223846793005  # Knuth's MMIX multiplier
_MASK = (1 << 64) - 1
_MIX = 29
# Of the followers of one n-gram only so many are ever looked at: a look-up must stay short.
_MOST = 16


def keys_of(tokens: Sequence[int], longest: int) -> list[int]:
    """The keys of the last 1, 2, ... ``longest`` of the tokens, as far as there are so many."""
    key, power = 0, 1
    keys = []
    for token in reversed(tokens[-longest:]):
        key = (key + (token + 1) * power) & _MASK
        power = power * _FACTOR & _MASK
        keys.append((key ^ (key >> _MIX)) * _FACTOR & _MASK)
    return keys


def key_arrays(columns: Sequence[Ints]) -> list[Keys]:
    """The same for many n-grams: ``columns`` holds their last tokens, those before them, and so on."""
    key = np.zeros(len(columns[0]), np.uint64)
    power = 1
    keys = []
    for column in columns:
        key = key + (column.astype(np.uint64) + np.uint64(1)) * np.uint64(power)
        power = power * _FACTOR & _MASK
        keys.append((key ^ (key >> np.uint64(_MIX))) * np.uint64(_FACTOR))
    return keys


class FollowerCounts:
    """By key: the tokens that followed, how often each, the most frequent first, and how many in all.

    Keys lie sorted in one array, with the place where each group of equal leading bits begins, so a
    look-up is a handful of steps. 24 bytes for each key and 8 for each of its followers.
    """

    def __init__(self, keys: Keys, tokens: Ints, counts: Ints) -> None:
        """One entry for each pair of an n-gram's key and a token that followed it, in any order."""
        order = np.lexsort((-counts, keys))
        keys, counts = keys[order], counts[order]
        first = group_starts(keys)
        unique = keys[first]
        bits = max(1, len(unique).bit_length())
        self._shift = 64 - bits
        groups = np.arange(1 << bits, dtype=np.uint64) << np.uint64(self._shift)
        self._keys = _packed("Q", unique)
        self._groups = _packed("i", np.append(np.searchsorted(unique, groups), len(unique)))
        self._first = _packed("i", np.append(first, len(keys)))
        self._seen = _packed("q", np.add.reduceat(counts.astype(np.int64), first))
        self._tokens = _packed("i", tokens[order])
        self._counts = _packed("i", counts)

    def __len__(self) -> int:
        """How many n-grams it knows."""
        return len(self._keys)

    def find(self, key: int) -> int:
        """The row of an n-gram, -1 if it is not there."""
        group = key >> self._shift
        for row in range(self._groups[group], self._groups[group + 1]):
            if self._keys[row] == key:
                return row
        return -1

    def seen(self, row: int) -> int:
        """How often anything followed."""
        return self._seen[row]

    def favourite(self, row: int) -> tuple[int, int]:
        """The most frequent follower and how often it came."""
        first = self._first[row]
        return self._tokens[first], self._counts[first]

    def followers(self, row: int) -> dict[int, int]:
        """The most frequent followers with their counts, at most 16."""
        first = self._first[row]
        end = min(self._first[row + 1], first + _MOST)
        return dict(zip(self._tokens[first:end], self._counts[first:end], strict=True))


def group_starts(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1]))[: len(values)])


def _packed(code: str, values: npt.NDArray[Any]) -> array[int]:
    """As an array, whose items Python reads three times as fast as numpy's."""
    return array(code, values.astype(code).tobytes())
