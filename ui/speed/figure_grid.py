"""An answer's numbers at a glance, each with its caption below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from ui.speed.numbers import Figure
from ui.theme import FONT_PX, Theme, numbers_font, small_font

_COLUMNS = 3


class FigureGrid(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: list[tuple[QLabel, QLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 4)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(8)
        for column in range(_COLUMNS):
            self._grid.setColumnStretch(column, 1)
        theme.changed.connect(self._measure)

    def text(self) -> str:
        return " · ".join(f"{value.text()} {caption.text()}" for value, caption in self._cells)

    def show_figures(self, figures: Sequence[Figure]) -> None:
        """Always the same ones: only their values change."""
        while len(self._cells) < len(figures):
            self._add()
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
        cell = QVBoxLayout()
        cell.setSpacing(0)
        cell.addWidget(value)
        cell.addWidget(caption)
        place = len(self._cells)
        self._grid.addLayout(cell, place // _COLUMNS, place % _COLUMNS)
        self._cells.append((value, caption))
        self._measure()

    def _measure(self) -> None:
        for value, caption in self._cells:
            font = numbers_font(self.font(), FONT_PX + 4)
            value.setFont(font)
            caption.setFont(small_font(self.font()))
