"""A number and its unit, in a width that stays."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget


class NumberField(QWidget):
    """Unlike a label, which tells every layout around it of each new text, it lays nothing out again:
    many numbers change many times a second. ``help`` is said on hover and to screen readers."""

    def __init__(self, help: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._text = ""
        self.setToolTip(help)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.setAccessibleName(f"{text}. {self.toolTip()}")
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self._text)
