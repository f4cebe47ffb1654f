"""Finds out which pass sizes compute the very same logits on this model, device and build."""

from __future__ import annotations

import itertools
import random

import numpy as np
import numpy.typing as npt

from drafting.exact import ExactRows, best_group
from native.context import Context

# All divide the number of positions, so that no try has a remainder of another size.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)
POSITIONS = 48
# Beyond 512 cells llama.cpp may split the attention of a lone row over its threads.
DEPTH = 640
_SEQ = 0


def check(context: Context) -> ExactRows | None:
    """Try passes of several sizes on the same positions; None when no two sizes agree.

    Takes some five hundred rows of computing. The context must be a fresh one of at least
    DEPTH + POSITIONS tokens, or of what the model has; it is left empty.
    """
    depth = min(DEPTH, context.n_ctx - POSITIONS)
    rng = random.Random(0)
    tokens = [rng.randrange(context.model.n_vocab) for _ in range(depth + POSITIONS)]
    context.forget(_SEQ)
    for start in range(0, depth, context.n_batch):
        piece = tokens[start : min(depth, start + context.n_batch)]
        context.decode([(_SEQ, t, start + i, False) for i, t in enumerate(piece)])
    sizes = [size for size in SIZES if size <= context.n_outputs]
    try:
        computed = [_logits(context, tokens, depth, size) for size in sizes]
    finally:
        context.forget(_SEQ)
    same = [np.array_equal(a, b) for a, b in itertools.pairwise(computed)]
    return best_group(sizes, same)


def _logits(context: Context, tokens: list[int], depth: int, size: int) -> npt.NDArray[np.float32]:
    """The logits of the positions behind ``depth``, in passes of ``size`` rows."""
    if not context.rewind(_SEQ, depth):
        raise ValueError("a memory that cannot rewind needs no exact mode: nothing is drafted")
    rows = []
    for start in range(depth, depth + POSITIONS, size):
        context.decode([(_SEQ, tokens[start + i], start + i, True) for i in range(size)])
        rows.append(context.logits().copy())
    return np.concatenate(rows)
