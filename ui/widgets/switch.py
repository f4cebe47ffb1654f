"""A check box drawn as a switch."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from ui.theme import Theme

_WIDTH, _HEIGHT, _INSET = 36, 20, 3


class Switch(QCheckBox):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self._resize)

    def sizeHint(self) -> QSize:
        scale = self._scale
        return QSize(round(scale * (_WIDTH + 4)), round(scale * (_HEIGHT + 4)))

    @property
    def _scale(self) -> float:
        """As much larger than usual as the text is."""
        return self._theme.measures.zoom / 100

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _resize(self) -> None:
        self.updateGeometry()
        self.update()

    def hitButton(self, at: QPoint) -> bool:
        return self.rect().contains(at)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        on = self.isChecked()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self._scale, self._scale)
        track = QRectF(2, 2, _WIDTH, _HEIGHT)
        if self.hasFocus():
            painter.setPen(QColor(tokens.accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(track.adjusted(-1.5, -1.5, 1.5, 1.5), 11.5, 11.5)
        painter.setPen(QColor(tokens.accent if on else tokens.muted))
        painter.setBrush(QColor(tokens.accent if on else tokens.panel))
        painter.drawRoundedRect(track.adjusted(0.5, 0.5, -0.5, -0.5), _HEIGHT / 2, _HEIGHT / 2)
        size = _HEIGHT - 2 * _INSET
        x = track.right() - _INSET - size if on else track.left() + _INSET
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.on_accent if on else tokens.muted))
        painter.drawEllipse(QRectF(x, track.top() + _INSET, size, size))
