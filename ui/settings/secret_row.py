"""A word that gives access: typed in, replaced, forgotten; never shown."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.declaration import Declared
from app.secret_file import SecretProblem
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme
from ui.widgets.layouts import nested


class KeptSecret(Protocol):
    """Where it is kept; app.hub_token and app.api_key are such places."""

    def described(self) -> str | None: ...

    def save(self, secret: str, /) -> None: ...

    def forget(self) -> None: ...


class SecretRow(SettingRow):
    """``changed``: it is another one now, or none."""

    changed = Signal()

    def __init__(
        self, theme: Theme, words: Declared, secret: KeptSecret, example: str, keywords: str, parent: QWidget
    ) -> None:
        """``example`` is shown in the empty field."""
        super().__init__(theme, words, self._controls, keywords=keywords, parent=parent)
        self._secret = secret
        self._example = example
        self.field.returnPressed.connect(self._save)
        self.save.clicked.connect(self._save)
        self.forget.clicked.connect(self._forget)
        self.field.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.show_state()

    def show_state(self, problem: str = "") -> None:
        """What is kept now; it may have been changed by another program."""
        kept = self._secret.described()
        help = self.words.help
        self.explain(f"{help} In use: {kept}." if kept else f"{help} There is none yet.")
        self.field.setPlaceholderText("Another one" if kept else self._example)
        self.forget.setVisible(kept is not None and self.can_forget())
        self.save.setEnabled(bool(self.field.text().strip()))
        self.show_note(problem)

    def can_forget(self) -> bool:
        """What is kept is kept here."""
        return True

    def extra_buttons(self, parent: QWidget) -> list[QPushButton]:
        """Further ones, below the field."""
        return []

    def keep(self, secret: str) -> bool:
        """Whether it could be kept; else the row says why not."""
        try:
            self._secret.save(secret)
        except SecretProblem as problem:
            self.show_state(str(problem))
            return False
        self.field.clear()
        self.show_state()
        self.changed.emit()
        return True

    # ---- inside

    def _controls(self, parent: QWidget) -> Editor:
        title = self.words.title
        widget = QWidget(parent)
        self.field = QLineEdit(widget)
        self.field.setProperty("look", "search")
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setMaxLength(512)
        self.field.setAccessibleName(title)
        self.field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.save, self.forget = QPushButton("Save", widget), QPushButton("Forget", widget)
        self.save.setAccessibleName(f"Save the {title}")
        self.save.setToolTip("Keep this one and use it from now on.")
        self.forget.setAccessibleName(f"Forget the {title}")
        self.forget.setToolTip("Delete it from this machine.")
        widget.setFocusProxy(self.field)
        lines = QVBoxLayout(widget)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        first = nested(lines, QHBoxLayout())
        first.setSpacing(4)
        first.addWidget(self.field, 1)
        first.addWidget(self.save)
        extra = self.extra_buttons(widget)
        if not extra:
            first.addWidget(self.forget)
        else:
            second = nested(lines, QHBoxLayout())
            second.setSpacing(4)
            for button in (*extra, self.forget):
                second.addWidget(button)
            second.addStretch(1)
        return Editor(widget, lambda _: None, below=True)

    def _save(self) -> None:
        self.keep(self.field.text())

    def _forget(self) -> None:
        try:
            self._secret.forget()
        except SecretProblem as problem:
            self.show_state(str(problem))
            return
        self.show_state()
        self.changed.emit()
