"""How many steps look-ups take, by length of history: ``python -m tests.drafting.step_counts KIND``.

Steps are lines of Python, counted by a trace function. That wants an interpreter to itself: in one that has
run a thousand tests, CPython 3.11 may never come back from a traced call.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from drafting.chain import Chain
from drafting.history import History
from drafting.past_answers import PastAnswers
from tests.bench.drafter_costs import LIMIT, links, recorded
from tests.drafting.test_chain import no_draw

SHORT, LONG = 4_000, 40_000

KINDS: dict[str, Callable[[int], list[int]]] = {
    "recorded": lambda n: recorded(n, random.Random(1)),
    "one token": lambda n: [7] * n,
    "period of 7": lambda n: [7 + i % 7 for i in range(n)],
    "random": lambda n: random.Random(1).choices(range(50_000), k=n),
}


def chain_of(text: list[int], past: PastAnswers) -> Chain:
    history = History()
    chain = Chain(links(history, past), history)
    chain.begin(text)
    chain.offers(LIMIT, no_draw)
    return chain


def steps(action: Callable[[], object]) -> int:
    """Lines of Python that an action runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def typical_steps(text: list[int], then: list[int], past: PastAnswers) -> tuple[float, float]:
    """Median steps of a round of proposals, and of an update."""
    chain = chain_of(text, past)
    proposals, updates = [], []
    for token in then:
        proposals.append(steps(lambda: chain.offers(LIMIT, no_draw)))
        updates.append(steps(lambda t=token: chain.commit([t], 0, 0)))  # type: ignore[misc]
    return statistics.median(proposals), statistics.median(updates)


def main() -> None:
    text = KINDS[sys.argv[1]](LONG + 200)
    then, answers = text[:60], [np.array(text[i : i + 400], np.int32) for i in range(0, LONG, 400)]
    few, many = PastAnswers(answers[: len(answers) // 10]), PastAnswers(answers)
    print(json.dumps([typical_steps(text[-SHORT:], then, few), typical_steps(text[-LONG:], then, many)]))


if __name__ == "__main__":
    main()
