"""The shared history and its n-gram indexes, held to a scan of the tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drafting.history import History, NgramIndex, common_prefix

tokens = st.lists(st.integers(0, 2), max_size=60)
N = (1, 2, 4, 12)


def scan(history: list[int], n: int) -> list[int]:
    """Where the last n tokens were seen before, newest first."""
    if len(history) <= n:
        return []
    return [e for e in range(len(history) - 1, n - 1, -1) if history[e - n : e] == history[-n:]]


@given(tokens, tokens)
def test_common_prefix_is_what_a_loop_would_count(a: list[int], b: list[int]) -> None:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    assert common_prefix(a, b) == n
    assert common_prefix(a, [*a, *b]) == len(a)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), tokens), max_size=12))
def test_matches_are_those_of_a_scan_after_any_edits(edits: list[tuple[bool, int, list[int]]]) -> None:
    history, expected = History(), []
    for begins, keep, new in edits:
        if begins:
            expected = expected[:keep] + new
            history.begin(expected)
        else:
            expected = expected + new
            history.commit(new)
        assert history.tokens == expected
        for n in N:
            assert history.earlier(n, 1000) == scan(expected, n)
            assert history.earlier(n, 2) == scan(expected, n)[:2]


def test_the_index_grows_with_the_history_and_forgets_what_is_cut() -> None:
    history = History()
    period = list(range(700))
    history.index(3)
    for _ in range(5):
        history.commit(period)
    assert history.earlier(3, 10) == [2800, 2100, 1400, 700]
    history.begin(history.tokens[:1400])
    assert history.earlier(3, 10) == [700]
    history.begin([*history.tokens, *period])
    assert history.earlier(3, 10) == [1400, 700]


def test_a_full_slot_never_gives_a_wrong_match() -> None:
    """All n-grams in one slot: every look-up must still tell them apart."""
    index = NgramIndex(2, [])
    index._slot = lambda key: 0  # type: ignore[method-assign]
    index._tokens.extend([1, 2, 3, 1, 2, 4, 1, 2])
    index.grow()
    assert list(index.ends([1, 2])) == [8, 5, 2]
    assert list(index.ends([3, 1])) == [4]
    assert list(index.ends([9, 9])) == []
