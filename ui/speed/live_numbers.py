"""The numbers of the answer at hand, counted from the worker's events for strip and panel."""

from __future__ import annotations

from collections import deque

from app.protocol import Chunk, PrefillProgress, Started
from drafting.floor import UNFIT_AFTER
from drafting.silence import Silence
from drafting.statistics import Statistics
from ui.speed.answer_series import AnswerSeries, Point
from ui.speed.silence_meter import SilenceMeter
from ui.speed.spark_bars import SparkBars
from ui.speed.speed_meter import SpeedMeter

MOST_DRAWN = 320
"""Points of a curve: it is about so many pixels wide."""
_COURSES = 16  # answers whose curves are kept


class LiveNumbers:
    """Counts of one answer. They start over with each message.

    ``stats`` grows with the chunks and is replaced by the worker's own when the answer ends, so that
    strip, panel and footer agree.
    """

    def __init__(self) -> None:
        self._meter = SpeedMeter()
        self._silence = SilenceMeter()
        self.series = AnswerSeries()
        self.spark = SparkBars()
        self._courses: deque[tuple[Statistics, list[Point]]] = deque(maxlen=_COURSES)
        self.clear()

    def clear(self) -> None:
        self._meter.clear()
        self._silence.clear()
        self.series.clear()
        self.spark.clear()
        self.stats = Statistics()
        self.finished = False
        self.prefill: tuple[int, int] | None = None  # done and total, while the prompt is read
        self.drafter: str | None = None  # who drafted in the last pass
        self.speedup: float | None = None
        self._ended = False  # the sums are the worker's

    def started(self, event: Started) -> None:
        self.clear()
        self.stats.prompt_tokens = event.prompt_tokens
        self.stats.reused_tokens = event.reused_tokens
        self.prefill = (event.reused_tokens, event.prompt_tokens)

    def prefilled(self, event: PrefillProgress) -> None:
        self.prefill = (event.done, event.total)

    def chunk(self, event: Chunk) -> None:
        if not event.tokens:  # the last words of a cancelled answer, which no pass said
            return
        self.prefill = None
        self._count(event)
        self.speedup = event.speedup
        self.drafter = event.drafter if event.drafted else None
        self._silence.add(event.silence, event.accepted, event.elapsed_s)
        self.series.add(event)
        self._meter.add(event.tokens, event.elapsed_s)
        self.spark.add(event.tokens, event.elapsed_s)

    def _count(self, event: Chunk) -> None:
        stats = self.stats
        if not stats.target_passes:
            stats.first_pass_tokens = event.tokens
            stats.prefill_s = event.elapsed_s
        stats.target_passes += 1
        stats.completion_tokens += event.tokens
        stats.decode_s = event.elapsed_s - stats.prefill_s
        if event.drafted and event.drafter is not None:
            stats.record_draft(event.drafter, event.drafted, event.accepted)
        elif event.silence is not None:
            stats.record_silence(event.silence.reason)

    def done(self, stats: Statistics) -> None:
        self._end()
        self.stats = stats
        self.speedup = stats.speedup
        self._ended = True
        self._courses.append((stats, self.series.thinned(MOST_DRAWN)))

    def failed(self) -> None:
        self._end()

    def _end(self) -> None:
        self._silence.clear()
        self.finished = True
        self.prefill = None
        self.drafter = None

    def course(self, stats: Statistics) -> list[Point]:
        """The points of the answer that ended with ``stats``, as long as it is one of the last few."""
        return next((points for of, points in self._courses if of is stats), [])

    @property
    def silence(self) -> Silence | None:
        """Why nothing is drafted, where that has been so for a while."""
        return self._silence.shown

    @property
    def speed(self) -> float | None:
        """Of the last seconds; of the whole answer once it has ended."""
        return self.stats.tokens_per_second if self._ended else self._meter.rate()

    @property
    def tokens(self) -> int:
        return self.stats.completion_tokens

    @property
    def passes(self) -> int:
        return self.stats.target_passes

    @property
    def drafted(self) -> int:
        return self.stats.drafted

    @property
    def accepted(self) -> int:
        return self.stats.accepted

    @property
    def acceptance_rate(self) -> float | None:
        return self.stats.acceptance_rate

    @property
    def tokens_per_pass(self) -> float | None:
        return self.stats.tokens_per_pass

    @property
    def drafter_unfit(self) -> bool:
        return self.drafted >= UNFIT_AFTER and self.accepted == 0
