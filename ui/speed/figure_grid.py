"""An answer's numbers at a glance, each with its caption below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from ui.speed.numbers import Figure
from ui.theme import FONT_PX, Theme, numbers_font, small_font

_MOST_COLUMNS = 3
_GAP = 8


class FigureGrid(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: list[tuple[QLabel, QLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 4)
        self._grid.setHorizontalSpacing(_GAP)
        self._grid.setVerticalSpacing(0)
        self._columns = 0
        theme.changed.connect(self._measure)

    def text(self) -> str:
        return " · ".join(f"{value.text()} {caption.text()}" for value, caption in self._cells)

    def show_figures(self, figures: Sequence[Figure]) -> None:
        """Always the same ones: only their values change."""
        while len(self._cells) < len(figures):
            self._add()
        self._place()
        for (value, caption), figure in zip(self._cells, figures, strict=True):
            if (value.text(), caption.text()) == (figure.value, figure.caption):
                continue
            value.setText(figure.value)
            caption.setText(figure.caption)
            for label in (value, caption):
                label.setToolTip(figure.help)
                label.setAccessibleName(f"{figure.value} {figure.caption}. {figure.help}")

    def _add(self) -> None:
        value, caption = QLabel(self), QLabel(self)
        caption.setProperty("role", "muted")
        self._cells.append((value, caption))
        self._columns = 0  # to be placed anew
        self._measure()

    def minimumSizeHint(self) -> QSize:
        return QSize(self._widest(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _widest(self) -> int:
        return max((label.sizeHint().width() for cell in self._cells for label in cell), default=0)

    def _place(self) -> None:
        """In as many columns as have room for the widest caption."""
        columns = max(1, min(_MOST_COLUMNS, (self.width() + _GAP) // (self._widest() + _GAP)))
        if columns == self._columns:
            return
        self._columns = columns
        for column in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(column, int(column < columns))
        for place, (value, caption) in enumerate(self._cells):
            row, column = divmod(place, columns)
            self._grid.addWidget(value, 2 * row, column, Qt.AlignmentFlag.AlignBottom)
            self._grid.addWidget(caption, 2 * row + 1, column, Qt.AlignmentFlag.AlignTop)
            caption.setContentsMargins(0, 0, 0, _GAP)

    def _measure(self) -> None:
        for value, caption in self._cells:
            font = numbers_font(self.font(), FONT_PX + 4)
            value.setFont(font)
            caption.setFont(small_font(self.font()))
        self._place()
