"""Pearson's chi-square test, without scipy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Z = 3.719  # standard normal quantile of 1 - 1e-4


def assert_follows(draws: Iterable[int], p: npt.NDArray[np.float64]) -> None:
    """Fail when ``draws`` (numbers below ``len(p)``) would be this far off p once in 10,000 times."""
    draws = np.fromiter(draws, dtype=np.int64)
    counts = np.bincount(draws, minlength=len(p))
    assert len(counts) == len(p), "something was drawn that cannot be"
    assert not counts[p == 0].any(), "something was drawn that has no probability"
    expected = p[p > 0] * len(draws)
    assert expected.min() >= 5, "too few draws for this test to mean anything"
    statistic = float(((counts[p > 0] - expected) ** 2 / expected).sum())
    assert statistic < critical(len(expected) - 1), (statistic, counts.tolist(), expected.tolist())


def critical(freedom: int) -> float:
    """The chi-square quantile of 1 - 1e-4 (Wilson and Hilferty 1931)."""
    spread = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - spread + Z * spread**0.5) ** 3


def assert_close(observed: float, expected: float, deviation: float, n: int) -> None:
    """A mean of ``n`` values, each with this standard deviation, lies where chance can put it."""
    assert abs(observed - expected) < Z * deviation / n**0.5 + 1e-12, (observed, expected)
