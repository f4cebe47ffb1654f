"""Below an answer: its numbers, each with its explanation, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLabel, QMenu, QToolButton, QWidget

from app.chats.message import Message
from ui.speed import numbers
from ui.theme import Theme, numbers_font
from ui.widgets.quiet_button import QuietButton

_COPIED_MS = 1500
_GAP = 4
_BETWEEN = " · "


class CopyButton(QuietButton):
    """Shows for a moment that it did."""

    def __init__(self, theme: Theme, text: str, help: str, parent: QWidget) -> None:
        super().__init__(theme, "copy", text, parent)
        self.setAccessibleName(help)
        self.setToolTip(help)
        self.clicked.connect(self._copied)

    def _copied(self) -> None:
        self.show_icon("check")
        QTimer.singleShot(_COPIED_MS, self, lambda: self.show_icon("copy"))


class MoreButton(QuietButton):
    """A menu of what is done seldom; ``chosen`` carries the name of an action."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(theme, "more", "", parent)
        self.setAccessibleName("More about this message")
        self.setToolTip("More")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setMenu(QMenu(self))

    def offer(self, actions: tuple[tuple[str, str], ...]) -> None:
        """Names of actions with their words."""
        menu = self.menu()
        menu.clear()
        for name, words in actions:
            menu.addAction(words).triggered.connect(lambda _=False, name=name: self.chosen.emit(name))


class MessageFooter(QWidget):
    """``acted`` carries what was asked for: copy, regenerate, continue, edit, speed or delete."""

    acted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._labels: list[QLabel] = []
        self._numbers: list[str] = []
        self.continue_button = QuietButton(theme, "continue", "Continue", self)
        self.continue_button.setToolTip("Let this answer go on from where it ended")
        self.continue_button.clicked.connect(lambda: self.acted.emit("continue"))
        self.copy_button = CopyButton(theme, "Copy", "Copy the answer as Markdown", self)
        self.copy_button.clicked.connect(lambda: self.acted.emit("copy"))
        self.again_button = QuietButton(theme, "again", "Regenerate", self)
        self.again_button.setAccessibleName("Answer again")
        self.again_button.setToolTip("Answer again; this answer is kept as another version")
        self.again_button.clicked.connect(lambda: self.acted.emit("regenerate"))
        self.more_button = MoreButton(theme, self)
        self.more_button.chosen.connect(self.acted)

    def text(self) -> str:
        return _BETWEEN.join(self._numbers)

    def show_message(self, message: Message, last: bool) -> None:
        """``last``: nothing follows it, so that it can go on."""
        for label in self._labels:
            label.hide()
            label.deleteLater()
        self._labels.clear()
        self._numbers.clear()
        self.copy_button.setVisible(bool(message.text))
        self.continue_button.setVisible(last and message.incomplete)
        more: list[tuple[str, str]] = []
        if last and message.can_continue and not message.incomplete:
            more.append(("continue", "Continue this answer"))
        if message.text:
            more.append(("edit", "Edit the answer"))
        if message.stats is not None:
            more.append(("speed", "Show how it was drafted"))
        self.more_button.offer((*more, ("delete", "Delete from here on")))
        if message.stats is None:
            return
        for text, help in numbers.footer(message.stats):
            label = QLabel(text, self)
            label.setFont(numbers_font())
            label.setProperty("role", "small")
            label.setToolTip(help)
            label.setAccessibleName(f"{text}. {help}")
            label.setCursor(Qt.CursorShape.PointingHandCursor)
            label.show()
            self._labels.append(label)
            self._numbers.append(text)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        on_a_number = any(label.geometry().contains(at) for label in self._labels)
        if event.button() == Qt.MouseButton.LeftButton and on_a_number:
            self.acted.emit("speed")

    def resize_text(self) -> None:
        """Take the size of the window's text."""
        for label in self._labels:
            label.setFont(numbers_font())

    def fit(self, width: int) -> int:
        buttons = [
            button
            for button in (self.continue_button, self.copy_button, self.again_button, self.more_button)
            if not button.isHidden()
        ]
        row = self.again_button.sizeHint().height()
        x = y = 0
        for label, text in zip(self._labels, self._numbers, strict=True):
            label.setText(f"{_BETWEEN}{text}" if x else text)
            if x and x + label.sizeHint().width() > width:
                label.setText(text)
                x, y = 0, y + row
            label.setGeometry(x, y, label.sizeHint().width(), row)
            x += label.width()
        needed = sum(button.sizeHint().width() + _GAP for button in buttons) - _GAP
        if x and x + 12 + needed > width:
            x, y = -6, y + row
        elif x:
            x = width - needed + 6  # the last icon ends where the column ends
        else:
            x = -6
        for button in buttons:
            size = button.sizeHint()
            if x > 0 and x + size.width() - 6 > width:
                x, y = -6, y + row
            button.setGeometry(x, y, size.width(), row)
            x += size.width() + _GAP
        height = y + row
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height
