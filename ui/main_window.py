"""The window: a rail and the pages that it leads to, each made when it is first seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QWidget

from app.engine_client import WORKER_COMMAND
from app.settings import Settings, SettingsFile
from ui.chat.chat_page import ChatPage
from ui.rail import Rail
from ui.session import Session
from ui.theme import Theme

CHATS, MODELS, SPEED, SETTINGS = "Chats", "Models", "Speed", "Settings"


class MainWindow(QMainWindow):
    """``start`` brings up the engine and the model; the window can be used before they are there."""

    def __init__(
        self,
        theme: Theme,
        settings_file: SettingsFile,
        settings: Settings,
        engine_command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        super().__init__()
        self._theme = theme
        self.session = Session(settings_file, settings, engine_command, self)
        self.session.settings_changed.connect(theme.apply)
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(QSize(360, 360))
        self.resize(1040, 760)
        self.setAcceptDrops(True)
        self.rail = Rail(theme, self)
        self.rail.chosen.connect(self.show_page)
        self.stack = QStackedWidget(self)
        self._makers: dict[str, Callable[[], QWidget]] = {}
        self._made: dict[str, QWidget] = {}
        self._add_pages()
        centre = QWidget(self)
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addWidget(self.stack, 1)
        self.setCentralWidget(centre)
        self._shortcuts()
        self.show_page(CHATS)

    def start(self) -> None:
        """Start the engine and load the chosen model, or the starter."""
        self.session.start()

    # ---- pages

    def _add_pages(self) -> None:
        self._add_page(CHATS, "chats", "Chats", self._chat_page)
        self._add_page(MODELS, "models", "Models", self._models_page)
        self._add_page(SPEED, "speed", "Speed", self._speed_page)
        self._add_page(SETTINGS, "settings", "Settings (Ctrl+,)", self._settings_page, below=True)

    def _add_page(
        self, name: str, icon: str, help: str, make: Callable[[], QWidget], *, below: bool = False
    ) -> None:
        self.rail.add(name, icon, help, below=below)
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
            self.stack.addWidget(page)
        return page

    def show_page(self, name: str) -> None:
        page = self.page(name)
        self.stack.setCurrentWidget(page)
        self.rail.show_page(name)
        if page is self._made.get(CHATS):
            self.chat.composer.setFocus()

    @property
    def chat(self) -> ChatPage:
        page = self.page(CHATS)
        assert isinstance(page, ChatPage)
        return page

    # ---- what a person does

    def _shortcuts(self) -> None:
        for keys, action in (
            (QKeySequence(QKeySequence.StandardKey.New), self._new_chat),
            (QKeySequence("Ctrl+,"), lambda: self.show_page(SETTINGS)),
            (QKeySequence("Esc"), self._escape),
        ):
            shortcut = QAction(self)
            shortcut.setShortcut(keys)
            shortcut.triggered.connect(action)
            self.addAction(shortcut)

    def _new_chat(self) -> None:
        self.show_page(CHATS)
        self.session.controller.new_chat()

    def _escape(self) -> None:
        if self.stack.currentWidget() is self.chat:
            self.session.controller.stop()
        else:
            self.show_page(CHATS)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.toLocalFile().lower().endswith(".gguf") for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [url.toLocalFile() for url in event.mimeData().urls()]
        model = next((file for file in files if file.lower().endswith(".gguf")), None)
        if model is not None:
            self.session.choose_model(model)

    def closeEvent(self, event: QCloseEvent) -> None:
        for page in self._made.values():
            page.close()
        self.session.close()
        super().closeEvent(event)
