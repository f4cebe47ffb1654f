"""Which version of a message is shown, such as 2 / 3, and the way to the others."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ui.theme import Theme, numbers_font
from ui.widgets.quiet_button import QuietButton


class BranchSwitcher(QWidget):
    """``asked`` carries -1 for the version before, 1 for the one after. The arrow keys do the same."""

    asked = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.place = (0, 1)
        self.before = QuietButton(theme, "left", "", self)
        self.before.setAccessibleName("Version before")
        self.before.setToolTip("The version before (Left)")
        self.before.clicked.connect(lambda: self.asked.emit(-1))
        self.after = QuietButton(theme, "right", "", self)
        self.after.setAccessibleName("Version after")
        self.after.setToolTip("The version after (Right)")
        self.after.clicked.connect(lambda: self.asked.emit(1))
        self._label = QLabel(self)
        self._label.setProperty("role", "small")
        self.resize_text()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.before, self._label, self.after):
            row.addWidget(widget)
        for button in (self.before, self.after):
            button.installEventFilter(self)
        self.hide()

    def show_place(self, index: int, count: int) -> None:
        """``index`` from 0. Nothing is shown of a message that has no other version."""
        self.place = (index, count)
        self._label.setText(f"{index + 1} / {count}")
        words = f"Version {index + 1} of {count}. What follows each of them is kept."
        self._label.setToolTip(words)
        self._label.setAccessibleName(words)
        self.before.setEnabled(index > 0)
        self.after.setEnabled(index < count - 1)
        self.setVisible(count > 1)

    def resize_text(self) -> None:
        """Take the size of the window's text."""
        self._label.setFont(numbers_font())

    def take_focus(self, towards: int) -> None:
        """To the button that was just pressed on another version, or the one that is left."""
        first, other = (self.before, self.after) if towards < 0 else (self.after, self.before)
        (first if first.isEnabled() else other).setFocus()

    @property
    def words(self) -> str:
        return self._label.text()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Before the buttons, which would only move the focus.
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            towards = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
            if towards is not None:
                if 0 <= self.place[0] + towards < self.place[1]:
                    self.asked.emit(towards)
                return True
        return False
