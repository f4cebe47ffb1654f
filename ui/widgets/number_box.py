"""A box for a number whose range, step and unit come from its declaration."""

from __future__ import annotations

from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox, QWidget

from app.declaration import Declared
from ui.theme import SPACE


class WholeBox(QSpinBox):
    """The wheel scrolls the page, it does not change what the pointer happens to be over."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _inset(self)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DecimalBox(QDoubleSpinBox):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _inset(self)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


NumberBox = WholeBox | DecimalBox


def _inset(box: QAbstractSpinBox) -> None:
    box.lineEdit().setTextMargins(SPACE - 2, 0, 0, 0)  # no style sheet reaches it there


def number_box(words: Declared, value: float, parent: QWidget) -> NumberBox:
    """Sends ``valueChanged`` when a value is complete, not while it is typed."""
    least, most = words.minimum or 0, words.maximum or 0
    box: NumberBox
    if words.is_whole:
        box = WholeBox(parent)
        box.setRange(int(least), int(most))
        box.setGroupSeparatorShown(not words.is_name)
        box.setSingleStep(int(words.step) or 1)
        box.setValue(int(value))
    else:
        box = DecimalBox(parent)
        box.setDecimals(2)
        box.setSingleStep(words.step or (0.05 if most <= 1 else 0.1))
        box.setRange(least, most)
        box.setValue(value)
    box.setSpecialValueText(words.least)
    box.setSuffix(f" {words.unit}" if words.unit else "")
    box.setKeyboardTracking(False)
    return box


class ShareBox(WholeBox):
    """A share from 0 to 1, in percent."""

    def __init__(self, words: Declared, share: float, parent: QWidget) -> None:
        super().__init__(parent)
        self.setRange(round(100 * (words.minimum or 0)), round(100 * (words.maximum or 0)))
        self.setSingleStep(5)
        self.setSuffix(" %")
        self.setSpecialValueText(words.least)
        self.setKeyboardTracking(False)
        self.show_share(share)

    @property
    def share(self) -> float:
        return self.value() / 100

    def show_share(self, share: float) -> None:
        self.setValue(round(100 * share))
