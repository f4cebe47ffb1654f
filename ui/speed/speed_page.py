"""The speed page: what drafting brought, by model pair and kind of text."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.session import Session
from ui.theme import Theme


class SpeedPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 16, 24, 16)
        title = QLabel("Speed", self)
        title.setProperty("role", "title")
        column.addWidget(title)
        column.addStretch(1)
