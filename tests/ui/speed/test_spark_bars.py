"""The strip's bars: they come one by one and stay where they are."""

from __future__ import annotations

import itertools

import pytest

from ui.speed.spark_bars import SparkBars


def test_a_bar_is_there_once_its_time_is_over() -> None:
    bars = SparkBars(slots=4, width_s=0.5)
    bars.add(7, 10.0)  # the first says when the answer began
    bars.add(10, 10.2)
    bars.add(5, 10.4)
    assert bars.rates == []
    bars.add(4, 10.6)
    assert bars.rates == [30.0]
    bars.add(4, 11.6)  # a pause is a bar of nothing
    assert bars.rates == [30.0, 8.0, 0.0]


def test_bars_stay_until_two_become_one() -> None:
    bars = SparkBars(slots=4, width_s=1.0)
    seen: list[list[float]] = []
    for step in range(33):
        bars.add(6 if step % 2 else 2, step * 0.5)
        seen.append(bars.rates)
        assert len(bars.rates) < 4
    for before, after in itertools.pairwise(seen):
        assert after[: len(before)] == before or len(after) < len(before)
    assert sum(1 for a, b in itertools.pairwise(seen) if len(b) < len(a)) == 3
    assert all(rate == pytest.approx(8.0, rel=0.2) for rate in seen[-1])


def test_a_long_pause_is_merged_at_once() -> None:
    bars = SparkBars(slots=4, width_s=1.0)
    bars.add(1, 0.0)
    bars.add(64, 0.5)
    bars.add(1, 3600.0)
    assert len(bars.rates) < 4
    bars.clear()
    assert bars.rates == []
    with pytest.raises(ValueError):
        SparkBars(slots=3)
