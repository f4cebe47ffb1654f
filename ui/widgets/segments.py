"""A choice between a few short words that are all seen at once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QSizePolicy, QWidget


class Segments(QFrame):
    """``chosen`` carries the value that a person chose. Arrow keys move between the words."""

    chosen = Signal(object)

    def __init__(self, choices: Sequence[tuple[str, str]], value: str, parent: QWidget | None = None) -> None:
        """``choices`` are values with their words."""
        super().__init__(parent)
        self.setObjectName("segments")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.buttons: dict[str, QPushButton] = {}
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        for each, words in choices:
            button = QPushButton(words, self)
            button.setProperty("look", "segment")
            button.setCheckable(True)
            button.clicked.connect(lambda _=False, each=each: self.chosen.emit(each))
            self._group.addButton(button)
            row.addWidget(button)
            self.buttons[each] = button
        self.show_value(value)

    def explain(self, title: str, help: str) -> None:
        """For screen readers, and on hover."""
        self.setAccessibleName(title)
        for button in self.buttons.values():
            button.setAccessibleName(f"{title}: {button.text()}")
            button.setAccessibleDescription(help)
        self.setFocusProxy(self._checked())

    @property
    def value(self) -> str:
        return next(each for each, button in self.buttons.items() if button.isChecked())

    def show_value(self, value: str) -> None:
        self.buttons[value].setChecked(True)
        self.setFocusProxy(self._checked())

    def _checked(self) -> QPushButton:
        return next(button for button in self.buttons.values() if button.isChecked())
