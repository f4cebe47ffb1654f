"""The bar over the messages in which is typed what is to be found in them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QWidget

from ui.icons import icon
from ui.theme import SPACE_TIGHT, Theme, numbers_font
from ui.widgets.quiet_button import QuietButton

_WIDEST = ("8888 of 8888", "Nothing found", "Looking…")


class FindBar(QFrame):
    """``typed`` carries the text; ``stepped`` 1 for the next match and -1 for the one before."""

    typed = Signal(str)
    stepped = Signal(int)
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("find_bar")
        self.field = _Field(self)
        self.field.setPlaceholderText("Find in this chat")
        self.field.setAccessibleName("Find in this chat")
        self.field.textChanged.connect(self.typed)
        self.field.stepped.connect(self.stepped)
        self._glass = self.field.addAction(
            icon("search", theme.tokens.muted), QLineEdit.ActionPosition.LeadingPosition
        )
        self.count = QLabel(self)
        self.count.setProperty("role", "muted")
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.count.setAccessibleName("Matches")
        self.count.setToolTip("Which match is shown, and how many there are in this chat")
        self.previous = self._button("up", "Match before (Shift+Enter)", -1)
        self.next = self._button("down", "Next match (Enter)", 1)
        self.close_button = QuietButton(theme, "close", "", self)
        self.close_button.setAccessibleName("Close the search")
        self.close_button.setToolTip("Close the search (Esc)")
        self.close_button.clicked.connect(self.closed)
        self._row = QHBoxLayout(self)
        self._row.setSpacing(SPACE_TIGHT)
        for widget in (self.field, self.count, self.previous, self.next, self.close_button):
            self._row.addWidget(widget, 1 if widget is self.field else 0)
        theme.changed.connect(self._recolour)
        self._recolour()

    def fit(self, side: int) -> None:
        """Leave ``side`` pixels at the left and right, as the messages do."""
        self._row.setContentsMargins(side, 2 * SPACE_TIGHT, side, 2 * SPACE_TIGHT)

    def show_count(self, words: str, *, found: bool) -> None:
        self.count.setText(words)
        self.field.setAccessibleDescription(words)
        for button in (self.previous, self.next):
            button.setEnabled(found)

    def _button(self, name: str, words: str, step: int) -> QuietButton:
        button = QuietButton(self._theme, name, "", self)
        button.setAccessibleName(words.partition(" (")[0])
        button.setToolTip(words)
        button.clicked.connect(lambda: self.stepped.emit(step))
        return button

    def _recolour(self) -> None:
        self._glass.setIcon(icon("search", self._theme.tokens.muted))
        font = numbers_font()
        self.count.setFont(font)
        metrics = QFontMetrics(font)
        # So wide that nothing moves while it counts.
        self.count.setMinimumWidth(max(metrics.horizontalAdvance(words) for words in _WIDEST) + SPACE_TIGHT)


class _Field(QLineEdit):
    """Enter goes to the next match, Shift+Enter to the one before."""

    stepped = Signal(int)

    def event(self, event: QEvent) -> bool:
        # Else a key of the window's would have it.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _is_enter(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_enter(event):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        else:
            super().keyPressEvent(event)


def _is_enter(event: QKeyEvent) -> bool:
    return event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
