"""Why nothing is drafted, as words that stay; the times are given to it, it has no clock."""

from __future__ import annotations

from collections import Counter

from drafting.silence import Silence


class SilenceMeter:
    """Passes with and without drafts take turns, and so do the reasons. What is ``shown`` changes
    at most once in ``settle_s`` seconds, and stays while it is still among the reasons."""

    def __init__(self, settle_s: float = 1.0) -> None:
        self._settle_s = settle_s
        self.clear()

    def clear(self) -> None:
        self.shown: Silence | None = None
        self._since: float | None = None
        self._start_over()

    def add(self, silence: Silence | None, accepted: int, elapsed_s: float) -> None:
        """A pass that ended at ``elapsed_s`` accepted so many drafted tokens, or had none to judge
        for a reason."""
        if self._since is None:
            self._since = elapsed_s
        self._passes += 1
        self._accepted += accepted
        if silence is not None:
            self._reasons[silence.reason] += 1
            self._latest[silence.reason] = silence
        if elapsed_s - self._since < self._settle_s:
            return
        # A paused drafter is tried now and then, in vain: that is not drafting.
        if self._accepted or 2 * self._reasons.total() <= self._passes:
            self.shown = None
        elif self.shown is not None and self.shown.reason in self._reasons:
            self.shown = self._latest[self.shown.reason]
        else:
            self.shown = self._latest[self._reasons.most_common(1)[0][0]]
        self._since = elapsed_s
        self._start_over()

    def _start_over(self) -> None:
        self._passes = self._accepted = 0
        self._reasons: Counter[str] = Counter()
        self._latest: dict[str, Silence] = {}
