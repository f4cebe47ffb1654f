"""What all pages share: the settings, the engine, the chat, and a signal for each thing that happens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from app.engine_client import WORKER_COMMAND, Event
from app.local_models import models_folder
from app.protocol import Piece
from app.settings import Settings, SettingsFile
from app.speed_history import BackgroundHistory, SpeedHistory
from model_store.starter import starter_path
from ui.chat.controller import Controller
from ui.chat.conversation import Message
from ui.chat.view import Problem
from ui.engine_bridge import EngineBridge
from ui.models.model_picker import ModelLibrary


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
    engine_changed = Signal()
    numbers_changed = Signal()
    noticed = Signal(str)
    problem_changed = Signal(object)  # Problem | None
    given_back = Signal(str)  # a message that could not be taken
    settings_changed = Signal(object)  # Settings

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
        self.history = BackgroundHistory(SpeedHistory(self.noticed.emit))
        self.controller = Controller(self.bridge.client, settings, _Relay(self), self.history)
        self.library = ModelLibrary(self.models_folder, self)

    @property
    def settings(self) -> Settings:
        return self.controller.settings

    def start(self) -> None:
        """Start the engine and load the chosen model, or the starter."""
        try:
            self.bridge.client.start()
        except OSError as error:
            self._cannot_start(error)
            return
        self.library.refresh()
        path = self.settings.model
        starter = starter_path()
        if path is not None and not Path(path).is_file() and starter is not None:
            self.noticed.emit(f"{Path(path).name} is not there any more; the starter answers instead.")
            path = None
        path = path or (str(starter) if starter is not None else None)
        if path is not None:
            self.controller.choose_model(path)

    def close(self) -> None:
        """End the worker and write what is still to be written. For shutdown only."""
        self.bridge.close()
        self.history.close()
        self.library.close()

    def models_folder(self) -> Path:
        return models_folder(self.settings)

    def apply(self, settings: Settings) -> None:
        """Put new settings in force and keep them; some need the model to be loaded again."""
        self.controller.apply(settings)
        self._keep(settings)

    def choose_model(self, path: str) -> None:
        self.controller.choose_model(path)
        settings = replace(self.settings, model=path)
        self.controller.settings = settings  # the model is being loaded already
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
        try:
            self._settings_file.save(settings)
        except OSError as error:
            self.noticed.emit(f"The settings could not be saved: {error.strerror or error}.")

    def _cannot_start(self, error: OSError) -> None:
        self.problem_changed.emit(Problem(f"The engine cannot be started: {error}", "", ("restart",)))

    def _take(self, events: list[Event]) -> None:
        self.controller.handle(events)
        self.events.emit(events)


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

    def engine_changed(self) -> None:
        self._session.engine_changed.emit()

    def numbers_changed(self) -> None:
        self._session.numbers_changed.emit()

    def notice(self, text: str) -> None:
        self._session.noticed.emit(text)

    def problem(self, problem: Problem | None) -> None:
        self._session.problem_changed.emit(problem)

    def give_back(self, text: str) -> None:
        self._session.given_back.emit(text)
