"""The window: header, messages, composer and strip around one controller."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QProgressBar,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.engine_client import WORKER_COMMAND, Event
from app.local_models import models_folder
from app.protocol import Piece
from app.settings import Settings, SettingsFile
from app.speed_history import BackgroundHistory, SpeedHistory
from model_store.starter import starter_path
from ui import theme as measures
from ui.chat.composer import Composer
from ui.chat.controller import Controller
from ui.chat.conversation import Message
from ui.chat.empty_chat import EmptyChat
from ui.chat.message_list import MessageList
from ui.chat.view import Problem
from ui.engine_bridge import EngineBridge
from ui.icons import icon
from ui.models.model_picker import ModelLibrary, ModelPicker
from ui.settings.settings_dialog import SettingsDialog
from ui.speed.status_strip import StatusStrip
from ui.theme import Theme
from ui.widgets.cards import NoticeLine, ProblemCard

log = logging.getLogger(__name__)

_MARGIN = 16
_MOST_NOTICES = 3


class MainWindow(QMainWindow):
    """``start`` brings up the engine and the model; the window can be used before they are there."""

    _history_notice = Signal(str)  # comes from the thread that writes

    def __init__(
        self,
        theme: Theme,
        settings_file: SettingsFile,
        settings: Settings,
        engine_command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._settings_file = settings_file
        self._dialog: SettingsDialog | None = None
        self.bridge = EngineBridge(self._events, engine_command, self)
        self._history_notice.connect(self.notice)
        self.history = BackgroundHistory(SpeedHistory(self._history_notice.emit))
        self.controller = Controller(self.bridge.client, settings, self, self.history)
        self.library = ModelLibrary(self._models_folder, self)
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(360, 360))
        self.resize(1040, 760)
        self.setAcceptDrops(True)
        self._build()
        self._shortcuts()
        theme.changed.connect(self._colour)
        self._colour()
        self.engine_changed()
        self.numbers_changed()
        self.composer.setFocus()

    def start(self) -> None:
        """Start the engine and load the chosen model, or the starter."""
        try:
            self.bridge.client.start()
        except OSError as error:
            self.problem(Problem(f"The engine cannot be started: {error}", "", ("restart",)))
            return
        self.library.refresh()
        path = self.controller.settings.model
        starter = starter_path()
        if path is not None and not Path(path).is_file() and starter is not None:
            self.notice(f"{Path(path).name} is not there any more; the starter answers instead.")
            path = None
        path = path or (str(starter) if starter is not None else None)
        if path is not None:
            self.controller.choose_model(path)

    # ---- building

    def _build(self) -> None:
        self.header = QFrame(self)
        self.header.setObjectName("header")
        self.header.setFixedHeight(48)
        self.new_button = self._tool("New chat", "New chat (Ctrl+N)", self.controller.new_chat)
        self.new_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.picker = ModelPicker(self._theme, self.library, self._models_folder, self.header)
        self.picker.chosen.connect(self._model_chosen)
        self.settings_button = self._tool("Settings", "Settings (Ctrl+,)", self.open_settings)
        row = QHBoxLayout(self.header)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self.new_button)
        row.addStretch(1)
        row.addWidget(self.picker)
        row.addWidget(self.settings_button)
        self.load_bar = QProgressBar(self)
        self.load_bar.setTextVisible(False)
        self.load_bar.setRange(0, 1000)
        self.load_bar.setAccessibleName("Loading the model")
        policy = self.load_bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.load_bar.setSizePolicy(policy)
        self.messages = MessageList(self._theme, self)
        self.messages.again.connect(self.controller.regenerate)
        self.messages.acted.connect(self._act)
        self.empty = EmptyChat(self)
        self.empty.chosen.connect(self._prompt_chosen)
        self.pages = QStackedWidget(self)
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.messages)
        self.composer = Composer(self._theme, self)
        self.composer.sent.connect(self._send)
        self.composer.stopped.connect(self.controller.stop)
        self.composer.edit_last.connect(self._edit_last)
        self.composer.editing_left.connect(self.controller.stop_editing)
        self._notices: list[NoticeLine] = []
        self._below = QVBoxLayout()
        self._below.setContentsMargins(_MARGIN, 8, _MARGIN, 12)
        self._below.setSpacing(8)
        self._below.addWidget(self.composer)
        self.strip = StatusStrip(self._theme, self)
        centre = QWidget(self)
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.load_bar)
        column.addWidget(self.pages, 1)
        column.addLayout(self._below)
        column.addWidget(self.strip)
        self.setCentralWidget(centre)

    def _tool(self, name: str, help: str, action: object) -> QToolButton:
        button = QToolButton(self.header)
        button.setText(name)
        button.setToolTip(help)
        button.setAccessibleName(name)
        button.clicked.connect(action)
        return button

    def _shortcuts(self) -> None:
        for keys, action in (
            (QKeySequence(QKeySequence.StandardKey.New), self.controller.new_chat),
            (QKeySequence("Ctrl+,"), self.open_settings),
            (QKeySequence("Esc"), self.controller.stop),
        ):
            shortcut = QAction(self)
            shortcut.setShortcut(keys)
            shortcut.triggered.connect(action)
            self.addAction(shortcut)

    def _colour(self) -> None:
        text = self._theme.tokens.text
        self.new_button.setIcon(icon("new", text))
        self.settings_button.setIcon(icon("settings", text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(_MARGIN, (self.width() - measures.MEASURE) // 2)
        self._below.setContentsMargins(side, 8, side, 12)
        narrow = self.width() < 560
        self.new_button.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonIconOnly if narrow else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        )

    # ---- what a person does

    def _send(self, text: str) -> None:
        if self.controller.send(text):
            self.composer.clear()

    def _prompt_chosen(self, prompt: str) -> None:
        self.composer.set_text(prompt)

    def _edit_last(self) -> None:
        text = self.controller.edit_last()
        if text:
            self.composer.set_text(text)
            self.composer.show_hint("Sending replaces your last message and its answer.")

    def _model_chosen(self, path: str) -> None:
        self.controller.choose_model(path)
        self._apply(replace(self.controller.settings, model=path), apply=False)

    def _models_folder(self) -> Path:
        return models_folder(self.controller.settings)

    def _act(self, action: str) -> None:
        """What was chosen on the card at the end."""
        if action == "restart_plain":
            self._apply(replace(self.controller.settings, drafting=False))
        match action:
            case "retry":
                self.controller.regenerate()
            case "reload":
                self.controller.reload()
            case "restart" | "restart_plain":
                self._restart(plain=action == "restart_plain")
            case "choose":
                self.picker.open_file()
            case _:
                self.problem(None)

    def _restart(self, plain: bool) -> None:
        try:
            self.controller.restart(plain)
        except OSError as error:
            self.problem(Problem(f"The engine cannot be started: {error}", "", ("restart",)))

    def open_settings(self) -> None:
        if self._dialog is None:
            report = self.controller.state.report
            model = report.path if report else self.controller.state.wanted
            self._dialog = SettingsDialog(
                self._theme, self.controller.settings, model, self._models_folder(), _template_names, self
            )
            self._dialog.changed.connect(self._apply)
            self._dialog.finished.connect(self._settings_closed)
            self._dialog.show_report(report)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()

    def _settings_closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    def _apply(self, settings: Settings, apply: bool = True) -> None:
        if apply:
            self.controller.apply(settings)
        else:
            self.controller.settings = settings
        if self._dialog is not None:
            self._dialog.settings = settings  # a change made elsewhere is not undone by it
        self._theme.choose(settings.theme)
        try:
            self._settings_file.save(settings)
        except OSError as error:
            self.notice(f"The settings could not be saved: {error.strerror or error}.")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.messages.keyPressEvent(event)
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.toLocalFile().lower().endswith(".gguf") for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [url.toLocalFile() for url in event.mimeData().urls()]
        model = next((file for file in files if file.lower().endswith(".gguf")), None)
        if model is not None:
            self._model_chosen(model)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._dialog is not None:
            self._dialog.close()
        self.bridge.close()
        self.history.close()
        self.library.close()
        super().closeEvent(event)

    # ---- what the controller asks for

    def _events(self, events: list[Event]) -> None:
        self.controller.handle(events)

    def message_added(self, message: Message) -> None:
        self.messages.add(message)
        self._show_page()

    def message_removed(self, message: Message) -> None:
        self.messages.remove(message)
        self._show_page()

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        self.messages.grow(message, pieces)

    def message_changed(self, message: Message) -> None:
        self.messages.refresh(message)

    def conversation_replaced(self) -> None:
        self.messages.show_messages(self.controller.conversation.messages)
        for notice in list(self._notices):
            self._drop_notice(notice)
        self._show_page()
        self.composer.setFocus()

    def engine_changed(self) -> None:
        state = self.controller.state
        self.picker.show_state(state)
        self.load_bar.setVisible(state.phase == "loading")
        self.load_bar.setValue(round(state.fraction * 1000))
        self.composer.set_busy(self.controller.busy)
        if self._dialog is not None:
            self._dialog.show_report(state.report)
        self.numbers_changed()

    def numbers_changed(self) -> None:
        controller = self.controller
        self.strip.show_numbers(controller.numbers, controller.settings, controller.state, controller.busy)

    def notice(self, text: str) -> None:
        if any(notice.text == text for notice in self._notices):
            return
        while len(self._notices) >= _MOST_NOTICES:
            self._drop_notice(self._notices[0])
        line = NoticeLine(self._theme, text, self)
        line.dismissed.connect(lambda: self._drop_notice(line))
        self._notices.append(line)
        self._below.insertWidget(self._below.count() - 1, line)

    def notices(self) -> tuple[str, ...]:
        return tuple(notice.text for notice in self._notices)

    def _drop_notice(self, line: NoticeLine) -> None:
        if line in self._notices:
            self._notices.remove(line)
            self._below.removeWidget(line)
            line.hide()
            line.deleteLater()

    def problem(self, problem: Problem | None) -> None:
        card = None
        if problem is not None:
            card = ProblemCard(self._theme, problem.what, problem.kept, problem.actions)
        self.messages.set_problem(card)
        self._show_page()

    def give_back(self, text: str) -> None:
        self.composer.give_back(text)

    def _show_page(self) -> None:
        something = bool(self.controller.conversation.messages) or self.messages.problem_card() is not None
        self.pages.setCurrentWidget(self.messages if something else self.empty)


def _template_names() -> list[str]:
    from app.chat_template import builtin_names  # brings jinja2, which only the dialog needs

    return builtin_names()
