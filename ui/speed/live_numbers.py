"""The numbers of the answer at hand, counted from the worker's events for the status strip."""

from __future__ import annotations

from app.protocol import Chunk, PrefillProgress, Started
from drafting.floor import UNFIT_AFTER
from drafting.silence import Silence
from drafting.statistics import Statistics
from ui.speed.silence_meter import SilenceMeter
from ui.speed.speed_meter import SpeedMeter


class LiveNumbers:
    """Counts of one answer. They start over with each message."""

    def __init__(self) -> None:
        self._meter = SpeedMeter()
        self._silence = SilenceMeter()
        self.clear()

    def clear(self) -> None:
        self._meter.clear()
        self._final_speed: float | None = None
        self.finished = False
        self.prefill: tuple[int, int] | None = None  # done and total, while the prompt is read
        self.tokens = 0
        self.passes = 0
        self.drafted = 0
        self.accepted = 0
        self.drafter: str | None = None  # who drafted in the last pass
        self._silence.clear()

    def started(self, event: Started) -> None:
        self.clear()
        self.prefill = (event.reused_tokens, event.prompt_tokens)

    def prefilled(self, event: PrefillProgress) -> None:
        self.prefill = (event.done, event.total)

    def chunk(self, event: Chunk) -> None:
        self.prefill = None
        self.passes += 1
        self.tokens += event.tokens
        self.drafted += event.drafted
        self.accepted += event.accepted
        self.drafter = event.drafter if event.drafted else None
        self._silence.add(event.silence, event.accepted, event.elapsed_s)
        if event.tokens:
            self._meter.add(event.tokens, event.elapsed_s)

    def done(self, stats: Statistics) -> None:
        """The worker's own sums replace what was counted, so that strip and footer agree."""
        self.finished = True
        self.prefill = None
        self.drafter = None
        self.tokens = stats.completion_tokens
        self.passes = stats.target_passes
        self.drafted = stats.drafted
        self.accepted = stats.accepted
        self._final_speed = stats.tokens_per_second
        self._silence.clear()

    def failed(self) -> None:
        self._silence.clear()
        self.finished = True
        self.prefill = None
        self.drafter = None

    @property
    def silence(self) -> Silence | None:
        """Why nothing is drafted, where that has been so for a while."""
        return self._silence.shown

    @property
    def speed(self) -> float | None:
        return self._final_speed if self._final_speed is not None else self._meter.rate()

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    @property
    def tokens_per_pass(self) -> float | None:
        return self.tokens / self.passes if self.passes else None

    @property
    def drafter_unfit(self) -> bool:
        return self.drafted >= UNFIT_AFTER and self.accepted == 0
