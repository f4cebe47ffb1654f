"""Marks what was looked for in one text of a message."""

from __future__ import annotations

import re
from bisect import bisect_left

from PySide6.QtCore import QRect
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from ui.chat.draft_marks import qt_length
from ui.theme import Theme


class FoundMarks:
    """Lies over the text: the document does not know of it, and nothing is laid out again. Without a
    pattern it costs nothing."""

    def __init__(self, theme: Theme, editor: QTextEdit | QPlainTextEdit) -> None:
        self._theme = theme
        self._editor = editor
        self._pattern: re.Pattern[str] | None = None
        self._places: list[tuple[int, int]] = []  # from where to where, in the document
        self._selections: list[QTextEdit.ExtraSelection] = []
        self.begin = 0  # what stands before it is not looked through
        self._current: int | None = None

    @property
    def count(self) -> int:
        return len(self._places)

    @property
    def current(self) -> int | None:
        """The number of the one that is marked more than the others."""
        return self._current

    def show(self, pattern: re.Pattern[str] | None) -> None:
        """Mark all that ``pattern`` finds; None takes the marks away."""
        if pattern is self._pattern:
            return
        self._pattern = pattern
        self._current = None
        self.text_changed()

    @property
    def active(self) -> bool:
        return self._pattern is not None

    def text_changed(self, position: int = 0) -> None:
        """The text from ``position`` on is another."""
        block = self._editor.document().findBlock(max(position, self.begin))
        start = block.position()
        kept = bisect_left(self._places, (start, 0))
        had = len(self._places)
        del self._places[kept:], self._selections[kept:]
        if self._pattern is not None:
            while block.isValid():
                text, at = block.text(), block.position()
                wide = not text.isascii()
                for match in self._pattern.finditer(text):
                    begin, end = match.span()
                    if wide:
                        begin, end = qt_length(text[:begin]), qt_length(text[:end])
                    self._add(at + begin, at + end)
                block = block.next()
        if had or self._places:
            self._editor.setExtraSelections(self._selections)

    def set_current(self, number: int | None) -> None:
        """Mark one more than the others, or none."""
        if number == self._current:
            return
        before, self._current = self._current, number
        for one in (before, number):
            if one is not None and one < len(self._selections):
                self._selections[one].format = self._format(one)
        self._editor.setExtraSelections(self._selections)

    def recolour(self) -> None:
        """Take the colours of the theme."""
        if self._selections:
            for number, selection in enumerate(self._selections):
                selection.format = self._format(number)
            self._editor.setExtraSelections(self._selections)

    def place_of(self, number: int) -> QRect:
        """Where the match begins, in the editor; one that is scrolled away sideways is shown."""
        cursor = QTextCursor(self._editor.document())
        cursor.setPosition(self._places[number][0])
        place = self._editor.cursorRect(cursor)
        bar = self._editor.horizontalScrollBar()
        room = self._editor.viewport().width()
        if bar.maximum() > 0 and not 0 <= place.left() < room * 3 // 4:
            bar.setValue(bar.value() + place.left() - room // 3)
            place = self._editor.cursorRect(cursor)
        return place.translated(self._editor.viewport().pos())

    def first_below(self, y: int) -> int:
        """The first match at or below ``y`` in the editor; as many as there are where none is."""
        cursor = QTextCursor(self._editor.document())
        low, high = 0, len(self._places)
        while low < high:
            middle = (low + high) // 2
            cursor.setPosition(self._places[middle][0])
            if self._editor.cursorRect(cursor).top() < y:
                low = middle + 1
            else:
                high = middle
        return low

    def _add(self, start: int, end: int) -> None:
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self._editor.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.setKeepPositionOnInsert(True)  # what is added right after it is not marked
        selection.cursor = cursor
        selection.format = self._format(len(self._places))
        self._places.append((start, end))
        self._selections.append(selection)

    def _format(self, number: int) -> QTextCharFormat:
        now = number == self._current
        role = "found_now" if now else "found"
        result = QTextCharFormat()
        result.setBackground(self._theme.colour(role))
        result.setForeground(self._theme.colour(f"on_{role}"))
        if now:  # so that it is told from the others without colours as well
            result.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
            result.setUnderlineColor(self._theme.colour("on_found_now"))
        return result
