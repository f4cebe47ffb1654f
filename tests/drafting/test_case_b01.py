"""B01: drafts that are nearly always wrong, then nearly always right; drafting must never cost much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from drafting.auto_chain import AutoChain
from drafting.chain import Chain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.floor import Floor
from drafting.silence import PAUSED, UNPAID, Silence
from tests.drafting.scripted import Scripted, script
from tests.drafting.test_auto import worst_window
from tests.drafting.test_chain import no_draw

CURVE = {1: 1.0, 2: 1.15, 3: 1.3, 65: 1.0 + 0.15 * 64}
TOKENS, CHANGE = 600, 200


class Play(NamedTuple):
    """By token of the answer: when it was said (in plain passes) and how long the draft was."""

    said: list[float]
    drafted: list[int]
    silences: list[Silence]


def play(chain: Chain, right: Sequence[bool], limit: int) -> Play:
    costs = CostCurve(CURVE)
    chain.begin([])
    result, now = Play([], [], []), 0.0
    while (at := len(result.said)) < len(right):
        draft, _ = chain.propose(min(limit, len(right) - at - 1), no_draw)
        if not draft:
            result.silences.append(chain.silence)
        accepted = 0
        while accepted < len(draft) and right[at + accepted]:
            accepted += 1
        now += costs.relative(1 + len(draft))
        result.said.extend([now] * (accepted + 1))
        result.drafted.extend([len(draft)] * (accepted + 1))
        chain.commit([1] * (accepted + 1), len(draft), accepted)
    return result


def texts(seed: int) -> list[bool]:
    return script([(0.05, CHANGE), (0.9, TOKENS - CHANGE)], seed)


@pytest.mark.parametrize("limit", [4, 16, 48, 64])
@pytest.mark.parametrize("seed", range(8))
def test_manual_with_a_floor(limit: int, seed: int) -> None:
    floor = Floor(0.2)
    right = texts(seed)
    played = play(Chain([Scripted(right)], floor=floor), right, limit)
    assert worst_window([0.0, *played.said]) >= 0.9
    assert {silence.reason for silence in played.silences} >= {PAUSED}
    assert sum("paused: low acceptance" in line for line in floor.news()) >= 1
    assert played.drafted[CHANGE - 20 : CHANGE].count(0) >= 10
    assert max(played.drafted[CHANGE + 130 :]) > 0
    assert (TOKENS - CHANGE) / (played.said[-1] - played.said[CHANGE]) > (1.2 if limit < 48 else 1.1)


@pytest.mark.parametrize("limit", [48, 64])
def test_manual_without_one_is_what_the_floor_is_for(limit: int) -> None:
    right = texts(0)
    played = play(Chain([Scripted(right)]), right, limit)
    assert worst_window([0.0, *played.said]) < 0.3


@pytest.mark.parametrize("seed", range(8))
def test_auto(seed: int) -> None:
    right = texts(seed)
    chain = AutoChain([Scripted(right)], Controller(CostCurve(CURVE)), clock=lambda: 0.0)
    played = play(chain, right, 48)
    assert worst_window([0.0, *played.said]) >= 0.9
    silent = {silence.reason for silence in played.silences}
    assert silent >= {UNPAID}
    assert played.drafted[CHANGE - 20 : CHANGE].count(0) >= 10
    assert (TOKENS - CHANGE) / (played.said[-1] - played.said[CHANGE]) > 1.5


def test_auto_says_what_it_knows() -> None:
    right = [False] * 60
    chain = AutoChain([Scripted(right)], Controller(CostCurve(CURVE)), clock=lambda: 0.0)
    detail = play(chain, right, 48).silences[-2].detail
    assert detail.startswith("One more row makes a pass 1.15 times as long, and ")
    assert int(detail.split("and ")[1].split(" %")[0]) < 20


def test_a_floor_pauses_in_auto_as_well() -> None:
    """Also where the controller would try on: on a machine where drafts cost next to nothing."""
    right = [False] * 400
    floor = Floor(0.2)
    free = CostCurve({1: 1.0, 65: 1.01})
    chain = AutoChain([Scripted(right)], Controller(free), lambda: 0.0, floor=floor)
    played = play(chain, right, 16)
    assert PAUSED in {silence.reason for silence in played.silences}
    assert len(played.silences) > 300
