"""What drafting costs at 128k tokens of history: time for each proposal and update, and memory.

    python -m tests.bench.drafter_costs [--tokens N] [--steps N]

Every drafter that looks things up, with an archive of earlier answers that is full, on recorded
answers (repeated in another order, every tenth token exchanged) and on what is worst for hash tables
and sorted lists: one token, a period of seven, no repetition at all. Times are medians.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
import tracemalloc
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from app import paths
from app.worker.learning import MAX_TOKENS
from drafting.chain import Chain
from drafting.drafter import Drafter
from drafting.history import History
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.past_answers import PastAnswers
from drafting.replay import Recording
from drafting.suffix import Suffix
from tests.drafting.test_chain import no_draw

LIMIT = 48  # the longest draft, unless a person sets another
N_VOCAB = 49_152
_ANSWER = 400


class Costs(NamedTuple):
    """Seconds and bytes."""

    proposals: dict[str, float]
    update: float
    memory: int
    past_build: float
    past_memory: int


def texts(length: int) -> dict[str, list[int]]:
    rng = random.Random(1)
    return {
        "recorded": recorded(length, rng),
        "one token": [100] * length,
        "period of 7": [100 + i % 7 for i in range(length)],
        "random": [rng.randrange(N_VOCAB) for _ in range(length)],
    }


def recorded(length: int, rng: random.Random) -> list[int]:
    traces = [
        [*trace.prompt, *trace.answer]
        for file in sorted((paths.assets_dir() / "replay").glob("*.json"))
        for trace in msgspec.json.decode(file.read_bytes(), type=Recording).traces
    ]
    tokens: list[int] = []
    while len(tokens) < length:
        rng.shuffle(traces)
        for trace in traces:
            tokens += [rng.randrange(N_VOCAB) if rng.random() < 0.1 else token for token in trace]
    return tokens[:length]


def links(history: History, past: PastAnswers) -> list[Drafter]:
    """As the worker makes them."""
    return [
        NgramCache(history, past),
        NgramSimple(history),
        NgramMap(history),
        NgramMapK4V(history),
        NgramMod(ModTable()),
        Suffix(history, past=past),
    ]


def measure(before: list[int], then: Sequence[int], answers: list[int]) -> Costs:
    """The cost of drafting ``then``, token by token, with ``before`` as history."""
    tracemalloc.start()
    try:
        empty, _ = tracemalloc.get_traced_memory()
        cut = [np.array(answers[i : i + _ANSWER], np.int32) for i in range(0, len(answers), _ANSWER)]
        past = PastAnswers(cut)
        past_memory = tracemalloc.get_traced_memory()[0] - empty
        history = History()
        drafters = links(history, past)
        chain = Chain(drafters, history)
        chain.begin(before)
        chain.offers(LIMIT, no_draw)  # makes the indexes
        memory = tracemalloc.get_traced_memory()[0] - empty
    finally:
        tracemalloc.stop()
    began = time.perf_counter()
    past.hold(cut)
    past_build = time.perf_counter() - began
    proposals: dict[str, list[float]] = {link.name: [] for link in drafters}
    updates = []
    for token in then:
        for link in drafters:
            began = time.perf_counter()
            link.propose(LIMIT, no_draw)
            proposals[link.name].append(time.perf_counter() - began)
        began = time.perf_counter()
        chain.commit([token], 0, 0)
        updates.append(time.perf_counter() - began)
    return Costs(
        {name: statistics.median(times) for name, times in proposals.items()},
        statistics.median(updates),
        memory,
        past_build,
        past_memory,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=128_000)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    n = options.tokens
    print(f"{n:,} tokens of history, {MAX_TOKENS:,} of earlier answers; medians over {options.steps} tokens")
    for name, text in texts(n + options.steps + MAX_TOKENS).items():
        costs = measure(text[:n], text[n : n + options.steps], text[n + options.steps :])
        each = "  ".join(f"{link} {seconds * 1e6:.1f}" for link, seconds in costs.proposals.items())
        of_past = f"earlier answers {costs.past_memory / 1e6:.1f} MB of it"
        print(f"\n{name}")
        print(f"  proposals (µs)   {each}")
        print(f"  update           {costs.update * 1e6:.1f} µs a token, all drafters together")
        print(f"  memory           {costs.memory / 1e6:.1f} MB, {of_past}")
        print(f"  earlier answers  indexed in {costs.past_build:.2f} s")


if __name__ == "__main__":
    main()
