"""Hidden states are kept by position, without holes, and within bounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from drafting.hidden_states import HiddenStates


def layers(first: int, count: int, seq: int = 0) -> list[npt.NDArray[np.float32]]:
    """Two layers of two floats: a position's row is (position, seq, -position, -seq)."""
    positions = np.arange(first, first + count, dtype=np.float32)
    low = np.stack([positions, np.full(count, seq, dtype=np.float32)], axis=1)
    return [low, -low]


def shown(states: HiddenStates, seq: int = 0) -> list[int]:
    """The positions by what their rows say, which must be what their places say."""
    span = states.span(seq)
    rows = states.rows(seq, span) if span else np.empty((0, 4))
    assert np.array_equal(rows[:, 0], list(span)) and np.array_equal(rows[:, 2], -rows[:, 0])
    assert (rows[:, 1] == seq).all()
    return [int(row) for row in rows[:, 0]]


def test_rows_follow_one_another_and_later_ones_replace_those_behind_them() -> None:
    states = HiddenStates(4, capacity=1000)
    assert not states.span(0)
    states.put(0, 0, layers(0, 300))
    states.put(0, 300, layers(300, 1))
    assert shown(states) == list(range(301))
    states.cut(0, 290)
    states.put(0, 290, layers(290, 3))
    assert shown(states) == list(range(293))
    states.put(0, 100, layers(100, 2))
    assert shown(states) == list(range(102))
    states.cut(0, 500)
    assert shown(states) == list(range(102))
    assert np.array_equal(states.rows(0, range(3, 5))[:, 0], [3, 4])


def test_sequences_are_kept_apart() -> None:
    states = HiddenStates(4, capacity=1000)
    states.put(0, 0, layers(0, 5))
    states.put(1, 0, layers(0, 7, seq=1))
    states.drop(0)
    states.cut(2, 3)
    assert not states.span(0)
    assert shown(states, 1) == list(range(7))


def test_a_hole_drops_what_lies_before_it() -> None:
    states = HiddenStates(4, capacity=1000)
    states.put(0, 0, layers(0, 5))
    states.put(0, 9, layers(9, 2))
    assert shown(states) == [9, 10]
    states.cut(0, 4)
    assert not states.span(0)
    states.put(0, 4, layers(4, 1))
    assert shown(states) == [4]


@pytest.mark.parametrize("piece", [1, 3, 16, 40])
def test_the_latest_stay_when_there_are_too_many(piece: int) -> None:
    states = HiddenStates(4, capacity=16)
    at = 0
    while at < 200:
        states.put(0, at, layers(at, piece))
        at += piece
        kept = shown(states)
        assert kept[-1] == at - 1
        assert min(at, 8) <= len(kept) <= 16
