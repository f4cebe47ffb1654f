"""What a target pass costs by its number of rows, learned while running."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

# The machine's speed changes with its other work, all sizes alike; the curve's shape hardly does.
_SPEED_RATE = 0.1
_SHAPE_RATE = 0.03
MOST_BACK = 0.3
"""The way back costs at most this share of a pass; what is more has another reason."""
_OUTLIER = 3.0  # one pass may be held up for any reason
# Before anything is known: what a CPU needs that computes rows one by one.
_UNKNOWN_SLOPE = 0.5


class CostCurve:
    """Seconds of a pass of n rows: a shape, and the speed at which the machine runs it just now.

    Between known sizes the shape is interpolated, beyond the largest it goes on with the last
    slope, so steps are known wherever both their sides were measured.
    """

    def __init__(
        self, seconds: Mapping[int, float] | None = None, repeats: bool = False, back: float = 0.0
    ) -> None:
        """``seconds`` by rows, as measured at load; without them the first passes tell. ``repeats``: after
        a wrong draft the target computes what was accepted again. ``back``: seconds that a plain pass
        takes longer after one of another size, for which the graph of operations is built anew."""
        self.repeats = repeats
        self._back = back
        self._last = 0  # rows of the last pass
        self._shape = dict(seconds or {})
        self._rows = sorted(self._shape)
        self._speed = 1.0  # seconds now over seconds in the shape
        self._least_slope: float | None = None  # None: to be worked out

    @property
    def least_slope(self) -> float:
        """The least that a further row costs anywhere, in passes of one row; 0 while nothing is known."""
        if self._least_slope is None:
            pairs = zip(self._rows, self._rows[1:], strict=False)
            slopes = [(self._shape[high] - self._shape[low]) / (high - low) for low, high in pairs]
            self._least_slope = max(0.0, min(slopes, default=0.0)) / self._interpolate(1) if slopes else 0.0
        return self._least_slope

    def observe(self, rows: int, seconds: float) -> None:
        """A pass of ``rows`` rows took this long."""
        if seconds <= 0:
            return
        is_back = rows < self._last  # to plain passes, which are the smallest
        self._last = rows
        self._least_slope = None
        if not self._rows:
            self._shape[rows] = seconds
            self._rows = [rows]
            return
        expected = self._interpolate(rows) * self._speed
        if is_back and rows in self._shape:
            expected += self._back * self._speed
            extra = seconds / self._speed - self._shape[rows]
            self._back += _SPEED_RATE * (min(max(extra, 0.0), MOST_BACK * self._shape[rows]) - self._back)
        ratio = min(max(seconds / expected, 1 / _OUTLIER), _OUTLIER)
        if rows in self._shape:
            self._shape[rows] *= 1 + _SHAPE_RATE * (ratio - 1)
            self._speed *= 1 + _SPEED_RATE * (ratio - 1)
        else:
            # The first of its size: only this pass tells how its size compares.
            self._shape[rows] = seconds / self._speed
            self._rows.insert(bisect_left(self._rows, rows), rows)

    def seconds(self, rows: int) -> float:
        """What a pass of ``rows`` (at least 1) rows would take now; 1.0 while nothing is known."""
        return self._interpolate(rows) * self._speed if self._rows else 1.0

    def slowdown(self, rows: int, seconds: float) -> float:
        """A pass of ``rows`` rows that took ``seconds``, over what it takes on the machine that was
        measured at load; 1.0 while nothing is known."""
        return seconds / self._interpolate(rows) if self._rows else 1.0

    def relative(self, rows: int, plain: int = 1) -> float:
        """The same in passes of one row, and the way back to passes of ``plain`` rows included: what the
        decision to draft needs to know."""
        if not self._rows:
            return 1.0
        back = self._back if rows > plain else 0.0
        return (self._interpolate(rows) + back) / self._interpolate(1)

    def _interpolate(self, rows: int) -> float:
        known, shape = self._rows, self._shape
        if rows in shape:
            return shape[rows]
        place = bisect_left(known, rows)
        if place == 0:
            smallest = known[0]
            return shape[smallest] * (1 + _UNKNOWN_SLOPE * (rows - 1)) / (1 + _UNKNOWN_SLOPE * (smallest - 1))
        if place == len(known):
            if len(known) == 1:
                low = known[0]
                return shape[low] * (1 + _UNKNOWN_SLOPE * (rows - 1)) / (1 + _UNKNOWN_SLOPE * (low - 1))
            place -= 1
        low, high = known[place - 1], known[place]
        slope = (shape[high] - shape[low]) / (high - low)
        return max(shape[low] + slope * (rows - low), shape[low])
