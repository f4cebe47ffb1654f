"""What drafts take of a drafter that computes them, learned while running."""

from __future__ import annotations

_RATE = 0.2
_OUTLIER = 3.0  # one draft may be held up for any reason


class DraftCost:
    """Kept for a pair of target and drafter, across answers, as the target's own cost curve is."""

    def __init__(
        self, seconds_each: float = 0.0, seconds_row: float = 0.0, *, drafts_blocks: bool = False
    ) -> None:
        """Seconds of a drafted token, and of a token that is only read to catch up; 0: not known yet.

        ``drafts_blocks``: one pass gives all tokens, and ``seconds_each`` is what a draft of any length
        takes.
        """
        self.seconds_each = seconds_each
        self.drafts_blocks = drafts_blocks
        self.seconds_row = seconds_row
        self.confidence = 0.8  # what it stated lately, on average (0 to 1); 0 where it had no draft
        self.waited = 0  # passes since it was last asked

    def seconds(self, tokens: int) -> float:
        """What a draft of so many tokens takes."""
        return self.seconds_each * (1 if self.drafts_blocks else tokens)

    def drafted(self, tokens: int, seconds: float) -> None:
        """A draft of so many tokens took this long."""
        passes = 1 if self.drafts_blocks else max(1, tokens)
        self.seconds_each = _moved(self.seconds_each, seconds / passes)

    def caught_up(self, rows: int, seconds: float) -> None:
        """Reading so many tokens took this long."""
        self.seconds_row = _moved(self.seconds_row, seconds / max(1, rows))

    def stated(self, confidence: float) -> None:
        self.confidence += _RATE * (confidence - self.confidence)


def _moved(known: float, seen: float) -> float:
    if known == 0.0:
        return seen
    return known + _RATE * (min(max(seen, known / _OUTLIER), known * _OUTLIER) - known)
