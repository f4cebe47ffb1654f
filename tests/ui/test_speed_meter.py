"""The sliding window of tokens per second."""

import pytest

from ui.speed.speed_meter import SpeedMeter


def test_nothing_and_one_sample_have_no_speed() -> None:
    meter = SpeedMeter()
    assert meter.rate() is None
    meter.add(5, 0.4)
    assert meter.rate() is None


def test_steady_tokens_give_their_speed() -> None:
    meter = SpeedMeter(1.0)
    for step in range(200):
        meter.add(3, 0.5 + step * 0.05)
    assert meter.rate() == pytest.approx(60.0)


def test_old_tokens_leave_the_window() -> None:
    meter = SpeedMeter(1.0)
    for step in range(100):
        meter.add(10, step * 0.01)  # 1,000 per second
    for step in range(31):
        meter.add(1, 1.0 + step * 0.1)  # 10 per second, for three seconds
    assert meter.rate() == pytest.approx(10.0)


def test_a_burst_shorter_than_the_window_counts_what_there_is() -> None:
    meter = SpeedMeter(1.0)
    meter.add(1, 0.0)
    meter.add(4, 0.1)
    assert meter.rate() == pytest.approx(40.0)


def test_the_same_time_twice_is_no_division_by_zero() -> None:
    meter = SpeedMeter()
    meter.add(1, 0.2)
    meter.add(1, 0.2)
    assert meter.rate() is None


def test_a_clock_that_starts_over_begins_a_new_window() -> None:
    meter = SpeedMeter()
    meter.add(100, 9.0)
    meter.add(100, 9.5)
    meter.add(1, 0.1)
    assert meter.rate() is None


def test_a_window_below_a_second_is_refused() -> None:
    with pytest.raises(ValueError, match="second"):
        SpeedMeter(0.5)
