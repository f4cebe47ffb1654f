"""The key that programs send to the local server."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from app import api_key
from app.declaration import Declared
from ui.settings.secret_row import SecretRow
from ui.theme import Theme

_WORDS = Declared(
    "api_key",
    "API key",
    "What programs must send to be answered; without one those on this computer need none. It is kept in "
    "a file that you alone can read, and is in no export and no log.",
    group="server",
)


class ApiKeyRow(SecretRow):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(theme, _WORDS, api_key, "sk-…", "password bearer authorization token", parent)

    def show_state(self, problem: str = "") -> None:
        super().show_state(problem)
        self.copy.setEnabled(api_key.kept() is not None)

    def extra_buttons(self, parent: QWidget) -> list[QPushButton]:
        self.make = QPushButton("Make one", parent)
        self.make.setAccessibleName("Make an API key")
        self.make.setToolTip("Keep a new key that nobody can guess, in the place of the one in use.")
        self.make.clicked.connect(lambda: self.keep(api_key.new()))
        self.copy = QPushButton("Copy", parent)
        self.copy.setAccessibleName("Copy the API key")
        self.copy.setToolTip("Put the key in use into the clipboard, for a program that asks for it.")
        self.copy.clicked.connect(self._copy)
        return [self.make, self.copy]

    def _copy(self) -> None:
        key = api_key.kept()
        if key is not None:
            QGuiApplication.clipboard().setText(key)
        self.show_state()
