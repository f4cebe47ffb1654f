"""A line of text that shortens itself to the room there is, and then tells the whole on hover."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from ui.tooltips import plain


class ElidedLabel(QLabel):
    def __init__(self, text: str = "", parent: QWidget | None = None, *, role: str | None = None) -> None:
        super().__init__(parent)
        self._help = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role is not None:
            self.setProperty("role", role)
        self.say(text)

    def say(self, text: str, help: str = "") -> None:
        """``help`` explains the text on hover; without it, that shows what did not fit."""
        if (text, help) == (self.text(), self._help):
            return
        self._help = help
        self.setText(text)
        self.setAccessibleName(text)
        self.setAccessibleDescription(help)
        self.setToolTip(plain(help or text))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), self.alignment() | Qt.AlignmentFlag.AlignVCenter, text)
