"""The model in memory: what there is of it, and the buttons that load and unload it."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.declaration import Declared
from model_store.fit import shown_bytes
from ui.bidi import visible
from ui.engine_state import EngineState
from ui.session import Session
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.speed.numbers import percent
from ui.theme import Theme

_WORDS = Declared("memory", "Model in memory", "The model that answers.", group="engine")


class EngineRow(SettingRow):
    def __init__(self, theme: Theme, session: Session, parent: QWidget) -> None:
        super().__init__(theme, _WORDS, self._buttons, keywords="load unload memory", parent=parent)
        self._controller = session.controller
        self.load.clicked.connect(self._controller.reload)
        self.unload.clicked.connect(self._controller.unload)
        session.engine_changed.connect(self.show_state)
        self.show_state()

    def show_state(self) -> None:
        controller = self._controller
        state, writing = controller.state, bool(controller.busy_chats)
        loading, ready = state.phase == "loading", state.phase == "ready"
        text = _described(state)
        if text != self.explanation.text():
            self.explain(text)
        self.load.setText("Load again" if ready else "Load")
        known = state.wanted is not None or controller.settings.model is not None
        self.load.setEnabled(known and not loading and state.phase != "lost" and not controller.reload_is_due)
        self.unload.setText("Stop loading" if loading else "Unload")
        self.unload.setEnabled((ready or loading) and not writing)
        why = "Not while an answer is being written." if writing else "The next message loads it again."
        self.unload.setToolTip(f"Take the model out of memory. {why}")

    def _buttons(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        self.load, self.unload = QPushButton(widget), QPushButton(widget)
        self.load.setToolTip("Put the model into memory, with the settings as they are now.")
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.unload)
        row.addWidget(self.load)
        return Editor(widget, lambda _: None)


def _described(state: EngineState) -> str:
    report = state.report
    if report is not None:
        memory = f"{shown_bytes(report.size_bytes)} and {shown_bytes(report.kv_bytes)} of KV cache"
        threads = "1 thread" if report.n_threads == 1 else f"{report.n_threads} threads"
        name = visible(report.name)
        return f"{name}: {memory}, a context of {report.n_ctx:,} tokens, {threads}."
    match state.phase:
        case "loading":
            return f"{state.label}: {percent(state.fraction)}."
        case "failed":
            return f"{state.label}. {visible(state.problem or '')}".rstrip()
        case "lost":
            return "The engine has stopped; the chat offers to start it again."
        case _ if state.wanted is not None:
            return f"{state.label}. The next message loads it."
        case _:
            return "No model is chosen yet; choose one above the chat, or on the Models page."
