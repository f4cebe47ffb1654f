"""A field to search in: Esc empties it, and only then means what it means elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from ui.icons import icon
from ui.theme import Theme


class SearchField(QLineEdit):
    def __init__(self, theme: Theme, prompt: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setProperty("look", "search")
        self.setPlaceholderText(prompt)
        self.setAccessibleName(prompt)
        self.setClearButtonEnabled(True)
        self._glass = self.addAction(
            icon("search", theme.tokens.muted), QLineEdit.ActionPosition.LeadingPosition
        )
        theme.changed.connect(self._colour)

    def event(self, event: QEvent) -> bool:
        # Else a shortcut of the window would have it.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._is_for_us(event)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._is_for_us(event):
            self.clear()
        else:
            super().keyPressEvent(event)

    def _is_for_us(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and bool(self.text())

    def _colour(self) -> None:
        self._glass.setIcon(icon("search", self._theme.tokens.muted))
