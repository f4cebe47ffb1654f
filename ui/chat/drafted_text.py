"""Who guessed which stretch of an answer: drafters' names over places in its source. Knows no Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator


class DraftedText:
    """``add`` the source's stretches in order; ``runs`` tells who guessed a part of it."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._names: list[str | None] = []
        self._end = 0

    def add(self, length: int, drafter: str | None) -> None:
        """The next ``length`` characters were guessed by ``drafter``; None: said by the target."""
        if length <= 0:
            return
        if not self._names or self._names[-1] != drafter:
            self._starts.append(self._end)
            self._names.append(drafter)
        self._end += length

    def runs(self, at: int, length: int) -> Iterator[tuple[int, int, str]]:
        """(offset from ``at``, length, drafter) of each guessed stretch from ``at`` on."""
        end = min(at + length, self._end)
        index = max(0, bisect_right(self._starts, at) - 1)
        start = at
        while start < end:
            stop = self._starts[index + 1] if index + 1 < len(self._starts) else self._end
            name = self._names[index]
            if name is not None:
                yield start - at, min(stop, end) - start, name
            start, index = stop, index + 1
