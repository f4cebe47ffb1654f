"""Inline cards: what went wrong with what can be done, and a line to read once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.bidi import visible
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton

_BESIDE, _UNDER = (0, 1), (1, 0)  # row and column of a notice's button
_LEAST_CHARACTERS = 40
ACTIONS = {
    "retry": "Retry",
    "continue": "Continue",
    "reload": "Try again",
    "restart": "Restart engine",
    "restart_plain": "Restart with drafting off",
    "choose": "Choose a model…",
    "save": "Save again",
    "ask_anew": "Ask in a new chat",
    "save_settings": "Try again",
    "import_chats": "Choose another file…",
    "export_chats": "Try again",
    "export_chats_markdown": "Try again",
    "settings": "Open settings",
    "settings:engine": "Open settings",
    "settings:server": "Open settings",
    "models": "Open Models",
    "logs": "Show logs",
    "report": "Copy diagnostic report",
}


class ProblemCard(QFrame):
    """What happened, what was kept, what to do. ``chosen`` carries the name of an action, or
    "dismiss"."""

    chosen = Signal(str)

    def __init__(
        self, theme: Theme, what: str, kept: str, actions: Sequence[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("problem")
        self.setAccessibleName("Problem")
        self.what = what
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        words = _wrapping(visible(what), self)
        words.setAccessibleName(what)
        column.addWidget(words)
        if kept:
            below = _wrapping(kept, self)
            below.setProperty("role", "muted")
            column.addWidget(below)
        row = nested(column, QHBoxLayout())
        row.setSpacing(8)
        self.buttons: dict[str, QPushButton] = {}
        for action in (*actions, "dismiss"):
            button = QPushButton(ACTIONS.get(action, "Dismiss"), self)
            button.clicked.connect(lambda _=False, action=action: self.chosen.emit(action))
            row.addWidget(button)
            self.buttons[action] = button
        row.addStretch()

    def fit(self, width: int) -> int:
        height = self.heightForWidth(width) if self.hasHeightForWidth() else self.sizeHint().height()
        self.resize(width, height)
        return height


class NoticeLine(QFrame):
    """A line that may be read once and put away. ``button`` does what helps, where ``action`` names it."""

    dismissed = Signal()

    def __init__(self, theme: Theme, text: str, action: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self.text = text
        self.action = action
        self.button: QPushButton | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 4, 4, 4)
        self._grid.setColumnStretch(0, 1)
        label = _wrapping(visible(text), self)
        label.setAccessibleName(text)
        self._grid.addWidget(label, 0, 0)
        if action:
            self.button = QPushButton(ACTIONS[action], self)
            self.button.setAccessibleDescription(text)
            self._grid.addWidget(self.button, *_BESIDE)
        self._below = False
        self._close = QuietButton(theme, "close", "", self)
        self._close.setAccessibleName("Dismiss notice")
        self._close.setToolTip("Dismiss")
        self._close.clicked.connect(self.dismissed)
        self._grid.addWidget(self._close, 0, 2, Qt.AlignmentFlag.AlignTop)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.button is None:
            return
        beside = self.button.sizeHint().width() + self._close.sizeHint().width()
        below = self.width() - beside < self.fontMetrics().averageCharWidth() * _LEAST_CHARACTERS
        if below != self._below:  # words that stand in a narrow column are hard to read
            self._below = below
            self._grid.removeWidget(self.button)
            self._grid.setContentsMargins(12, 4, 4, 8 if below else 4)
            left = Qt.AlignmentFlag.AlignLeft if below else Qt.AlignmentFlag(0)
            self._grid.addWidget(self.button, *(_UNDER if below else _BESIDE), left)


def _wrapping(text: str, parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
