"""A line that says what was just done and offers to take it back, for a while."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from ui.bidi import visible
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton

SHOWN_MS = 10_000


class UndoLine(QFrame):
    """Goes away by itself, but not under the pointer or while it has the focus."""

    undone = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, stacked: bool = False) -> None:
        """``stacked``: the buttons stand below the words, where there is little width."""
        super().__init__(parent)
        self.setObjectName("notice")
        self.text = ""
        self._pointed_at = False
        self._label = QLabel(self)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setWordWrap(True)
        self.button = QPushButton("Undo", self)
        self.button.clicked.connect(self._undo)
        self.close_button = QuietButton(theme, "close", "", self)
        self.close_button.setAccessibleName("Dismiss")
        self.close_button.setToolTip("Dismiss")
        self.close_button.clicked.connect(self.dismiss)
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        whole = QBoxLayout(down if stacked else across, self)
        whole.setContentsMargins(12, 8, 8, 8)
        whole.setSpacing(4)
        whole.addWidget(self._label, 0 if stacked else 1)
        row = nested(whole, QHBoxLayout())
        row.setSpacing(4)
        row.addStretch(1)
        row.addWidget(self.button)
        row.addWidget(self.close_button)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SHOWN_MS)
        self._timer.timeout.connect(self._time_is_up)
        self.hide()

    def offer(self, text: str) -> None:
        """Say ``text`` and begin to wait; what was offered before can no longer be undone here."""
        self.text = visible(text)
        self._label.setText(self.text)
        self._label.setAccessibleName(self.text)
        self.button.setAccessibleName(f"Undo: {self.text}")
        self.show()
        self._timer.start()

    def dismiss(self) -> None:
        self._timer.stop()
        self.hide()

    def _undo(self) -> None:
        self.dismiss()
        self.undone.emit()

    def _time_is_up(self) -> None:
        if self._pointed_at or self.button.hasFocus() or self.close_button.hasFocus():
            self._timer.start()
        else:
            self.hide()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._pointed_at = True

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._pointed_at = False
