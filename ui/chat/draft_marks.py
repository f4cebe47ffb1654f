"""Draws who guessed which text over a laid out document: a tint below it, a patterned line under it.

The document itself does not know of it: showing and hiding lays nothing out again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QTextBlock, QTextLine

from ui.bidi import holds_rtl
from ui.chat.drafted_text import DraftedText
from ui.speed.drafters import look
from ui.speed.underline import ROOM, draw_underline

# Strong enough to be seen, weak enough for text on it to keep its contrast (a test measures it).
TINT_ALPHA = 26
_BELOW = 2.5  # of the line, under the base line of the text


class Stretch(Struct, frozen=True):
    """``units`` positions of a document show ``length`` characters of the source from ``at`` on. They are
    as many, except for a character beyond U+FFFF: it is a stretch of its own, two positions in Qt."""

    position: int
    units: int
    length: int
    at: int


class _Mark(Struct):
    """One guessed piece of one line; ``area`` is relative to its block."""

    area: QRectF
    line: float
    drafter: str


def qt_length(text: str) -> int:
    """How many positions ``text`` takes in a document: a character beyond U+FFFF takes two."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


def stretches(text: str, position: int, at: int) -> Iterator[Stretch]:
    """``text`` stands from ``position`` in a document and from ``at`` in the source."""
    if at < 0:
        return
    if text.isascii() or max(text) <= "\uffff":
        yield Stretch(position, len(text), len(text), at)
        return
    start = 0
    for index, character in enumerate(text):
        if character > "\uffff":
            if start < index:
                yield Stretch(position, index - start, index - start, at + start)
            position += index - start
            yield Stretch(position, 2, 1, at + index)
            position += 2
            start = index + 1
    if start < len(text):
        yield Stretch(position, len(text) - start, len(text) - start, at + start)


class DraftMarks:
    """What a document's positions show of the source, and the marks over it, block by block."""

    def __init__(self, drafted: DraftedText) -> None:
        self._drafted = drafted
        self._stretches: list[Stretch] = []
        self._blocks: dict[int, list[_Mark]] = {}
        self.shown = False

    def add(self, text: str, position: int, at: int) -> None:
        """In the order of the document."""
        self._stretches += stretches(text, position, at)

    def cut(self, position: int) -> None:
        """What stood from ``position`` on is no longer there."""
        while self._stretches and self._stretches[-1].position >= position:
            self._stretches.pop()
        self.forget(position)

    def forget(self, position: int = 0) -> None:
        """What stands from ``position`` on was laid out anew."""
        if position <= 0:
            self._blocks.clear()
        else:
            self._blocks = {start: marks for start, marks in self._blocks.items() if start < position}

    def forget_block(self, position: int) -> None:
        self._blocks.pop(position, None)

    def source_of(self, start: int, end: int) -> tuple[int, int] | None:
        """The stretch of the source that the positions from ``start`` to ``end`` show; None: nothing."""
        first: int | None = None
        last = 0
        for stretch in self._between(start, end):
            whole = stretch.units != stretch.length
            skipped = 0 if whole else max(0, start - stretch.position)
            shown = 1 if whole else min(stretch.length, end - stretch.position)
            first = stretch.at + skipped if first is None else min(first, stretch.at + skipped)
            last = max(last, stretch.at + shown)
        return None if first is None else (first, last)

    def drafters(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """(position, length, drafter) of what was guessed between two positions of the document."""
        last: tuple[int, int, str] | None = None
        for stretch in self._between(start, end):
            whole = stretch.units != stretch.length
            for offset, length, name in self._drafted.runs(stretch.at, stretch.length):
                first = stretch.position if whole else max(start, stretch.position + offset)
                stop = stretch.position + (stretch.units if whole else offset + length)
                size = min(stop, end) - first
                if size <= 0:
                    continue
                if last is not None and last[2] == name and last[0] + last[1] == first:
                    last = (last[0], last[1] + size, name)
                    continue
                if last is not None:
                    yield last
                last = (first, size, name)
        if last is not None:
            yield last

    def help_at(self, position: int) -> str | None:
        """Who guessed the character at ``position``, in a sentence; None: nobody, or it is not shown."""
        if not self.shown:
            return None
        name = next((name for _, _, name in self.drafters(position, position + 1)), None)
        return None if name is None else f"Guessed by {name}. {look(name).help}"

    def _between(self, start: int, end: int) -> Iterator[Stretch]:
        index = max(0, bisect_right(self._stretches, start, key=lambda one: one.position) - 1)
        while index < len(self._stretches) and self._stretches[index].position < end:
            stretch = self._stretches[index]
            if stretch.position + stretch.units > start:
                yield stretch
            index += 1

    # ---- drawing

    def draw_tints(self, painter: QPainter, block: QTextBlock, origin: QPointF, dark: bool) -> None:
        """Below the text of ``block``, whose layout begins at ``origin``."""
        for mark in self._marks(block):
            colour = QColor(look(mark.drafter).colour(dark))
            colour.setAlpha(TINT_ALPHA)
            painter.fillRect(mark.area.translated(origin), colour)

    def draw_lines(self, painter: QPainter, block: QTextBlock, origin: QPointF, dark: bool) -> None:
        """Over the text, where nothing hides them."""
        for mark in self._marks(block):
            shown = look(mark.drafter)
            area = mark.area.translated(origin)
            colour = QColor(shown.colour(dark))
            draw_underline(painter, area.left(), area.right(), mark.line + origin.y(), shown.pattern, colour)

    def _marks(self, block: QTextBlock) -> list[_Mark]:
        start = block.position()
        marks = self._blocks.get(start)
        if marks is None:
            marks = self._blocks[start] = list(self._measure(block))
        return marks

    def _measure(self, block: QTextBlock) -> Iterator[_Mark]:
        layout = block.layout()
        start = block.position()
        text = block.text()
        mixed = holds_rtl(text)
        words_at = len(text) - len(text.lstrip())  # indentation is not marked
        for number in range(layout.lineCount()):
            line = layout.lineAt(number)
            first = start + line.textStart()
            base = line.y() + line.ascent()
            for position, length, name in self.drafters(first, first + line.textLength()):
                at = max(position - start, words_at)
                for left, right in _extents(line, at, position + length - start, mixed):
                    if right <= left:
                        continue
                    area = QRectF(left, base - line.ascent(), right - left, line.ascent() + _BELOW + ROOM)
                    yield _Mark(area, base + _BELOW, name)


def _extents(line: QTextLine, start: int, end: int, mixed: bool) -> Iterator[tuple[float, float]]:
    """Where on ``line`` its characters stand; in several places where it changes direction."""
    if not mixed:
        left, right = _x(line, start), _x(line, end)
        yield left, min(right, line.naturalTextRect().right())  # not the blank at which it wraps
        return
    extents: list[tuple[float, float]] = []
    for at in range(start, end):
        one = _x(line, at), _x(line, at, QTextLine.Edge.Trailing)
        left, right = min(one), max(one)
        if extents and abs(extents[-1][1] - left) < 0.1:
            extents[-1] = (extents[-1][0], right)
        elif extents and abs(extents[-1][0] - right) < 0.1:
            extents[-1] = (left, extents[-1][1])
        else:
            extents.append((left, right))
    yield from extents


def _x(line: QTextLine, at: int, edge: QTextLine.Edge = QTextLine.Edge.Leading) -> float:
    found: Any = line.cursorToX(at, edge)  # a tuple of x and position, which PySide's stubs do not know
    return float(found[0])
