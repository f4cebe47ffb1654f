"""What drafters may cost: memory for a long history, and steps that do not grow with it.

Steps are counted, not timed: lines of Python and the loops in them are what a look-up can do too much
of. Times are measured by ``python -m tests.bench.drafter_costs``.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from app.learning import MAX_TOKENS
from drafting.chain import Chain
from drafting.history import History
from drafting.past_answers import PastAnswers
from tests.bench.drafter_costs import LIMIT, links, recorded
from tests.drafting.test_chain import no_draw

MEGABYTE = 10**6
SHORT, LONG = 4_000, 40_000

KINDS: dict[str, Callable[[int], list[int]]] = {
    "recorded": lambda n: recorded(n, random.Random(1)),
    "one token": lambda n: [7] * n,
    "period of 7": lambda n: [7 + i % 7 for i in range(n)],
    "random": lambda n: random.Random(1).choices(range(50_000), k=n),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def chain_of(text: list[int], past: PastAnswers) -> Chain:
    history = History()
    chain = Chain(links(history, past), history)
    chain.begin(text)
    chain.offers(LIMIT, no_draw)
    return chain


def size_of(root: object, known: Iterable[object]) -> int:
    """Bytes of all that ``root`` holds, but for what is known already."""
    seen = {id(item) for item in known}
    pending = [root]
    size = 0
    while pending:
        item = pending.pop()
        if id(item) not in seen and not isinstance(item, (type, ModuleType, FunctionType)):
            seen.add(id(item))
            size += sys.getsizeof(item)
            pending += gc.get_referents(item)
    return size


def test_memory_for_128k_tokens() -> None:
    """All drafters together stay under 64 MB, with as many earlier answers as are kept, also while
    those are indexed. Random text has the most different n-grams."""
    text, answers = KINDS["random"](128_000), KINDS["random"](MAX_TOKENS)
    past = PastAnswers()
    chain = chain_of(text, past)
    tracemalloc.start()
    try:
        past.hold([np.array(answers, np.int32)])
        _, indexing = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = size_of(chain, text)
    assert size > 20 * MEGABYTE  # mod's table alone has 16
    assert size + indexing < 64 * MEGABYTE


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


@every_kind
def test_steps_do_not_grow_with_the_history(kind: Callable[[int], list[int]]) -> None:
    text = kind(LONG + 200)
    then, answers = text[:60], [np.array(text[i : i + 400], np.int32) for i in range(0, LONG, 400)]
    few, many = PastAnswers(answers[: len(answers) // 10]), PastAnswers(answers)
    short = typical_steps(text[-SHORT:], then, few)
    long = typical_steps(text[-LONG:], then, many)
    for before, after in zip(short, long, strict=True):
        # ten times the text may mean fuller slots and a few more halvings, not ten times the steps
        assert after < 1.6 * before + 100
