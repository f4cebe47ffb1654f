"""Speed since an answer began, as few bars that stay where they are; it has no clock."""

from __future__ import annotations

SLOTS = 20


class SparkBars:
    """Bars of tokens per second from left to right, each there once its time is over.

    When they are all used, two become one, and each further bar stands for twice the time.
    """

    def __init__(self, slots: int = SLOTS, width_s: float = 0.5) -> None:
        if slots < 2 or slots % 2:
            raise ValueError("bars are merged in pairs")
        self._slots = slots
        self._first_width_s = width_s
        self.clear()

    def clear(self) -> None:
        self._width_s = self._first_width_s
        self._since: float | None = None
        self._counts = [0]

    def add(self, tokens: int, elapsed_s: float) -> None:
        """``tokens`` came at ``elapsed_s``. The first only say when the answer began."""
        if self._since is None:
            self._since = elapsed_s
            return
        slot = max(len(self._counts) - 1, int((elapsed_s - self._since) / self._width_s))
        while slot >= self._slots:
            self._counts += [0] * (self._slots - len(self._counts))
            self._counts = [a + b for a, b in zip(self._counts[::2], self._counts[1::2], strict=True)]
            self._width_s *= 2
            slot = int((elapsed_s - self._since) / self._width_s)
        self._counts += [0] * (slot + 1 - len(self._counts))
        self._counts[slot] += tokens

    @property
    def rates(self) -> list[float]:
        """Tokens per second of each bar that is complete."""
        return [count / self._width_s for count in self._counts[:-1]]
