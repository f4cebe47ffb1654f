"""The window: a rail and the pages that it leads to, each made when it is first seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.engine_client import WORKER_COMMAND
from app.settings import Settings, SettingsFile
from ui.chat.chat_page import ChatPage
from ui.rail import Rail
from ui.session import Session
from ui.shell.opening import Opening
from ui.shell.page import Grouped, Searchable
from ui.shell.regions import mark_region
from ui.shell.shell import Shell
from ui.shell.window_actions import WindowActions
from ui.shell.window_memory import WindowMemory
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.notices import Notices

CHATS, MODELS, SPEED, SETTINGS = "Chats", "Models", "Speed", "Settings"
# The page and the action that shows it.
_ACTIONS = {CHATS: "chats", MODELS: "models", SPEED: "speed", SETTINGS: "settings"}
# What the chat page does itself.
_OF_THE_CHAT = (
    "rename_chat",
    "pin_chat",
    "duplicate_chat",
    "delete_chat",
    "chat_options",
    "drafted_text",
    "regenerate",
    "copy_answer",
)
_NOTCH = 120  # of a mouse's wheel; touchpads send less at a time
_ZOOM_STEP, _ZOOM_LEAST, _ZOOM_MOST = 10, 75, 200


class MainWindow(QMainWindow):
    """``start`` brings up the engine, the model and the last chat; the window can be used before they are
    there. ``seen`` is sent once, when it was painted for the first time."""

    seen = Signal()

    def __init__(
        self,
        theme: Theme,
        settings_file: SettingsFile,
        settings: Settings,
        engine_command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._ending = False
        self._painted = False
        self._turned = 0  # of the wheel, with Ctrl held
        self.session = Session(settings_file, settings, engine_command, self)
        self.session.settings_changed.connect(self._settings_changed)
        self.session.page_asked.connect(self.show_page)
        self.session.action_asked.connect(self._act)
        self.session.noticed.connect(self._notice)
        self.session.offered.connect(self._notice)
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(360, 360))
        self.setAcceptDrops(True)
        self.rail = Rail(theme, self)
        self.rail.chosen.connect(self.show_page)
        mark_region(self.rail, "Pages")
        self.stack = QStackedWidget(self)
        self.notices = Notices(theme, self)
        self.notices.setContentsMargins(16, 8, 16, 8)
        self.notices.chosen.connect(self._act)
        mark_region(self.notices, "Notices")
        self._makers: dict[str, Callable[[], QWidget]] = {}
        self._made: dict[str, QWidget] = {}
        self._memory = WindowMemory(self)
        self._memory.restore()
        self._add_pages()
        centre = QWidget(self)
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        beside = nested(row, QVBoxLayout(), 1)
        beside.setSpacing(0)
        beside.addWidget(self.stack, 1)
        beside.addWidget(self.notices)
        self.setCentralWidget(centre)
        self.actions_ = WindowActions(self, self._handlers())
        self.shell = Shell(
            theme, self.session, self, self.actions_.entries, self.open_chat, self.session.choose_model
        )
        self.shell.tray.new_chat.connect(self._new_chat_in_front)
        self.shell.tray.quit_asked.connect(self.quit)
        self._use_keys(settings)
        self.show_page(CHATS)
        if self._memory.page in self._makers and self._memory.page != CHATS:
            self.show_page(self._memory.page)

    def start(self) -> None:
        """Start the engine and load the chosen model, or the starter."""
        self.session.start()

    def quit(self) -> None:
        """Close for good, also where closing would leave it in the tray."""
        self._ending = True
        self.close()

    def end_with_session(self) -> None:
        """The desktop's session ends: closing is meant for good now."""
        self._ending = True

    # ---- pages

    def _add_pages(self) -> None:
        self._add_page(CHATS, "chats", self._chat_page)
        self._add_page(MODELS, "models", self._models_page)
        self._add_page(SPEED, "speed", self._speed_page)
        self._add_page(SETTINGS, "settings", self._settings_page, below=True)

    def _add_page(self, name: str, icon: str, make: Callable[[], QWidget], *, below: bool = False) -> None:
        self.rail.add(name, icon, below=below)
        self._makers[name] = make

    def _chat_page(self) -> QWidget:
        return ChatPage(self._theme, self.session, self)

    def _models_page(self) -> QWidget:
        from ui.models.models_page import ModelsPage

        return ModelsPage(self._theme, self.session, self)

    def _speed_page(self) -> QWidget:
        from ui.speed.speed_page import SpeedPage

        return SpeedPage(self._theme, self.session, self)

    def _settings_page(self) -> QWidget:
        from ui.settings.settings_page import SettingsPage

        return SettingsPage(self._theme, self.session, self)

    def page(self, name: str) -> QWidget:
        """The page, made if it was never seen."""
        page = self._made.get(name)
        if page is None:
            page = self._made[name] = self._makers[name]()
            if name != CHATS:  # that one is in parts
                mark_region(page, name)
            self.stack.addWidget(page)
            self._memory.restore_splitters(page)
        return page

    def show_page(self, name: str) -> None:
        page = self.page(name)
        self.stack.setCurrentWidget(page)
        self.rail.show_page(name)
        if page is self._made.get(CHATS):
            for line in self.notices.lines():
                self.chat.notice(line.text, line.action)
            self.notices.clear()
            self.chat.composer.setFocus()

    @property
    def shown(self) -> str:
        """The name of the page that is shown."""
        return next(name for name, page in self._made.items() if page is self.stack.currentWidget())

    @property
    def chat(self) -> ChatPage:
        page = self.page(CHATS)
        assert isinstance(page, ChatPage)
        return page

    # ---- what a person does

    def _handlers(self) -> dict[str, Callable[[], object]]:
        controller = self.session.controller
        return {
            "palette": self._palette,
            "new_chat": self._new_chat,
            "search_chats": self._search_chats,
            "sidebar": lambda: self._on_chat(self.chat.toggle_sidebar),
            "speed_panel": lambda: self._on_chat(self.chat.speed.toggle),
            **{name: partial(self._named, name) for name in _OF_THE_CHAT},
            "import_chats": lambda: self.chat.files.ask_import(),
            "export_chats": lambda: self.chat.files.ask_export_all("json"),
            "export_chats_markdown": lambda: self.chat.files.ask_export_all("markdown"),
            "stop": self._escape,
            "chats": lambda: self.show_page(CHATS),
            "models": lambda: self.show_page(MODELS),
            "speed": lambda: self.show_page(SPEED),
            "settings": lambda: self.show_page(SETTINGS),
            "find": self._find,
            "find_next": lambda: self._on_chat(self.chat.finding.next),
            "find_previous": lambda: self._on_chat(self.chat.finding.previous),
            "zoom_in": lambda: self._zoom(self.session.settings.zoom + _ZOOM_STEP),
            "zoom_out": lambda: self._zoom(self.session.settings.zoom - _ZOOM_STEP),
            "zoom_reset": lambda: self._zoom(100),
            "next_region": lambda: self.shell.regions.move(),
            "previous_region": lambda: self.shell.regions.move(backwards=True),
            "reload_model": controller.reload,
            "unload_model": controller.unload,
            "logs": lambda: self.shell.show_logs(),
            "report": lambda: self.shell.copy_report(),
            "about": lambda: self.shell.show_about(),
            "quit": self.quit,
        }

    def _act(self, action: str) -> None:
        """What a page or a notice asks for by name, see Session.action_asked."""
        name, _, group = action.partition(":")
        if action == "save_settings":
            self.session.save_settings()
            return
        self.actions_[name].trigger()
        if group:
            page = self.stack.currentWidget()
            if isinstance(page, Grouped):
                page.go_to(group)

    def _notice(self, text: str, action: str = "") -> None:
        """In the chat, where it has its place, or below the page that is shown instead."""
        if self.stack.currentWidget() is self._made.get(CHATS):
            self.chat.notice(text, action)
        else:
            self.notices.add(text, action)

    def tell_of_failure(self, text: str) -> None:
        """An error that nobody caught."""
        self._notice(text, "report")

    def _settings_changed(self, settings: Settings) -> None:
        self._theme.apply(settings)
        self._use_keys(settings)

    def _use_keys(self, settings: Settings) -> None:
        self.actions_.use_keys(settings.shortcuts)
        for page, action in _ACTIONS.items():
            keys = self.actions_[action].shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            self.rail.set_help(page, f"{page} ({keys})" if keys else page)

    def _palette(self) -> None:
        palette = self.shell.palette
        if palette.isVisible():
            palette.close_palette()
        else:
            palette.open()

    def _new_chat(self) -> None:
        self.show_page(CHATS)
        self.session.controller.new_chat()

    def _new_chat_in_front(self) -> None:
        self.shell.raise_window()
        self._new_chat()

    def _search_chats(self) -> None:
        self._on_chat(self.chat.search_chats)

    def _named(self, name: str) -> None:
        self._on_chat(self.chat.named_actions[name])

    def _on_chat(self, do: Callable[[], object]) -> None:
        self.show_page(CHATS)
        do()

    def _find(self) -> None:
        page = self.stack.currentWidget()
        if page is self.chat:
            self.chat.finding.open()
        elif isinstance(page, Searchable):
            page.start_search()

    def _escape(self) -> None:
        if self.stack.currentWidget() is self.chat:
            self.session.controller.stop()
        else:
            self.show_page(CHATS)

    def _zoom(self, percent: int) -> None:
        zoom = min(_ZOOM_MOST, max(_ZOOM_LEAST, percent))
        if zoom != self.session.settings.zoom:
            self.session.apply(replace(self.session.settings, zoom=zoom))

    def open_chat(self, chat: int) -> None:
        """Show a chat, if it is still there."""
        self.show_page(CHATS)
        if not self.session.controller.chats.open(chat):
            self.session.noticed.emit("That chat is not there any more.")

    def open(self, opening: Opening) -> None:
        """What a start of the program was asked to open."""
        if opening.model is not None:
            self.show_page(CHATS)
            self.session.choose_model(opening.model)
        elif opening.chat is not None:
            self.open_chat(opening.chat)

    def show_and_open(self, opening: Opening) -> None:
        """A later start of the program: this window comes to the front instead of another one."""
        if opening.token is not None:
            os.environ["XDG_ACTIVATION_TOKEN"] = opening.token  # Qt takes it from there, once
        self.shell.raise_window()
        self.open(opening)

    # ---- the window itself

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            # With the next turn of the loop what is painted has been handed over.
            QTimer.singleShot(0, self, self.seen.emit)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
            return
        self._turned += event.angleDelta().y()
        notches = int(self._turned / _NOTCH)
        if notches:
            self._turned -= notches * _NOTCH
            self._zoom(self.session.settings.zoom + notches * _ZOOM_STEP)
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.toLocalFile().lower().endswith(".gguf") for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [url.toLocalFile() for url in event.mimeData().urls()]
        model = next((file for file in files if file.lower().endswith(".gguf")), None)
        if model is not None:
            event.acceptProposedAction()
            self.session.choose_model(model)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._memory.keep(self.shown)
        if not self._ending and self.shell.hide_window():
            event.ignore()
            return
        self.hide()  # a request to the Hub may keep what follows waiting for some seconds
        self.shell.close()
        for page in self._made.values():
            page.close()
        self.session.close()
        super().closeEvent(event)
