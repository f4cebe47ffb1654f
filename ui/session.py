"""What all pages share: the settings, the engine, the chat, and a signal for each thing that happens."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, Signal

from app import api_key, paths
from app.chats.chat import Chat
from app.chats.message import Message
from app.chats.store import ChatStore
from app.engine_client import WORKER_COMMAND, Event
from app.local_models import models_folder
from app.protocol import Device, Hello, Loaded, Piece
from app.server.background import BackgroundServer, Place
from app.settings import Settings, SettingsFile
from app.speed_history import BackgroundHistory, SpeedHistory
from model_store.offline import set_offline
from model_store.starter import starter_path
from ui.chat.controller import Controller
from ui.chat.view import Problem
from ui.engine_bridge import EngineBridge
from ui.idle_unload import IdleUnload
from ui.models.downloads import Downloads
from ui.models.model_library import ModelLibrary
from ui.models.store_bridge import StoreBridge

if TYPE_CHECKING:  # they take long to import
    from model_store.fit import FreeMemory
    from model_store.library import ModelEntry
    from model_store.readiness import Readiness
    from model_store.store import Event as StoreEvent
    from model_store.store import Store

log = logging.getLogger(__name__)


class Session(QObject):
    """Pages listen to it and ask it; none of them knows another page or the window.

    ``events`` carries the engine's messages as they came, in batches, after the chat has taken them.
    """

    events = Signal(list)
    added = Signal(object)  # Message
    removed = Signal(object)  # Message
    grew = Signal(object, object)  # Message, Sequence[Piece]
    changed = Signal(object)  # Message
    replaced = Signal()  # another conversation is shown
    chats_changed = Signal()  # which chats there are, or their order
    chat_changed = Signal(object)  # Chat: its title, folder, settings, or whether it is being answered
    engine_changed = Signal()
    numbers_changed = Signal()
    noticed = Signal(str)
    offered = Signal(str, str)  # the same with the name of an action that helps, see action_asked
    problem_changed = Signal(object)  # Problem | None
    given_back = Signal(str)  # a message that could not be taken
    settings_changed = Signal(object)  # Settings
    page_asked = Signal(str)  # the name of a page
    server_changed = Signal()  # also from the server's own thread
    action_asked = Signal(str)  # one of app.shortcuts, "settings:<group>", or "save_settings"
    _store_news = Signal()  # comes from the thread that writes

    def __init__(
        self,
        settings_file: SettingsFile,
        settings: Settings,
        engine_command: Sequence[str] = WORKER_COMMAND,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings_file = settings_file
        self.bridge = EngineBridge(self._take, engine_command, self)
        self.server = BackgroundServer(
            self.bridge.client, lambda: self.settings, self._server_says, self.server_changed.emit
        )
        self.bridge.also = self.server.receive
        self.history = BackgroundHistory(SpeedHistory(self.noticed.emit))
        self.store = ChatStore(_chats_path(), self._store_news.emit)
        self.controller = Controller(self.bridge.client, settings, _Relay(self), self.history, self.store)
        self._store_news.connect(self.controller.take_store_news, Qt.ConnectionType.QueuedConnection)
        self.devices: tuple[Device, ...] = ()
        self.library = ModelLibrary(self.models_folder, self.readiness, self)
        self.models = StoreBridge(self._open_store, self)
        self.downloads = Downloads(self.models, lambda: self.settings, self)
        self.downloads.arrived.connect(lambda _: self.library.refresh())
        self.library.listed.connect(
            lambda: self.downloads.go_on(self.models_folder()), Qt.ConnectionType.SingleShotConnection
        )
        self.idle = IdleUnload(self)
        set_offline(settings.offline)

    @property
    def settings(self) -> Settings:
        return self.controller.settings

    def start(self) -> None:
        """Show the last chat, start the engine and load the chosen model, or the starter."""
        self.controller.chats.start()
        self.controller.take_store_news()
        try:
            self.bridge.client.start()
        except OSError as error:
            self._cannot_start(error)
            return
        self.library.refresh()
        path = self.settings.model
        starter = starter_path()
        if path is not None and not Path(path).is_file() and starter is not None:
            gone = f"{Path(path).name} is not there any more; the starter answers instead."
            self.offered.emit(gone, "models")
            path = None
        path = path or (str(starter) if starter is not None else None)
        if path is not None:
            self.controller.choose_model(path)
        self._switch_server(self.settings)

    def close(self) -> None:
        """End the worker and write what is still to be written. For shutdown only."""
        self.controller.close()
        self.server.close()
        self.bridge.close()
        if not self.store.close():
            log.warning("the program ended before all chats were saved: %s", self.store.problem)
        self.history.close()
        self.models.close()
        self.library.close()

    def models_folder(self) -> Path:
        return models_folder(self.settings)

    def apply(self, settings: Settings, *, later: bool = False) -> None:
        """Put new settings in force and keep them. Some need the model to be loaded again: at once, or
        ``later``, before the next answer."""
        moved = settings.models_folder != self.settings.models_folder
        self.controller.apply(settings, later=later)
        set_offline(settings.offline)
        if moved:
            self.models.reopen()
            self.library.refresh()
        self._switch_server(settings)
        self._keep(settings)

    def use_api_key(self) -> None:
        """Another one is kept now, or none."""
        self._switch_server(self.settings)

    def _switch_server(self, settings: Settings) -> None:
        if settings.server:
            place = Place(settings.server_port, settings.server_access == "network", api_key.kept())
            self.server.switch(place)
        else:
            self.server.switch(None)

    def choose_model(self, path: str) -> None:
        """Load a model with its drafter: the one that it is paired with goes before the settings'."""
        from model_store.pairs import paired_drafter

        settings = replace(self.settings, model=path)
        if paired_drafter(Path(path)) is not None:
            settings = replace(settings, draft_model=None)
        self.controller.settings = settings  # the model is being loaded already
        self.controller.choose_model(path)
        self._keep(settings)

    def restart(self, *, plain: bool = False) -> None:
        """Start the engine again after it gave up; ``plain``: with drafting off from now on."""
        if plain:
            self.apply(replace(self.settings, drafting=False))
        try:
            self.controller.restart(plain)
        except OSError as error:
            self._cannot_start(error)

    def _keep(self, settings: Settings) -> None:
        self.settings_changed.emit(settings)
        self.save_settings()

    def save_settings(self) -> None:
        """Write them as they are; that this failed is a notice."""
        try:
            self._settings_file.save(self.settings)
        except OSError as error:
            why = f"The settings could not be saved: {error.strerror or error}."
            self.offered.emit(why, "save_settings")

    def _server_says(self, text: str) -> None:
        """From whatever thread."""
        self.offered.emit(text, "settings:server")

    def _cannot_start(self, error: OSError) -> None:
        self.problem_changed.emit(Problem(f"The engine cannot be started: {error}", "", ("restart",)))

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Hello):
                self.devices = event.devices
            elif isinstance(event, Loaded):
                on_cpu = all(device.kind == "cpu" for device in self.devices)
                self.bridge.sparing = on_cpu and event.model.n_threads >= (os.cpu_count() or 1)
        self.controller.handle(events)
        self.events.emit(events)

    # ---- for any thread

    def free_memory(self) -> FreeMemory:
        """What a model may take once the present one has made room."""
        from app.devices import usable_memory

        report = self.controller.state.report
        return usable_memory(self.devices, report.size_bytes + report.kv_bytes if report is not None else 0)

    def readiness(self, entry: ModelEntry) -> Readiness:
        """How a model will run when it is chosen. Reads headers; raises ModelFileError."""
        from app.loading import loading
        from model_store.bundled import bundled_drafter
        from model_store.pairs import paired_drafter
        from model_store.readiness import readiness

        drafter = paired_drafter(entry.path)
        if drafter is None and self.settings.draft_model is not None:
            drafter = Path(self.settings.draft_model)
        drafter = drafter or bundled_drafter(paths.assets_dir(), entry.path)
        return readiness(entry, drafter, loading(self.settings), self.free_memory())

    def _open_store(self, on_event: Callable[[StoreEvent], None]) -> Store:
        from app.local_store import open_store

        return open_store(self.settings, free=self.free_memory, on_event=on_event)


class _Relay:
    """The controller's view: says everything on as a signal."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def message_added(self, message: Message) -> None:
        self._session.added.emit(message)

    def message_removed(self, message: Message) -> None:
        self._session.removed.emit(message)

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        self._session.grew.emit(message, pieces)

    def message_changed(self, message: Message) -> None:
        self._session.changed.emit(message)

    def conversation_replaced(self) -> None:
        self._session.replaced.emit()

    def chats_changed(self) -> None:
        self._session.chats_changed.emit()

    def chat_changed(self, chat: Chat) -> None:
        self._session.chat_changed.emit(chat)

    def engine_changed(self) -> None:
        self._session.engine_changed.emit()

    def numbers_changed(self) -> None:
        self._session.numbers_changed.emit()

    def notice(self, text: str, action: str = "") -> None:
        if action:
            self._session.offered.emit(text, action)
        else:
            self._session.noticed.emit(text)

    def problem(self, problem: Problem | None) -> None:
        self._session.problem_changed.emit(problem)

    def give_back(self, text: str) -> None:
        self._session.given_back.emit(text)


def _chats_path() -> Path | None:
    try:
        return paths.data_dir() / "chats.db"
    except OSError:
        return None
