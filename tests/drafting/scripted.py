"""A text with drafts of scripted acceptance, and the time a chain takes for it by a cost curve."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from drafting.auto_chain import AutoChain
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import Draft, Draw

# Relative cost of a pass by rows: two cores, SmolLM2-135M, and a GPU's flat curve.
Q4_1 = {1: 1.0, 2: 1.7, 3: 2.2, 4: 2.6, 5: 3.7, 6: 4.3, 8: 5.3, 12: 6.4, 16: 8.0, 32: 15.8, 64: 28.9}
F16 = {1: 1.0, 2: 1.7, 3: 1.9, 4: 2.1, 5: 2.1, 6: 2.2, 8: 2.9, 12: 3.6, 16: 4.6, 32: 9.1, 64: 13.8}
GPU = {1: 1.0, 2: 1.02, 4: 1.05, 8: 1.1, 16: 1.2, 32: 1.5, 64: 2.1}
# Q8_0 of the same model, two cores: rows are computed in blocks, so that only long drafts pay.
BLOCKS = {1: 1.0, 2: 2.46, 3: 3.21, 4: 3.29, 5: 4.2, 6: 4.31, 8: 4.05, 12: 4.68, 16: 4.38, 24: 6.39}
BLOCKS |= {32: 8.36, 48: 11.4}
CURVES = {"Q4_1": Q4_1, "F16": F16, "GPU": GPU}


class Scripted:
    """Drafts tokens that are right where the script says so; token 1 is right, 0 is wrong."""

    name = "scripted"

    def __init__(self, right: Sequence[bool], confidence: float | None = None) -> None:
        self._right, self._at, self._confidence = right, 0, confidence

    def begin(self, tokens: Sequence[int]) -> None:
        self._at = 0

    def commit(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def judged(self, drafted: int, accepted: int) -> None:
        """It knows."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        tokens = [int(r) for r in self._right[self._at : self._at + limit]]
        stated = None if self._confidence is None else [self._confidence] * len(tokens)
        return Draft(tokens, confidence=stated)


def script(phases: Sequence[tuple[float, int]], seed: int = 1) -> list[bool]:
    """Whether each token's draft is right: (acceptance, tokens) one phase after the other."""
    rng = random.Random(seed)
    return [rng.random() < rate for rate, length in phases for _ in range(length)]


def play(right: Sequence[bool], curve: dict[int, float], limit: int = 48) -> list[float]:
    """The time at which each token was said, in automatic mode; plain takes 1.0 a token."""
    costs = CostCurve(curve)
    chain = AutoChain([Scripted(right)], Controller(costs), clock=lambda: 0.0)
    chain.begin([])
    said: list[float] = []
    now = 0.0
    while len(said) < len(right):
        at = len(said)
        draft, _ = chain.propose(min(limit, len(right) - at - 1), lambda distribution, position: 0)
        accepted = 0
        while accepted < len(draft) and right[at + accepted]:
            accepted += 1
        now += cost(curve)(1 + len(draft))
        said += [now] * (accepted + 1)
        chain.commit([1] * (accepted + 1), len(draft), accepted)
    return said


def cost(curve: dict[int, float]) -> Callable[[int], float]:
    return CostCurve(curve).relative


def oracle(right: Sequence[bool], curve: dict[int, float], limit: int = 48) -> float:
    """The least time for the text by who knows which drafts are right and may choose any length."""
    passes = [0.0, *(cost(curve)(rows) for rows in range(1, limit + 2))]
    best = [0.0] * (len(right) + 1)
    for at in range(len(right) - 1, -1, -1):
        best[at] = passes[1] + best[at + 1]
        for length in range(1, min(limit, len(right) - at - 1) + 1):
            if not right[at + length - 1]:
                break
            best[at] = min(best[at], passes[length + 1] + best[at + length + 1])
    return best[0]
