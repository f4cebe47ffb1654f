"""Whether learning pays: recorded answers drafted with and without the answers to other prompts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from drafting.auto_chain import AutoChain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.history import History
from drafting.ngram_cache import NgramCache
from drafting.past_answers import PastAnswers
from drafting.replay import CURVES, LINKS, Recording, Trace, play
from drafting.suffix import Suffix

RECORDING = Path(__file__).parents[2] / "assets" / "replay" / "starter-F16.json"


def passes(trace: Trace, past: PastAnswers, curve: str) -> float:
    """The time that automatic drafting takes, in plain passes."""
    history = History()
    links = [make(history) for name, make in LINKS.items() if name not in ("cache", "suffix")]
    links += [NgramCache(history, past), Suffix(history, past=past)]
    costs = CostCurve(CURVES[curve])
    return play(trace, AutoChain(links, Controller(costs), lambda: 0.0, history), costs).time


@pytest.mark.parametrize("curve", CURVES)
def test_answers_to_other_prompts_make_answers_faster(curve: str) -> None:
    recording = msgspec.json.decode(RECORDING.read_bytes(), type=Recording)
    traces = [trace for trace in recording.traces if trace.answer]
    without = learned = 0.0
    for i in range(0, len(traces), 4):
        others = [np.array(t.answer, np.int32) for t in traces if t.name != traces[i].name]
        without += passes(traces[i], PastAnswers(), curve)
        learned += passes(traces[i], PastAnswers(others), curve)
    print(f"\n{curve}: {without / learned:.3f} times as fast with the answers to other prompts", end=" ")
    assert learned < without
