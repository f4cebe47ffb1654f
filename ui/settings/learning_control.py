"""Whether drafting learns from answers, and a button that makes it forget them."""

from __future__ import annotations

import logging

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app import paths
from app.answers_folder import forget_answers
from ui.theme import Theme
from ui.widgets.switch import Switch

log = logging.getLogger(__name__)


class LearningControl(QWidget):
    changed = Signal(bool)

    def __init__(self, theme: Theme, learns: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.button = QPushButton("Forget", self)
        self.button.setToolTip("Delete what was learned from answers so far, with all models.")
        self.button.clicked.connect(self._forget)
        self.switch = Switch(theme, self)
        self.switch.setAccessibleName("Learn from my answers")
        self.switch.setChecked(learns)
        self.switch.toggled.connect(self.changed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.button)
        row.addWidget(self.switch)

    def show_learns(self, learns: bool) -> None:
        with QSignalBlocker(self.switch):
            self.switch.setChecked(learns)
        self.switch.update()

    def _forget(self) -> None:
        try:
            forgotten = forget_answers(paths.answers_dir())
        except OSError as error:
            log.warning("what was learned cannot be deleted: %s", error)
            self.button.setText("Could not delete")
            self.button.setToolTip(str(error))
            return
        self.button.setText("Forgotten" if forgotten else "Nothing learned")
        self.button.setEnabled(False)
