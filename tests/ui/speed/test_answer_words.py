"""What the panel draws, in words."""

from __future__ import annotations

import pytest

from drafting.statistics import Statistics
from tests.ui.test_live_numbers import chunk
from ui.speed import answer_words, numbers
from ui.speed.answer_series import AnswerSeries
from ui.speed.scale import round_end


def test_a_pass_in_a_sentence() -> None:
    series = AnswerSeries(limit=4)
    for tokens, drafted, accepted in ((1, 0, 0), (3, 4, 2)):
        series.add(chunk(tokens, drafted, accepted))
    assert [answer_words.pass_words(point) for point in series.points] == [
        "Pass 1: 1 token said, nothing drafted.",
        "Pass 2: 4 drafted by cache, 2 accepted, 3 tokens said.",
    ]
    for _ in range(4):
        series.add(chunk(3, 4, 2))
    merged = "Passes 5 to 6: 8 drafted by cache, 4 accepted, 6 tokens said."
    assert answer_words.pass_words(series.points[-1]) == merged


def test_a_curve_in_a_sentence() -> None:
    series = AnswerSeries()
    words = answer_words.course_words(series.points, lambda point: point.speed, numbers.speed)
    assert words == "Nothing to show yet."
    for step, (drafted, accepted) in enumerate(((0, 0), (4, 1), (4, 3))):
        series.add(chunk(1 + accepted, drafted, accepted, step * 0.1))
    words = answer_words.course_words(series.points, lambda point: point.acceptance, numbers.percent)
    assert words == "Between 25 % and 50 %, at last 50 %, in 3 passes."


def test_drafters_and_places_in_words() -> None:
    stats = Statistics()
    assert answer_words.drafters_words(stats) == answer_words.NOTHING_DRAFTED
    assert answer_words.positions_words(stats) == answer_words.NOTHING_DRAFTED
    stats.record_draft("cache", 3, 1)
    stats.record_draft("cache", 1, 1)
    stats.record_draft("map-k", 6, 3)
    assert answer_words.who_drafted(stats) == ["cache", "map-k"]
    assert answer_words.drafters_words(stats) == (
        "cache: 4 tokens in 2 drafts, 2 accepted (50 %). map-k: 6 tokens in 1 draft, 3 accepted (50 %)."
    )
    assert answer_words.by_position(stats) == [(3, 3), (2, 1), (2, 1), (1, 0), (1, 0), (1, 0)]
    assert answer_words.positions_words(stats).startswith(
        "Token 1 of a draft: 3 of 3 accepted (100 %). Token 2 of a draft: 1 of 2 accepted (50 %)."
    )


def test_silences_in_words() -> None:
    stats = Statistics()
    for reason in ("a draft would not pay", "no drafter has an offer", "no drafter has an offer"):
        stats.record_silence(reason)
    assert answer_words.silence_words(stats) == [
        "2 passes without a draft: no drafter has an offer",
        "1 pass without a draft: a draft would not pay",
    ]


@pytest.mark.parametrize(
    ("most", "least", "end"),
    [
        (0.0, 10.0, 10.0),
        (11.0, 10.0, 15.0),
        (60.0, 1.0, 60.0),
        (61.0, 1.0, 80.0),
        (0.7, 1.0, 1.0),
        (812, 1, 1000),
    ],
)
def test_an_axis_ends_at_a_round_number(most: float, least: float, end: float) -> None:
    assert round_end(most, least) == pytest.approx(end)


def test_an_axis_moves_seldom_while_its_curve_grows() -> None:
    ends = {round_end(tokens, 40.0) for tokens in range(1, 5001)}
    assert len(ends) < 20
