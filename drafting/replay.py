"""Replay: what drafting would have done for recorded answers, without a model and without noise.

A trace is a prompt and the answer that was really given. As drafts never change an answer, a chain
can be run over it again: what it drafts is compared with what was said, and a cost curve tells the
time. So changes to drafters and controller are judged in seconds, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from drafting.auto_chain import AutoChain
from drafting.chain import Chain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import ConfigurableDrafter, Draft, Drafter
from drafting.history import History, common_prefix
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.parameters import AUTOMATIC, LinkParameters
from drafting.suffix import Suffix

# Relative cost of a pass by its rows: SmolLM2-135M on two cores, and a GPU.
CURVES: Mapping[str, Mapping[int, float]] = {
    "Q4_1": {1: 1.0, 2: 1.7, 3: 2.2, 4: 2.6, 5: 3.7, 6: 4.3, 8: 5.3, 12: 6.4, 16: 8.0, 32: 15.8, 64: 28.9},
    "F16": {1: 1.0, 2: 1.7, 3: 1.9, 4: 2.1, 5: 2.1, 6: 2.2, 8: 2.9, 12: 3.6, 16: 4.6, 32: 9.1, 64: 13.8},
    "GPU": {1: 1.0, 2: 1.02, 4: 1.05, 8: 1.1, 16: 1.2, 32: 1.5, 64: 2.1},
}

LINKS: Mapping[str, Callable[[History], ConfigurableDrafter]] = {
    "cache": lambda history: NgramCache(),
    "simple": NgramSimple,
    "map-k": NgramMap,
    "map-k4v": NgramMapK4V,
    "mod": lambda history: NgramMod(ModTable(bits=16)),
    "suffix": Suffix,
}
CHAIN, AUTO = "chain", "auto"
MODES = (*LINKS, CHAIN, AUTO)


class Trace(Struct, frozen=True):
    """One recorded turn in token ids: the whole prompt, and the answer's visible text."""

    workload: str
    name: str
    prompt: list[int]
    answer: list[int]


class Recording(Struct, frozen=True):
    """What one model said, turn by turn."""

    model: str
    traces: list[Trace]


class Outcome(Struct, frozen=True):
    """Passes and drafted tokens of one trace in one mode; ``time`` in plain passes."""

    passes: int
    drafted: int
    accepted: int
    time: float


def replay(trace: Trace, mode: str, curve: Mapping[int, float], longest: int = 48) -> Outcome:
    """Run ``mode`` over a trace. Drafters and controller start with nothing learned.

    Raises KeyError for an unknown mode.
    """
    history = History()
    names = tuple(LINKS) if mode in (CHAIN, AUTO) else (mode,)
    auto = mode == AUTO
    links = [_link(name, history, AUTOMATIC if auto else LinkParameters()) for name in names]
    costs = CostCurve(curve)
    chain = AutoChain(links, Controller(costs), lambda: 0.0, history) if auto else Chain(links, history)
    return play(trace, chain, costs, longest)


def _link(name: str, history: History, parameters: LinkParameters) -> Drafter:
    link = LINKS[name](history)
    link.configure(parameters.of(name))
    return link


def play(trace: Trace, chain: Chain, costs: CostCurve, longest: int = 48) -> Outcome:
    """Run a chain of any drafters over a trace."""
    answer = trace.answer
    chain.begin(trace.prompt)
    at = passes = drafted = accepted = 0
    time = 0.0
    while at < len(answer):
        draft, _ = chain.propose(min(longest, len(answer) - at - 1), _no_draw)
        right = common_prefix(draft.tokens, answer[at : at + len(draft)])
        said = answer[at : at + right + 1]
        time += costs.relative(1 + len(draft))
        passes += 1
        drafted += len(draft)
        accepted += right
        at += len(said)
        chain.commit(said, len(draft), right)
    return Outcome(passes, drafted, accepted, time)


def oracle_time(trace: Trace, curve: Mapping[int, float], longest: int = 48) -> float:
    """The least time, in plain passes, for who knows which drafts will be accepted and may take
    any link's draft at any length."""
    reach = _reach(trace, longest)
    costs = CostCurve(curve)
    passes = [0.0, *(costs.relative(rows) for rows in range(1, longest + 2))]
    n = len(trace.answer)
    best = [0.0] * (n + 1)
    for at in range(n - 1, -1, -1):
        best[at] = min(passes[length + 1] + best[min(n, at + length + 1)] for length in range(reach[at] + 1))
    return best[0]


def _reach(trace: Trace, longest: int) -> list[int]:
    """At each token of the answer, the longest right draft that any link has."""
    history = History()
    chain = Chain([make(history) for make in LINKS.values()], history)
    chain.begin(trace.prompt)
    answer = trace.answer
    reach = []
    for at, token in enumerate(answer):
        limit = min(longest, len(answer) - at - 1)
        drafts: Sequence[Draft] = chain.offers(limit, _no_draw) if limit else ()
        reach.append(max((common_prefix(d.tokens, answer[at : at + len(d)]) for d in drafts), default=0))
        chain.commit([token], 0, 0)
    return reach


def _no_draw(distribution: object, position: int) -> int:
    raise AssertionError("n-gram drafters draw from nothing")
