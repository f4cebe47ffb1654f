"""Automatic mode on a target that computes accepted tokens again after a wrong draft."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drafting.auto_chain import AutoChain
from drafting.controller import PLAIN, Controller
from drafting.cost import CostCurve
from tests.drafting.scripted import CURVES, GPU, Q4_1, Scripted, script


def play(right: Sequence[bool], curve: dict[int, float], limit: int = 48) -> list[float]:
    """The time at which each token was said; plain takes 1.0 a token."""
    costs = CostCurve(curve, repeats=True)
    chain = AutoChain([Scripted(right)], Controller(costs), clock=lambda: 0.0)
    chain.begin([])
    said: list[float] = []
    now, pending = 0.0, 1
    while len(said) < len(right):
        at = len(said)
        drafted = 0
        if pending == 1:
            draft, _ = chain.propose(min(limit, len(right) - at - 1), lambda distribution, position: 0)
            drafted = len(draft)
        accepted = 0
        while accepted < drafted and right[at + accepted]:
            accepted += 1
        now += CostCurve(curve).relative(pending + drafted)
        said += [now] * (accepted + 1)
        chain.commit([1] * (accepted + 1), drafted, accepted)
        # What the wrong draft took with it, and the token that was said in its place.
        pending = 1 if accepted == drafted else pending + accepted + 1
    return said


def test_a_doubtful_draft_that_would_pay_elsewhere_does_not_pay() -> None:
    confidence = [0.75, 0.5]
    once, again = (Controller(CostCurve(Q4_1, repeats=repeats)) for repeats in (False, True))
    for controller in (once, again):
        controller.acceptance.introduce("x", doubt=0.0)
    assert once.choose("x", [0.9]).gain > again.choose("x", [0.9]).gain
    assert once.choose("x", confidence).length >= again.choose("x", confidence).length
    assert once.choose("x", [0.8]).length == 1 and again.choose("x", [0.8]) == PLAIN


def test_certain_drafts_pay_all_the_same() -> None:
    assert 1000 / play([True] * 1000, GPU)[-1] >= 6.0
    assert 1000 / play([True] * 1000, Q4_1)[-1] >= 1.3


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.7])
def test_seldom_slower_than_plain(curve: str, rate: float) -> None:
    said = play(script([(rate, 1000)]), CURVES[curve])
    assert 1000 / said[-1] >= 0.95
