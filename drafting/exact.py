"""Exact mode: a sequence whose passes stay inside one group of sizes says the same with and without
drafts, bit by bit.

Kernels sum in another order for one row than for several, or from a certain number on, and the last
bit of a float can turn a greedy choice. Which sizes agree is found by trying (exact_check).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ExactRows(NamedTuple):
    """Passes of ``least`` to ``most`` rows compute the same."""

    least: int
    most: int


_MOST_PADDING = 4


def best_group(sizes: Sequence[int], same: Sequence[bool]) -> ExactRows | None:
    """The first run of sizes that agree: the one that needs the least padding.

    ``same[i]`` tells whether sizes i and i + 1 compute the same. A run that begins beyond the sizes
    that are tried one by one is not believed: some kernels take rows by fours and compute the odd
    ones in another way, and the few odd rows of a large pass may agree by chance.
    """
    for first, agrees in enumerate(same):
        if agrees and sizes[first] <= _MOST_PADDING:
            last = first + 1
            while last < len(same) and same[last]:
                last += 1
            return ExactRows(sizes[first], sizes[last])
    return None
