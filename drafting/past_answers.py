"""What this person's earlier answers say comes next: an index over them, made in one go."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drafting.follower_counts import FollowerCounts, Ints, group_starts, key_arrays
from drafting.history import common_prefix

LONGEST_MATCH = 64
_SORTED_BY = 32  # tokens: longer contexts that agree in so many stay in order of age
_NONE = -1  # between two answers, where no token is
# By n: what llama.cpp asks of its dynamic tier. Nothing weaker is kept.
MIN_SEEN = (0, 4, 3, 2, 2)
MIN_SHARE = (0.0, 0.75, 0.66, 0.66, 0.66)


class PastAnswers:
    """Earlier answers, shared by all chats with one vocabulary; they never change a chat's own state.

    Every place in them is sorted by the tokens before it, read backwards. So the places whose past is
    most like a text's end lie side by side, and a binary search finds them. Look-ups take some
    twenty steps whatever the number of answers; a new answer means a new index.
    """

    def __init__(self, answers: Sequence[Ints] = ()) -> None:
        """``answers``: token ids, oldest first."""
        self.hold(answers)

    def hold(self, answers: Sequence[Ints]) -> None:
        """Forget what there was and know these answers, oldest first. About 0.1 s for 128k tokens."""
        # Backwards, as contexts are read, with something between that no token equals.
        between = np.full(1, _NONE, np.int32)
        parts = [part for answer in reversed(answers) for part in (between, answer[::-1])]
        tokens = np.concatenate([*parts, np.full(LONGEST_MATCH, _NONE, np.int32)]).astype(np.int32)
        # Places that something precedes and something follows.
        places = np.flatnonzero((tokens[1:] != _NONE) & (tokens[:-1] != _NONE)) + 1
        ranks = [tokens + 1]
        ranks.append(_ranks(ranks[0], ranks[0], 1))
        ranks.append(_ranks(ranks[1], ranks[0], 2))
        ranks.append(_ranks(ranks[1], ranks[1], 2))
        self.counts = _counts(tokens, places, ranks)
        sorting, n = ranks[-1], len(ranks)
        while n < _SORTED_BY:
            sorting, n = _ranks(sorting, sorting, n), 2 * n
        order = places[np.argsort(sorting[places], kind="stable")]
        self._tokens = array("i", tokens.tobytes())
        self._order = array("i", order.astype(np.int32).tobytes())

    def __len__(self) -> int:
        """Places that could be found."""
        return len(self._order)

    def matches(self, tail: Sequence[int], most: int, least: int) -> list[tuple[int, int]]:
        """(place, matched tokens) where a text that ends with ``tail`` went on before, longest first.

        At most ``most`` of them, matched by at least ``least`` tokens.
        """
        order = self._order
        wanted = array("i", tail[: -LONGEST_MATCH - 1 : -1])
        key = wanted[:_SORTED_BY]
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            place = order[middle]
            if self._tokens[place : place + len(key)] < key:
                low = middle + 1
            else:
                high = middle
        left, right = low - 1, low
        before, after = self._matched(left, wanted), self._matched(right, wanted)
        found: list[tuple[int, int]] = []
        while len(found) < most and max(before, after) >= least:
            if after >= before:
                found.append((order[right], after))
                right += 1
                after = self._matched(right, wanted)
            else:
                found.append((order[left], before))
                left -= 1
                before = self._matched(left, wanted)
        return found

    def _matched(self, row: int, wanted: array[int]) -> int:
        if not 0 <= row < len(self._order):
            return 0
        place = self._order[row]
        return common_prefix(self._tokens[place : place + len(wanted)], wanted)

    def following(self, place: int, length: int) -> list[int]:
        """What came after ``place``, up to the end of that answer."""
        follow = self._tokens[max(0, place - length) : place].tolist()[::-1]
        return follow[: follow.index(_NONE)] if _NONE in follow else follow


def _ranks(first: Ints, then: Ints, offset: int) -> Ints:
    """For each place the rank, among all, of the n-gram that begins there: known are the ranks of its
    first ``offset`` tokens and, ``offset`` further on, of the rest."""
    pairs = first.astype(np.int64) << 32
    pairs[:-offset] |= then[offset:]
    _, ranks = np.unique(pairs, return_inverse=True)
    return np.asarray(ranks, np.int32)


def _counts(tokens: Ints, places: npt.NDArray[np.int64], ranks: Sequence[Ints]) -> FollowerCounts:
    """What followed each n-gram, as far as llama.cpp would believe it. ``ranks`` are by n - 1."""
    kept_keys, kept_tokens, kept_counts = [], [], []
    for i, rank in enumerate(ranks):
        n = i + 1
        places = places[tokens[places + i] != _NONE]
        seen = np.bincount(rank[places], minlength=1)
        often = places[(seen >= MIN_SEEN[n])[rank[places]]]
        pairs, first, counts = np.unique(
            rank[often].astype(np.int64) << 32 | tokens[often - 1], return_index=True, return_counts=True
        )
        grams = pairs >> 32
        starts = group_starts(grams)
        most = np.maximum.reduceat(counts, starts)
        believed = most >= MIN_SHARE[n] * seen[grams[starts]]
        kept = np.repeat(believed, np.diff(np.append(starts, len(pairs))))
        at = often[first[kept]]
        kept_keys.append(key_arrays([tokens[at + j] for j in range(n)])[-1])
        kept_tokens.append(tokens[at - 1])
        kept_counts.append(counts[kept].astype(np.int32))
    return FollowerCounts(np.concatenate(kept_keys), np.concatenate(kept_tokens), np.concatenate(kept_counts))
