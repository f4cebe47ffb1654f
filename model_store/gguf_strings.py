"""Finds many strings of a GGUF array at once, where walking from one to the next would take too long."""

from __future__ import annotations


def strings_at_once(data: bytes, start: int, count: int) -> tuple[int, int]:
    """How many of the ``count`` strings from ``start`` on could be passed, and where the next one starts.

    There must be at least one string, and the eight bytes of its length.
    A length below 256 is a byte before seven zeros, and text hardly has those. All such places are
    looked up; they are lengths for certain as far as each string ends where the next one begins. What
    is left must be walked: the last string may end behind ``data``, a longer or empty one stops it.
    """
    # Only here, as it is worth it where a file with a large vocabulary is new.
    import numpy as np

    bytes_ahead = np.frombuffer(data, np.uint8, offset=start)
    zero = bytes_ahead == 0
    zeros = zero[:-1] & zero[1:]
    zeros = zeros[:-2] & zeros[2:]
    zeros = zeros[:-3] & zeros[3:]  # seven from here on
    lengths_at = np.flatnonzero(zeros[1:] & ~zero[: len(zeros) - 1])
    if not len(lengths_at) or lengths_at[0] != 0:
        return 0, start
    ends = lengths_at + 8 + bytes_ahead[lengths_at]
    broken = np.flatnonzero(ends[:-1] != lengths_at[1:])
    passed = min(int(broken[0]) + 1 if len(broken) else len(ends), count)
    return passed, start + int(ends[passed - 1])
