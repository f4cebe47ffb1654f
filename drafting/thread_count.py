"""How many threads a pass should have while other programs compute as well.

The threads of a pass wait for each other behind each of its hundreds of operations, so that one core
which is shared holds up all of them. Beside a program that keeps one of two cores busy, two threads
gave 42 tokens/s where one gave 140.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

# A count is judged by the median of so many passes.
_PASSES = 5
# Passes are slow when they take this much longer than at load, and a count is better when it is by this.
_SLOW, _BETTER = 1.6, 0.9
# Seconds until the next try of a lower, or a higher count; twice as long after each in vain.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 2.0, 60.0


class _Trial(NamedTuple):
    start: int  # place of the count it came from
    slowdown: float  # and what passes took there


class ThreadCount:
    """Gives threads up while passes are slow and fewer are faster, and takes them back.

    Pure: passes and the time are told. ``apply`` is called with a new count, never within a pass.
    """

    def __init__(self, most: int, apply: Callable[[int], None]) -> None:
        self._counts = _steps(most)
        self._apply = apply
        self._place = 0
        self._seen: list[float] = []
        self._trial: _Trial | None = None
        self._wait_s = _FIRST_WAIT_S
        self._next_try = 0.0

    @property
    def count(self) -> int:
        return self._counts[self._place]

    def hold(self) -> None:
        """All threads, whatever else computes: a sum's last bits may depend on how it was shared."""
        self._trial = None
        self._seen.clear()
        self._go(0)

    def passed(self, slowdown: float, now: float) -> None:
        """A pass took ``slowdown`` times what its size took at load; it ended at ``now`` seconds."""
        self._seen.append(slowdown)
        if len(self._seen) < _PASSES and not self._is_lost():
            return
        slowdown = statistics.median(self._seen)
        self._seen.clear()
        if self._trial is not None:
            self._judge(self._trial, slowdown, now)
        elif now >= self._next_try:
            to = self._place + 1 if self._is_slow(slowdown) else self._place - 1
            if to >= 0:
                self._trial = _Trial(self._place, slowdown)
                self._go(to)

    def _judge(self, trial: _Trial, slowdown: float, now: float) -> None:
        if slowdown < _BETTER * trial.slowdown:
            self._wait_s = _FIRST_WAIT_S
        elif self._place > trial.start and self._is_slow(slowdown):
            self._go(self._place + 1)  # several cores may be busy
            return
        else:
            self._go(trial.start)
            self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        self._trial = None
        self._next_try = now + self._wait_s

    def _is_lost(self) -> bool:
        """More threads that bring nothing may bring seconds: two passes of them are enough."""
        trial = self._trial
        return (
            trial is not None
            and self._place < trial.start
            and len(self._seen) > 1
            and min(self._seen) > trial.slowdown
        )

    def _is_slow(self, slowdown: float) -> bool:
        """Whether fewer threads might do better: fewer are slower by themselves."""
        usual = self._counts[0] / self.count
        return slowdown > _SLOW * usual and self._place + 1 < len(self._counts)

    def _go(self, place: int) -> None:
        if place != self._place:
            self._place = place
            self._apply(self.count)


def _steps(most: int) -> list[int]:
    """Counts from ``most`` to 1, each about three quarters of the one before."""
    counts = [most]
    while counts[-1] > 1:
        counts.append(min(counts[-1] - 1, round(0.75 * counts[-1])))
    return counts
