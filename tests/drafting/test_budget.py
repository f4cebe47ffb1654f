"""What drafters may cost: memory for a long history, and steps that do not grow with it.

Steps are counted, not timed: lines of Python and the loops in them are what a look-up can do too much
of. Times are measured by ``python -m tests.bench.drafter_costs``.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from types import FunctionType, ModuleType

import numpy as np
import pytest

from app.worker.learning import MAX_TOKENS
from drafting.past_answers import PastAnswers
from tests.drafting.step_counts import KINDS, chain_of

MEGABYTE = 10**6


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


@pytest.mark.parametrize("kind", KINDS)
def test_steps_do_not_grow_with_the_history(kind: str) -> None:
    command = [sys.executable, "-m", "tests.drafting.step_counts", kind]
    counted = subprocess.run(command, capture_output=True, timeout=300, check=True)
    short, long = json.loads(counted.stdout)
    for before, after in zip(short, long, strict=True):
        # ten times the text may mean fuller slots and a few more halvings, not ten times the steps
        assert after < 1.6 * before + 100
