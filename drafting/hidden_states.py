"""Hidden states of the target's layers, row by row, kept until a drafter asks for them.

A drafter that is not asked costs only the copy: nothing is computed before it catches up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_FIRST_ROWS = 256


@dataclass
class _Span:
    rows: Floats  # room for some rows, of which the first ``count`` are filled
    first: int = 0  # position of the first of them
    count: int = 0


class HiddenStates:
    """What the target computed at each position of its sequences' KV caches.

    The target owns it: it adds the rows of every pass and cuts them where it cuts its KV cache, so
    that a sequence's rows end where its KV cache does. They begin at position 0 until there are more
    than ``capacity``: then the oldest half goes. A row holds the layers side by side, ``width`` floats.
    """

    def __init__(self, width: int, capacity: int) -> None:
        """``capacity``: rows kept for each sequence, at least 2."""
        self.width = width
        self.capacity = max(2, capacity)
        self._spans: dict[int, _Span] = {}

    def put(self, seq: int, first: int, layers: Sequence[Floats]) -> None:
        """Positions from ``first`` on were computed: of each layer a (rows, width / layers) array.

        Rows at or behind ``first`` are replaced. Where positions before it are not known, what was
        known is dropped: a span has no holes.
        """
        span = self._spans.get(seq)
        if span is None:
            span = self._spans[seq] = _Span(np.empty((0, self.width), dtype=np.float32))
        if span.first <= first <= span.first + span.count:
            span.count = first - span.first
        else:
            span.first, span.count = first, 0
        n = len(layers[0])
        skipped = max(0, n - self.capacity)
        if skipped:
            span.first, span.count = first + skipped, 0
            layers, n = [layer[skipped:] for layer in layers], self.capacity
        self._make_room(span, n)
        at = span.count
        column = 0
        for layer in layers:
            span.rows[at : at + n, column : column + layer.shape[1]] = layer
            column += layer.shape[1]
        span.count += n

    def _make_room(self, span: _Span, n: int) -> None:
        if span.count + n > self.capacity:
            kept = min(span.count, self.capacity // 2, self.capacity - n)
            gone = span.count - kept
            span.rows[:kept] = span.rows[gone : span.count].copy()
            span.first, span.count = span.first + gone, kept
        if span.count + n > len(span.rows):
            room = min(self.capacity, max(_FIRST_ROWS, 2 * len(span.rows), span.count + n))
            grown = np.empty((room, self.width), dtype=np.float32)
            grown[: span.count] = span.rows[: span.count]
            span.rows = grown

    def cut(self, seq: int, length: int) -> None:
        """Keep the first ``length`` positions of a sequence."""
        span = self._spans.get(seq)
        if span is not None:
            span.count = min(span.count, max(0, length - span.first))

    def drop(self, seq: int) -> None:
        """Nothing of a sequence is known any more."""
        self._spans.pop(seq, None)

    def span(self, seq: int) -> range:
        """The positions of a sequence that are known."""
        span = self._spans.get(seq)
        return range(span.first, span.first + span.count) if span is not None else range(0)

    def rows(self, seq: int, positions: range) -> Floats:
        """Those of known ``positions``, shape (positions, width): a view, valid until the next ``put``."""
        span = self._spans[seq]
        return span.rows[positions.start - span.first : positions.stop - span.first]
