"""Finds out which pass sizes compute the very same logits on this model, device and build."""

from __future__ import annotations

import itertools
import random

import numpy as np
import numpy.typing as npt

from drafting.exact import ExactRows, best_group
from native.context import Context

# Odd ones too: a kernel may take rows by fours and compute the rest in another way.
SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 16, 23, 48)
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
    sizes = [size for size in SIZES if size <= context.n_outputs]
    same: list[bool] = []
    try:
        for one, other in itertools.pairwise(_logits(context, tokens, depth, size) for size in sizes):
            n = min(len(one), len(other))
            same.append(np.array_equal(one[:n], other[:n]))
            if any(same) and not same[-1]:
                break  # the first group has ended
    finally:
        context.forget(_SEQ)
    return best_group(sizes, same)


def _logits(context: Context, tokens: list[int], depth: int, size: int) -> npt.NDArray[np.float32]:
    """The logits of the positions behind ``depth``, as many as whole passes of ``size`` rows give."""
    # A recurrent memory goes back further than asked, others have nothing to read here but at first.
    for start in range(context.rewind(_SEQ, depth), depth, context.n_batch):
        piece = tokens[start : min(depth, start + context.n_batch)]
        context.decode([(_SEQ, t, start + i, False) for i, t in enumerate(piece)])
    rows = []
    for start in range(depth, depth + POSITIONS - size + 1, size):
        context.decode([(_SEQ, tokens[start + i], start + i, True) for i in range(size)])
        rows.append(context.logits().copy())
    return np.concatenate(rows)
