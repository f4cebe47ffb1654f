"""A column of rows, as wide as the page but never wider than lines that can be read."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.theme import MEASURE, Theme

_MARGIN, _TOP = 24, 4
_NARROW_PX, _NARROW_MARGIN = 400, 16


class WideColumn(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("form")
        self.rows = QVBoxLayout(self)
        self.rows.setSpacing(0)
        self.rows.setContentsMargins(_NARROW_MARGIN, _TOP, _NARROW_MARGIN, _MARGIN)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        most = MEASURE * self._theme.measures.zoom // 100
        left = _MARGIN if self.width() >= _NARROW_PX else _NARROW_MARGIN
        self.rows.setContentsMargins(left, _TOP, max(left, self.width() - most - left), _MARGIN)
