"""Who drafts in which colour and underline: a row of names that wraps."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.bidi import visible
from ui.speed import drafters
from ui.speed.underline import ROOM, draw_underline
from ui.theme import Theme, small_font

_DOT, _GAP, _BETWEEN = 8, 6, 16


class LegendMark(QWidget):
    """A dot, the drafter's name, and below it the line that its text has in an answer."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.look = drafters.look(name)
        self.setFont(small_font(self.font()))
        self.setToolTip(self.look.help)
        self.setAccessibleName(f"{visible(name)}: {self.look.pattern} underline. {self.look.help}")

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = _DOT + _GAP + metrics.horizontalAdvance(visible(self.look.name))
        return QSize(width + 1, metrics.height() + round(ROOM) + 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self.look.colour(self._theme.tokens.dark))
        height = self.fontMetrics().height()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawEllipse(QRectF(0, (height - _DOT) / 2, _DOT, _DOT))
        left = _DOT + _GAP
        painter.setPen(self._theme.colour("text"))
        painter.drawText(
            QRectF(left, 0, self.width() - left, height),
            Qt.AlignmentFlag.AlignVCenter,
            visible(self.look.name),
        )
        draw_underline(painter, left, self.width() - 1, height + 1, self.look.pattern, colour)


class Legend(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.marks: list[LegendMark] = []
        self.setAccessibleName("Drafters")
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._recolour)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(mark.look.name for mark in self.marks)

    def show_drafters(self, names: Sequence[str]) -> None:
        """In this order; nothing changes where they are shown already."""
        if self.names == tuple(names):
            return
        for mark in self.marks:
            mark.hide()
            mark.deleteLater()
        self.marks = [LegendMark(self._theme, name, self) for name in names]
        for mark in self.marks:
            mark.show()
        self._place(self.width())
        self.updateGeometry()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(width, move=False)

    def sizeHint(self) -> QSize:
        width = sum(mark.sizeHint().width() + _BETWEEN for mark in self.marks) - _BETWEEN
        return QSize(max(0, width), self._place(max(0, width), move=False))

    def minimumSizeHint(self) -> QSize:
        return QSize(max((mark.sizeHint().width() for mark in self.marks), default=0), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width())

    def _place(self, width: int, move: bool = True) -> int:
        """Put the marks in rows as wide as there is room; returns the height of all."""
        x = y = row = 0
        for mark in self.marks:
            size = mark.sizeHint()
            if x and x + size.width() > width:
                x, y, row = 0, y + row + 4, 0
            if move:
                mark.setGeometry(x, y, size.width(), size.height())
            x, row = x + size.width() + _BETWEEN, max(row, size.height())
        return y + row

    def _recolour(self) -> None:
        for mark in self.marks:
            mark.setFont(small_font(self.font()))
            mark.update()
        self._place(self.width())
        self.updateGeometry()
