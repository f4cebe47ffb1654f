"""The cost curve: what passes take, learned under noise and drift, steps included."""

from __future__ import annotations

import random

import pytest

from drafting.cost import CostCurve
from tests.drafting.scripted import F16, Q4_1


def test_known_sizes_are_kept_and_others_lie_between() -> None:
    curve = CostCurve(Q4_1)
    assert curve.relative(1) == 1.0
    assert curve.relative(4) == pytest.approx(2.6)
    assert curve.relative(7) == pytest.approx((4.3 + 5.3) / 2)
    assert curve.relative(80) == pytest.approx(28.9 + 16 * (28.9 - 15.8) / 32)


def test_a_step_is_known_where_both_its_sides_are() -> None:
    curve = CostCurve(F16)
    assert curve.relative(4) == curve.relative(5) < curve.relative(8)


def test_nothing_known_and_one_size_known() -> None:
    curve = CostCurve()
    assert curve.seconds(3) == curve.relative(3) == 1.0
    curve.observe(1, 0.01)
    assert curve.seconds(1) == 0.01
    assert curve.relative(4) > 1.5  # assumed to cost until seen


def test_the_machine_may_slow_down_without_changing_the_shape() -> None:
    curve = CostCurve({n: 0.01 * c for n, c in Q4_1.items()})
    for _ in range(200):
        curve.observe(1, 0.03)
    assert curve.seconds(1) == pytest.approx(0.03, rel=0.05)
    assert curve.seconds(8) > 0.1
    for _ in range(100):
        for n in (1, 2, 4):
            curve.observe(n, 0.03 * Q4_1[n])
    assert curve.relative(2) == pytest.approx(1.7, rel=0.05)


def test_the_shape_is_learned_through_noise() -> None:
    rng = random.Random(3)
    curve = CostCurve({1: 1.0, 2: 1.0, 4: 1.0})
    for _ in range(3000):
        n = rng.choice([1, 2, 4])
        noise = rng.choice([1.0, 1.0, 1.0, 1.1, 20.0 if rng.random() < 0.05 else 1.0])
        curve.observe(n, Q4_1[n] * noise)
    for n in (2, 4):
        assert curve.relative(n) == pytest.approx(Q4_1[n], rel=0.15)


def test_what_cannot_be_is_not_learned() -> None:
    curve = CostCurve(Q4_1)
    curve.observe(2, 0.0)
    curve.observe(2, -1.0)
    assert curve.relative(2) == pytest.approx(1.7)


def test_the_way_back_to_plain_passes_belongs_to_the_draft() -> None:
    curve = CostCurve({1: 1.0, 2: 1.5}, back=0.1)
    assert curve.relative(1) == 1.0
    assert curve.relative(2) == pytest.approx(1.6)
    assert curve.relative(2, plain=2) == pytest.approx(1.5)  # exact mode: two rows are the plain pass
    for _ in range(200):
        for rows, seconds in ((1, 1.0), (1, 1.0), (2, 1.5), (1, 1.2)):
            curve.observe(rows, seconds)
    assert curve.relative(2) == pytest.approx(1.7, rel=0.03)
    for _ in range(50):
        curve.observe(2, 1.5)
        curve.observe(1, 30.0)  # something else held it up
        curve.observe(1, 1.0)
    assert curve.relative(2) < 2.0
