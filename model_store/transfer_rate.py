"""How fast bytes come in, over the last seconds."""

from __future__ import annotations

from collections import deque

_WINDOW_S = 5.0
_STEP_S = 0.1  # between points that are kept


class TransferRate:
    """Knows no clock: times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def add(self, count: int, now: float) -> None:
        """``count`` bytes have come in up to ``now``; a smaller count than before starts anew."""
        if self._points and count < self._points[-1][1]:
            self._points.clear()
        if len(self._points) >= 2 and now - self._points[-2][0] < _STEP_S:
            self._points.pop()
        self._points.append((now, count))
        while now - self._points[0][0] > _WINDOW_S and len(self._points) > 2:
            self._points.popleft()

    def rate(self, now: float) -> float:
        """Bytes a second; 0 while nothing can be said. It falls while nothing comes in."""
        if not self._points:
            return 0.0
        first, count = self._points[0]
        return (self._points[-1][1] - count) / (now - first) if now > first else 0.0
