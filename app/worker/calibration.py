"""Measures at load what passes of the target take."""

from __future__ import annotations

import statistics
import time

from drafting.cost import MOST_BACK
from native.context import Context

_SIZES = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48)
_ROUNDS = 2


def pass_seconds(context: Context, budget_s: float) -> tuple[dict[int, float], float]:
    """What passes of several sizes take, by rows, as far as ``budget_s`` seconds reach, and by how much
    a pass of one row takes longer after one of another size.

    The first pass pages the weights in, before the first message and not during it. Small sizes come
    first, since they decide most; each is the best of its tries, as noise only ever adds.
    """
    began = time.perf_counter()
    backs: list[float] = []

    def measure(rows: int) -> float:
        before = time.perf_counter()
        context.decode([(0, 0, i, True) for i in range(rows)])
        took = time.perf_counter() - before
        context.forget(0)
        return took

    measure(1)
    best = {1: measure(1)}
    # To build a graph takes less than a millisecond: nothing beside a large model's pass.
    is_quick = best[1] < budget_s / 50
    for rows in _SIZES * _ROUNDS:
        if rows > context.n_outputs:
            continue
        if is_quick:
            after_another, plain = measure(1), measure(1)
            backs.append(after_another - plain)
            best[1] = min(plain, best[1])
        took = measure(rows)
        best[rows] = min(took, best.get(rows, took))
        # The next size takes about twice as long: is there still time for it?
        if time.perf_counter() - began + 2 * took > budget_s:
            break
    back = statistics.median(backs) if backs else 0.0
    return best, min(max(0.0, back), MOST_BACK * best[1])
