"""Asks on a card whether a model is to be deleted."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.widgets.layouts import nested


class DeleteQuestion(QFrame):
    """``confirmed`` is sent once it is answered with yes: whether the drafter goes as well."""

    confirmed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("problem")
        self.setAccessibleName("Delete?")
        self.words = QLabel(self)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setWordWrap(True)
        self.with_drafter = QCheckBox(self)
        self.delete = QPushButton("Delete", self)
        self.delete.clicked.connect(self._confirm)
        self.keep = QPushButton("Keep", self)
        self.keep.clicked.connect(self.hide)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(8)
        column.addWidget(self.words)
        column.addWidget(self.with_drafter)
        row = nested(column, QHBoxLayout())
        row.setSpacing(8)
        row.addWidget(self.delete)
        row.addWidget(self.keep)
        row.addStretch(1)

    def ask(self, words: str, drafter_words: str) -> None:
        """``drafter_words`` offer to delete the drafter as well; empty where there is none."""
        self.words.setText(words)
        self.words.setAccessibleName(words)
        self.with_drafter.setText(drafter_words)
        self.with_drafter.setVisible(bool(drafter_words))
        self.with_drafter.setChecked(bool(drafter_words))
        self.show()
        self.keep.setFocus()

    def _confirm(self) -> None:
        self.hide()
        self.confirmed.emit(self.with_drafter.isChecked())
