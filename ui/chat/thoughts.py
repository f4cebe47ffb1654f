"""What the model thought before it answered, folded away until somebody wants to read it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.protocol import Piece
from ui.chat.answer_body import AnswerBody
from ui.theme import Theme
from ui.widgets.quiet_button import QuietButton

_PAD = 12


class Thoughts(QWidget):
    """What the model thought, folded away until somebody wants to read it."""

    grown = Signal()
    toggled = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._unread: list[Piece] = []
        self._drafters_shown = False
        self._mark: tuple[re.Pattern[str] | None, int | None] = (None, None)
        self.body: AnswerBody | None = None
        self.button = QuietButton(theme, "right", "Thoughts", self)
        self.button.setCheckable(True)
        self.button.toggled.connect(self._toggle)
        self.set_state(False, False)
        self.recolour()

    def write(self, pieces: Sequence[Piece]) -> None:
        if self.body is None:  # nothing is laid out while nobody looks
            self._unread += pieces
        else:
            self.body.write(pieces)

    def show_drafters(self, shown: bool) -> None:
        self._drafters_shown = shown
        if self.body is not None:
            self.body.show_drafters(shown)

    def mark(self, pattern: re.Pattern[str] | None, current: int | None = None) -> None:
        """As AnswerBody.mark, once they are unfolded."""
        self._mark = (pattern, current)
        if self.body is not None:
            self.body.mark(pattern, current)

    def unfold(self) -> AnswerBody:
        """Show them, if they are not shown."""
        self.button.setChecked(True)
        assert self.body is not None
        return self.body

    def set_state(self, thinking: bool, cut: bool) -> None:
        words = "Thinking…" if thinking else "Thoughts, cut" if cut else "Thoughts"
        self.button.setText(words)
        self.button.setAccessibleName(words)

    def _toggle(self, shown: bool) -> None:
        if shown and self.body is None:
            self.body = AnswerBody(self._theme, self.font(), parent=self)
            self.body.grown.connect(self.grown)
            self.body.show_drafters(self._drafters_shown)
            self.body.mark(*self._mark)
            self.body.write(self._unread)
            self._unread.clear()
        if self.body is not None:
            self.body.setVisible(shown)
        self.recolour()
        self.toggled.emit()
        self.grown.emit()

    def recolour(self) -> None:
        self.button.show_icon("down" if self.button.isChecked() else "right")
        if self.body is not None:
            self.body.recolour()
        self.update()

    def fit(self, width: int) -> int:
        size = self.button.sizeHint()
        self.button.setGeometry(-6, 0, size.width(), size.height())  # its icon meets the margin
        height = size.height()
        if self.body is not None and self.button.isChecked():
            self.body.move(_PAD, height + 4)
            height += 4 + self.body.fit(width - _PAD)
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.body is not None and self.button.isChecked():
            top = self.button.height() + 4
            QPainter(self).fillRect(0, top, 2, self.height() - top, self._theme.colour("line"))
