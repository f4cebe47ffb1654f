"""Tokens per second over a sliding window; the times are given to it, it has no clock."""

from __future__ import annotations

from collections import deque


class SpeedMeter:
    """Speed over the last ``window_s`` seconds, at least one so that a burst does not flicker."""

    def __init__(self, window_s: float = 2.0) -> None:
        if window_s < 1.0:
            raise ValueError("a window below one second shows noise")
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()
        self._tokens = 0  # in all samples but the oldest, which only marks where the window opens

    def add(self, tokens: int, elapsed_s: float) -> None:
        """``tokens`` came at ``elapsed_s``; a time before the last one starts anew."""
        if self._samples and elapsed_s < self._samples[-1][0]:
            self.clear()
        if self._samples:
            self._tokens += tokens
        self._samples.append((elapsed_s, tokens))
        while len(self._samples) > 2 and elapsed_s - self._samples[1][0] >= self._window_s:
            self._samples.popleft()
            self._tokens -= self._samples[0][1]

    def rate(self) -> float | None:
        """Tokens per second, None before there are two different times."""
        if len(self._samples) < 2:
            return None
        span = self._samples[-1][0] - self._samples[0][0]
        return self._tokens / span if span > 0 else None

    def clear(self) -> None:
        self._samples.clear()
        self._tokens = 0
