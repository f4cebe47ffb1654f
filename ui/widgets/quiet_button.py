"""A small button for what can be done with a message: muted until the pointer is over it."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolButton, QWidget

from ui.icons import icon
from ui.theme import Theme, small_font

_ICON, _PAD, _GAP = 16, 6, 5


class QuietButton(QToolButton):
    """An icon and a word, exactly as wide as they are, so that rows of them line up."""

    def __init__(self, theme: Theme, name: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self.setText(text)
        self.setAccessibleName(text)
        self._resize()
        theme.changed.connect(self._resize)

    def show_icon(self, name: str) -> None:
        self._name = name
        self.update()

    def _resize(self) -> None:
        self.setFont(small_font())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        words = self.fontMetrics().horizontalAdvance(self.text())
        height = max(24, self.fontMetrics().height() + 8)
        return QSize(_ICON + 2 * _PAD + (words + _GAP if words else 0), height)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        active = self.underMouse() or self.isDown()
        if active or self.hasFocus():
            painter.setBrush(QColor(tokens.hover) if active else Qt.BrushStyle.NoBrush)
            painter.setPen(QColor(tokens.accent) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), _PAD, _PAD)
        area = QRect(_PAD, (self.height() - _ICON) // 2, _ICON, _ICON)
        icon(self._name, tokens.text if active else tokens.muted).paint(painter, area)
        painter.setPen(QColor(tokens.text if active else tokens.muted))
        words = self.rect().adjusted(_PAD + _ICON + _GAP, 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())
