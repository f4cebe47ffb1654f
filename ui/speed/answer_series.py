"""The course of one answer for the curves, pass by pass, in bounded memory. Knows no Qt."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from app.protocol import Chunk

WINDOW = 16
"""Passes that a point of a curve looks back over: single passes jump up and down."""
LIMIT = 4096


class Point(NamedTuple):
    """One pass, or a few that were merged; passes count from 1.

    ``tokens``, ``drafted`` and ``accepted`` are of these passes alone, ``end`` is how long the answer
    was after them. ``speed`` (tokens per second), ``acceptance`` (0 to 1) and ``draft_length`` (tokens
    of a draft) are those of the passes up to here that the window holds; None where there is nothing
    to tell.
    """

    first: int
    last: int
    end: int
    tokens: int
    drafted: int
    accepted: int
    drafter: str | None
    speed: float | None
    acceptance: float | None
    draft_length: float | None


class AnswerSeries:
    """Points in the order of the passes. Where there would be more than ``limit``, two become one."""

    def __init__(self, limit: int = LIMIT) -> None:
        if limit < 2:
            raise ValueError("a curve has two points at least")
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        self.points: list[Point] = []
        self.passes = 0
        self._tokens = 0
        self._stride = 1  # passes that make a point
        self._recent: deque[tuple[float, int, int, int]] = deque()  # elapsed_s, tokens, drafted, accepted
        self._sums = [0, 0, 0, 0]  # of the recent: tokens, drafted, accepted, drafts

    def add(self, chunk: Chunk) -> None:
        self.passes += 1
        self._tokens += chunk.tokens
        self._remember(chunk)
        point = self._point(chunk)
        last = self.points[-1] if self.points else None
        if last is not None and last.last - last.first + 1 < self._stride:
            self.points[-1] = _merged(last, point)
            return
        if len(self.points) == self._limit:
            self._halve()
        self.points.append(point)

    def thinned(self, most: int) -> list[Point]:
        """At most so many points (and the last) that stand for all: those that are there stay until there
        are twice as many."""
        step = 1
        while len(self.points) > most * step:
            step *= 2
        last = self.points[-1:] if (len(self.points) - 1) % step else []
        return [*self.points[::step], *last]

    def _remember(self, chunk: Chunk) -> None:
        if self._recent and chunk.elapsed_s < self._recent[-1][0]:
            self._recent.clear()
            self._sums = [0, 0, 0, 0]
        self._recent.append((chunk.elapsed_s, chunk.tokens, chunk.drafted, chunk.accepted))
        self._count(chunk.tokens, chunk.drafted, chunk.accepted, 1)
        while len(self._recent) > max(WINDOW, self._stride):
            _, tokens, drafted, accepted = self._recent.popleft()
            self._count(tokens, drafted, accepted, -1)

    def _count(self, tokens: int, drafted: int, accepted: int, sign: int) -> None:
        for place, number in enumerate((tokens, drafted, accepted, int(drafted > 0))):
            self._sums[place] += sign * number

    def _point(self, chunk: Chunk) -> Point:
        began, first_tokens, *_ = self._recent[0]
        tokens, drafted, accepted, drafts = self._sums
        span = self._recent[-1][0] - began
        return Point(
            first=self.passes,
            last=self.passes,
            end=self._tokens,
            tokens=chunk.tokens,
            drafted=chunk.drafted,
            accepted=chunk.accepted,
            drafter=chunk.drafter if chunk.drafted else None,
            # The oldest pass only says when the window opens.
            speed=(tokens - first_tokens) / span if span > 0 else None,
            acceptance=accepted / drafted if drafted else None,
            draft_length=drafted / drafts if drafts else None,
        )

    def _halve(self) -> None:
        self._stride *= 2
        pairs = zip(self.points[::2], self.points[1::2], strict=False)
        odd = [self.points[-1]] if len(self.points) % 2 else []
        self.points = [*(_merged(first, second) for first, second in pairs), *odd]


def index_at(points: Sequence[Point], tokens: float) -> int | None:
    """Which point this place of the answer belongs to, None where there are none."""
    if not points:
        return None
    return min(bisect_left(points, tokens, key=lambda point: point.end), len(points) - 1)


def _merged(first: Point, second: Point) -> Point:
    return second._replace(
        first=first.first,
        tokens=first.tokens + second.tokens,
        drafted=first.drafted + second.drafted,
        accepted=first.accepted + second.accepted,
        drafter=first.drafter if first.drafted > second.drafted else second.drafter,
    )
