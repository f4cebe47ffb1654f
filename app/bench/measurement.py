"""What was measured, and the rows that medians over runs make of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from app.protocol import Done

T = TypeVar("T")


class Measurement(Struct, frozen=True, kw_only=True):
    """One conversation in one mode. ``decode_tokens`` took ``decode_s``: the first pass is prefill."""

    model: str
    workload: str
    mode: str
    run: int
    tokens: int
    decode_tokens: int
    decode_s: float
    drafted: int
    accepted: int
    passes: int

    @property
    def tokens_per_second(self) -> float | None:
        """Decode speed; None for an answer that was over with its first pass."""
        return self.decode_tokens / self.decode_s if self.decode_tokens > 0 and self.decode_s > 0 else None


class Row(Struct, frozen=True, kw_only=True):
    """One mode on one workload: medians over runs of what took time, and counts of all runs together.

    ``speedup`` is the median of the ratios to plain decoding in the same run.
    """

    model: str
    workload: str
    mode: str
    tokens_per_second: float | None
    speedup: float | None
    drafted: int
    accepted: int
    acceptance_rate: float | None
    tokens_per_pass: float | None


class Ratio(Struct, frozen=True, kw_only=True):
    """One of our modes over one of the peer's on a workload: the median of the ratios in each run."""

    model: str
    workload: str
    mode: str
    peer_mode: str
    ratio: float | None


def measurement(model: str, workload: str, mode: str, run: int, answers: Sequence[Done]) -> Measurement:
    """All turns of a conversation together."""
    stats = [answer.stats for answer in answers]
    return Measurement(
        model=model,
        workload=workload,
        mode=mode,
        run=run,
        tokens=sum(s.completion_tokens for s in stats),
        decode_tokens=sum(s.completion_tokens - s.first_pass_tokens for s in stats),
        decode_s=sum(s.decode_s for s in stats),
        drafted=sum(s.drafted for s in stats),
        accepted=sum(s.accepted for s in stats),
        passes=sum(s.target_passes for s in stats),
    )


def rows(measurements: Sequence[Measurement], plain: str) -> list[Row]:
    """One row for each model, workload and mode, in the order they first came in.

    ``plain`` is the mode that speed-ups are relative to.
    """
    result: list[Row] = []
    for model, workload, mode in _first_seen((m.model, m.workload, m.mode) for m in measurements):
        mine = _select(measurements, model, workload, mode)
        drafted, accepted = sum(m.drafted for m in mine), sum(m.accepted for m in mine)
        passes = sum(m.passes for m in mine)
        result.append(
            Row(
                model=model,
                workload=workload,
                mode=mode,
                tokens_per_second=median(m.tokens_per_second for m in mine),
                speedup=_ratio(mine, _select(measurements, model, workload, plain)),
                drafted=drafted,
                accepted=accepted,
                acceptance_rate=accepted / drafted if drafted else None,
                tokens_per_pass=sum(m.tokens for m in mine) / passes if passes else None,
            )
        )
    return result


def ratios(
    ours: Sequence[Measurement], peers: Sequence[Measurement], *, plain: str, peer_plain: str
) -> list[Ratio]:
    """Each of our modes over the peer's fastest on that workload; plain over its plain comes first."""
    result: list[Ratio] = []
    for model, workload in _first_seen((m.model, m.workload) for m in ours):
        here = [m for m in ours if (m.model, m.workload) == (model, workload)]
        there = [m for m in peers if (m.model, m.workload) == (model, workload)]
        speeds = {
            mode: median(m.tokens_per_second for m in there if m.mode == mode) for mode in _modes(there)
        }
        best = max(speeds, key=lambda mode: speeds[mode] or 0.0)
        for mode, peer_mode in [(plain, peer_plain), *((mode, best) for mode in _modes(here))]:
            ratio = _ratio(_select(ours, model, workload, mode), _select(peers, model, workload, peer_mode))
            result.append(Ratio(model=model, workload=workload, mode=mode, peer_mode=peer_mode, ratio=ratio))
    return result


def median(values: Iterable[float | None]) -> float | None:
    """The median of what is known, None when nothing is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Of what is known and above zero, None when nothing is."""
    known = [value for value in values if value is not None and value > 0]
    return statistics.geometric_mean(known) if known else None


def by_mode(table: Sequence[Row], value: Callable[[Row], float | None]) -> dict[str, float | None]:
    """The geometric mean over the workloads of one column, for each mode."""
    modes = _first_seen(row.mode for row in table)
    return {mode: geometric_mean(value(row) for row in table if row.mode == mode) for mode in modes}


def _ratio(ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> float | None:
    other = {m.run: m.tokens_per_second for m in theirs}
    pairs = [(m.tokens_per_second, other.get(m.run)) for m in ours]
    return median(a / b if a and b else None for a, b in pairs)


def _select(measurements: Sequence[Measurement], model: str, workload: str, mode: str) -> list[Measurement]:
    return [m for m in measurements if (m.model, m.workload, m.mode) == (model, workload, mode)]


def _modes(measurements: Iterable[Measurement]) -> list[str]:
    return _first_seen(m.mode for m in measurements)


def _first_seen(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
