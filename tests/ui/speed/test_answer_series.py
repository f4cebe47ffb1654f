"""The points of the curves: what they tell, and that their number is bounded."""

from __future__ import annotations

import itertools

import pytest

from tests.ui.test_live_numbers import chunk
from ui.speed.answer_series import WINDOW, AnswerSeries, index_at


def test_a_point_for_each_pass() -> None:
    series = AnswerSeries()
    for tokens, drafted, accepted, at in ((1, 0, 0, 0.5), (3, 4, 2, 0.6), (5, 4, 4, 0.8), (1, 0, 0, 0.9)):
        series.add(chunk(tokens, drafted, accepted, at))
    assert [(p.first, p.last, p.end, p.tokens, p.drafted, p.accepted, p.drafter) for p in series.points] == [
        (1, 1, 1, 1, 0, 0, None),
        (2, 2, 4, 3, 4, 2, "cache"),
        (3, 3, 9, 5, 4, 4, "cache"),
        (4, 4, 10, 1, 0, 0, None),
    ]
    # The first pass holds the prompt: it only says when the answer began.
    assert [p.speed for p in series.points] == [None, pytest.approx(30.0), pytest.approx(8 / 0.3), 22.5]
    assert [p.acceptance for p in series.points] == [None, 0.5, 0.75, 0.75]
    assert [p.draft_length for p in series.points] == [None, 4.0, 4.0, 4.0]


def test_a_point_looks_back_over_a_few_passes_only() -> None:
    series = AnswerSeries()
    for step in range(3 * WINDOW):
        early = step < 2 * WINDOW
        series.add(chunk(4, 8, 2, step * 0.1) if early else chunk(2, 0, 0, 6.4 + step * 0.2))
    middle, last = series.points[2 * WINDOW - 1], series.points[-1]
    assert (middle.speed, middle.acceptance, middle.draft_length) == (pytest.approx(40.0), 0.25, 8.0)
    assert (last.speed, last.acceptance, last.draft_length) == (pytest.approx(10.0), None, None)


def test_memory_is_bounded_and_nothing_is_lost() -> None:
    series = AnswerSeries(limit=64)
    said = drafted = accepted = 0
    for step in range(10_000):
        now = (1 + step % 5, step % 7, min(step % 5, step % 7))
        said, drafted, accepted = said + now[0], drafted + now[1], accepted + now[2]
        series.add(chunk(*now, step * 0.01))
        assert len(series.points) <= 64
    points = series.points
    assert len(points) > 32
    assert (sum(p.tokens for p in points), points[-1].end) == (said, said)
    assert (sum(p.drafted for p in points), sum(p.accepted for p in points)) == (drafted, accepted)
    assert points[0].first == 1 and points[-1].last == series.passes == 10_000
    assert all(a.last + 1 == b.first and a.end + b.tokens == b.end for a, b in itertools.pairwise(points))
    # The same work all along: a merged point tells the same as the passes did.
    assert all(p.speed == pytest.approx(300, rel=0.05) for p in points[1:])
    assert all(p.acceptance == pytest.approx(accepted / drafted, rel=0.2) for p in points)


def test_an_odd_limit_is_held_too() -> None:
    series = AnswerSeries(limit=3)
    for step in range(50):
        series.add(chunk(1, 0, 0, step * 0.1))
    assert len(series.points) <= 3
    assert sum(p.tokens for p in series.points) == 50
    with pytest.raises(ValueError):
        AnswerSeries(limit=1)


def test_who_drafted_most_names_a_merged_point() -> None:
    series = AnswerSeries(limit=2)
    for at, (drafted, accepted) in enumerate(((5, 5), (2, 1), (0, 0), (3, 3))):
        series.add(chunk(1 + accepted, drafted, accepted, at * 0.1))
    assert [p.drafter for p in series.points] == ["cache", "cache"]
    assert [(p.first, p.last, p.drafted) for p in series.points] == [(1, 2, 7), (3, 4, 3)]


def test_the_point_at_a_place_of_the_answer() -> None:
    series = AnswerSeries()
    assert index_at(series.points, 5.0) is None
    for step in range(10):
        series.add(chunk(3, 0, 0, step * 0.1))
    found = [index_at(series.points, place) for place in (-1.0, 0.0, 3.0, 3.1, 17.0, 30.0, 99.0)]
    assert found == [0, 0, 0, 1, 5, 9, 9]


def test_a_clock_that_steps_back_starts_the_window_anew() -> None:
    series = AnswerSeries()
    for at in (5.0, 5.1, 0.1, 0.2):
        series.add(chunk(2, 4, 1, at))
    assert [p.speed is None for p in series.points] == [True, False, True, False]
    assert series.points[-1].speed == pytest.approx(20.0)
    series.clear()
    assert series.points == [] and series.passes == 0


def test_what_is_drawn_stays_where_it_is() -> None:
    series = AnswerSeries()
    assert series.thinned(8) == []
    before: list[int] = []
    changes = 0
    for step in range(200):
        series.add(chunk(1, 0, 0, step * 0.1))
        drawn = series.thinned(8)
        assert len(drawn) <= 9 and drawn[-1] is series.points[-1] and drawn[0] is series.points[0]
        places = [point.first for point in drawn]
        changes += places[: len(before) - 1] != before[:-1]
        before = places
    assert changes == 5, "each time there are twice as many"
