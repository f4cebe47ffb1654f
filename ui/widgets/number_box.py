"""A box for a number whose range comes from its declaration."""

from __future__ import annotations

from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QWidget

from app.declaration import Declared


class WholeBox(QSpinBox):
    """The wheel scrolls the page, it does not change what the pointer happens to be over."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DecimalBox(QDoubleSpinBox):
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


NumberBox = WholeBox | DecimalBox


def number_box(words: Declared, value: float, parent: QWidget) -> NumberBox:
    """Sends ``valueChanged`` when a value is complete, not while it is typed."""
    least, most = words.minimum or 0, words.maximum or 0
    box: NumberBox
    if words.is_whole:
        box = WholeBox(parent)
        box.setRange(int(least), int(most))
        box.setGroupSeparatorShown(True)
        box.setValue(int(value))
    else:
        box = DecimalBox(parent)
        box.setDecimals(2)
        box.setSingleStep(0.05 if most <= 1 else 0.1)
        box.setRange(least, most)
        box.setValue(value)
    box.setKeyboardTracking(False)
    return box
