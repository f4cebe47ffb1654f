"""The small picture of the speed in the strip: bars that stay where they are."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.speed import numbers
from ui.speed.spark_bars import SLOTS
from ui.theme import Theme

_BAR, _GAP, _HEIGHT = 2, 1, 14


class SparkLine(QWidget):
    """Bars from left to right, the highest as high as the widget."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.rates: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setToolTip(numbers.SPARK_HELP)
        self._name()
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(SLOTS * (_BAR + _GAP), _HEIGHT)

    def show_rates(self, rates: Sequence[float]) -> None:
        if tuple(rates) != self.rates:
            self.rates = tuple(rates)
            self._name()
            self.update()

    def _name(self) -> None:
        words = "no speed yet"
        if self.rates:
            slowest, fastest = numbers.speed(min(self.rates)), numbers.speed(max(self.rates))
            words = f"{slowest} to {fastest} tokens per second"
        self.setAccessibleName(f"Speed since the answer began: {words}. {numbers.SPARK_HELP}")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        height = self.height()
        painter.fillRect(QRectF(0, height - 1, self.width() - _GAP, 1), self._theme.colour("line"))
        top = max(self.rates, default=0.0)
        for place, rate in enumerate(self.rates if top else ()):
            tall = max(1.0, rate / top * height)
            x = place * (_BAR + _GAP)
            painter.fillRect(QRectF(x, height - tall, _BAR, tall), self._theme.colour("accent"))
