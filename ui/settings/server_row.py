"""What the local server does now, and what another program is to be told about it."""

from __future__ import annotations

import json
import shlex

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QLineEdit, QPushButton, QSizePolicy, QWidget

from app.api_key import kept
from app.declaration import Declared
from app.server.background import ServerState
from ui.bidi import visible
from ui.session import Session
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme

_WORDS = Declared("server_state", "Server", "Whether other programs are answered.", group="server")
_KEYWORDS = "address url base curl openai editor agent status running requests answered copy"
_NO_MODEL = "MODEL"


class ServerRow(SettingRow):
    """Its state, with the address and a line for a terminal that can be copied."""

    def __init__(self, theme: Theme, session: Session, parent: QWidget) -> None:
        super().__init__(theme, _WORDS, self._controls, keywords=_KEYWORDS, parent=parent)
        self._session = session
        session.server_changed.connect(self.show_state)
        session.settings_changed.connect(lambda _: self.show_state())
        session.engine_changed.connect(self.show_state)
        self.show_state()

    def show_state(self) -> None:
        state = self._session.server.state
        text = described(state)
        if text != self.explanation.text():
            self.explain(text)
        url = base_url(self._session.settings.server_port)
        loaded = self._session.controller.state
        path = loaded.report.name if loaded.report is not None else _NO_MODEL
        self._show(self.address, url)
        self._show(self.line, curl_line(url, path, with_key=kept() is not None))

    # ---- inside

    @staticmethod
    def _show(field: QLineEdit, text: str) -> None:
        if field.text() != text:
            field.setText(text)
            field.setCursorPosition(0)

    def _controls(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        grid = QGridLayout(widget)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        self.address, self.copy_address = _copied(
            widget, "Base URL", "What a program that knows OpenAI's API is to be given as its address."
        )
        self.line, self.copy_line = _copied(
            widget, "Line for a terminal", "Asks the server for an answer, to try it out."
        )
        for place, (field, button) in enumerate(
            ((self.address, self.copy_address), (self.line, self.copy_line))
        ):
            grid.addWidget(field, place, 0)
            grid.addWidget(button, place, 1)
        widget.setFocusProxy(self.copy_address)
        return Editor(widget, lambda _: None, below=True)


def _copied(parent: QWidget, name: str, help: str) -> tuple[QLineEdit, QPushButton]:
    """A field to read from, and the button that copies what is in it."""
    field = QLineEdit(parent)
    field.setReadOnly(True)
    field.setProperty("look", "search")
    field.setAccessibleName(name)
    field.setAccessibleDescription(help)
    field.setToolTip(help)
    field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    button = QPushButton("Copy", parent)
    button.setAccessibleName(f"Copy: {name}")
    button.setToolTip(f"{name}: put it into the clipboard.")
    button.clicked.connect(lambda: QGuiApplication.clipboard().setText(field.text()))
    return field, button


def described(state: ServerState) -> str:
    match state.phase:
        case "running":
            assert state.place is not None
            whom = "the network" if state.place.network else "this computer"
            count = "1 request" if state.answered == 1 else f"{state.answered:,} requests"
            return f"Running at {base_url(state.place.port)} for {whom}; {count} answered."
        case "starting":
            return "Starting."
        case "failed":
            return f"Not running. {visible(state.problem)}"
        case _:
            return "Off: no other program is answered."


def base_url(port: int) -> str:
    return f"http://localhost:{port}/v1"


def curl_line(url: str, model: str, *, with_key: bool) -> str:
    """A POSIX shell's. The key itself is not in it: lines are shown and kept."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    key = ' -H "Authorization: Bearer $SLIPSTREAM_API_KEY"' if with_key else ""
    said = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl {url}/chat/completions{key} -H 'Content-Type: application/json' -d {said}"
