"""The index over earlier answers, held to a scan of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting.follower_counts import keys_of
from drafting.past_answers import LONGEST_MATCH, MIN_SEEN, MIN_SHARE
from tests.drafting.past import held

token_lists = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=30), max_size=5)
tails = st.lists(st.integers(0, 3), max_size=20)


def matched(text: list[int], end: int, tail: list[int]) -> int:
    n = 0
    while n < min(end, len(tail), LONGEST_MATCH) and text[end - n - 1] == tail[-n - 1]:
        n += 1
    return n


@given(token_lists, tails, st.integers(1, 4), st.integers(1, 6))
def test_matches_are_the_longest_there_are(
    answers: list[list[int]], tail: list[int], most: int, least: int
) -> None:
    past = held(answers)
    scanned = [(matched(a, end, tail), a[end:]) for a in answers for end in range(1, len(a))]
    lengths = sorted((n for n, _ in scanned if n >= least), reverse=True)
    found = past.matches(tail, most, least)
    assert [n for _, n in found] == lengths[:most]
    assert len({place for place, _ in found}) == len(found)
    for place, n in found:
        follow = past.following(place, 100)
        assert (n, follow) in scanned
        assert past.following(place, 2) == follow[:2]


@given(token_lists)
def test_counts_are_those_of_a_scan_as_far_as_they_prove_enough(answers: list[list[int]]) -> None:
    past = held(answers)
    followers: dict[tuple[int, ...], Counter[int]] = {}
    for answer in answers:
        for end in range(len(answer)):
            for n in range(1, min(4, end) + 1):
                followers.setdefault(tuple(answer[end - n : end]), Counter())[answer[end]] += 1
    believed = 0
    for context, counts in followers.items():
        row = past.counts.find(keys_of(list(context), len(context))[-1])
        n, seen, most = len(context), counts.total(), max(counts.values())
        if seen >= MIN_SEEN[n] and most >= MIN_SHARE[n] * seen:
            assert past.counts.seen(row) == seen
            assert past.counts.followers(row) == counts
            assert past.counts.favourite(row)[1] == most
            believed += 1
        else:
            assert row == -1
    assert len(past.counts) == believed


def test_a_long_match_is_found_among_many_short_ones() -> None:
    rng = np.random.default_rng(1)
    sentence = list(range(100, 200))
    answers = [rng.integers(0, 200, 300).tolist() for _ in range(50)]
    answers.insert(20, [7, *sentence, 8])
    past = held(answers)
    assert past.matches(sentence[:80], 1, 1)[0][1] == LONGEST_MATCH
    place, n = past.matches(sentence[:40], 1, 1)[0]
    assert n == 40
    assert past.following(place, 100) == [*sentence[40:], 8]


def test_the_newest_of_equal_answers_comes_first() -> None:
    past = held([[*range(40), 50], [*range(40), 60]])
    followed = [past.following(place, 1) for place, _ in past.matches(list(range(40)), 2, 1)]
    assert followed == [[60], [50]]


@pytest.mark.parametrize("answers", [[], [[5]], [[5], [6]]])
def test_nothing_to_find(answers: list[list[int]]) -> None:
    past = held(answers)
    assert len(past) == 0
    assert past.matches([5, 6], 8, 1) == []
    assert len(past.counts) == 0


def test_new_answers_take_the_place_of_the_old() -> None:
    past = held([[1, 2, 3]])
    past.hold([np.array([7, 8, 9], np.int32)])
    assert past.matches([1, 2], 8, 1) == []
    assert [n for _, n in past.matches([7, 8], 8, 1)] == [2]
