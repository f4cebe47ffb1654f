"""The Hub's access token: typed in, replaced, forgotten; never shown."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QSizePolicy, QWidget

from app import hub_token
from app.declaration import Declared
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme

_WORDS = Declared(
    "hub_token",
    "Hub token",
    "For models that ask for an account. Make one that may read at huggingface.co/settings/tokens. It is "
    "kept where Hugging Face's own tools keep it, readable by you alone, and is in no export and no log.",
    group="storage",
)


class HubTokenRow(SettingRow):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(theme, _WORDS, self._controls, keywords="access key login gated", parent=parent)
        self.field.returnPressed.connect(self._save)
        self.save.clicked.connect(self._save)
        self.forget.clicked.connect(self._forget)
        self.field.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.show_state()

    def show_state(self, problem: str = "") -> None:
        """What is kept now; it may have been changed by another program."""
        kept = hub_token.described()
        self.explain(f"{_WORDS.help} In use: {kept}." if kept else f"{_WORDS.help} There is none yet.")
        self.field.setPlaceholderText("Another token" if kept else "hf_…")
        self.forget.setVisible(kept is not None and hub_token.from_environment() is None)
        self.save.setEnabled(bool(self.field.text().strip()))
        self.show_note(problem)

    def _controls(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        self.field = QLineEdit(widget)
        self.field.setProperty("look", "search")
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setMaxLength(512)
        self.field.setAccessibleName("Hub token")
        self.field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.save, self.forget = QPushButton("Save", widget), QPushButton("Forget", widget)
        self.save.setAccessibleName("Save the Hub token")
        self.save.setToolTip("Keep this token and use it from now on.")
        self.forget.setAccessibleName("Forget the Hub token")
        self.forget.setToolTip("Delete the token from this machine.")
        widget.setFocusProxy(self.field)
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.field, 1)
        row.addWidget(self.save)
        row.addWidget(self.forget)
        return Editor(widget, lambda _: None, below=True)

    def _save(self) -> None:
        try:
            hub_token.save(self.field.text())
        except hub_token.TokenProblem as problem:
            self.show_state(str(problem))
            return
        self.field.clear()
        self.show_state()

    def _forget(self) -> None:
        try:
            hub_token.forget()
        except hub_token.TokenProblem as problem:
            self.show_state(str(problem))
            return
        self.show_state()
