"""The models on this machine, as the window knows them: read from disk on a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.local_models import local_models
from model_store.check import ModelFileError
from model_store.library import ModelEntry
from model_store.starter import starter_model

if TYPE_CHECKING:
    from model_store.readiness import Readiness

MOST_DESCRIBED = 30  # models of a menu


class ModelLibrary(QObject):
    """``readiness`` says how a model will run; it is asked on the thread."""

    changed = Signal()
    listed = Signal()  # everything was read, whether or not anything changed
    _listed = Signal(list)
    _done = Signal()
    _described = Signal(object)  # a dict whose keys are no strings

    def __init__(
        self,
        folder: Callable[[], Path],
        readiness: Callable[[ModelEntry], Readiness] | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        self._readiness = readiness
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="model-library")
        self._closed = False
        self.entries: list[ModelEntry] = []  # but for the starter
        self.starter_entry: ModelEntry | None = None
        self.ready: dict[Path, Readiness] = {}
        self._starter = starter_model()
        self.starter = self._starter.path if self._starter is not None else None
        self._listed.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._described.connect(self._take_ready, Qt.ConnectionType.QueuedConnection)
        self._done.connect(self.listed, Qt.ConnectionType.QueuedConnection)

    def chat_models(self) -> list[ModelEntry]:
        """Those that can answer, and those that could if something were not wrong; the starter first."""
        models = [entry for entry in self.entries if entry.kind == "chat" or entry.problem is not None]
        return [*([self.starter_entry] if self.starter_entry is not None else []), *models]

    def other_files(self) -> list[ModelEntry]:
        """Drafters, projectors and what else is no chat model."""
        return [entry for entry in self.entries if entry.kind != "chat" and entry.problem is None]

    def refresh(self, *, describe: bool = False) -> None:
        """``describe``: find out as well how the first of them will run."""
        if not self._closed:
            self._pool.submit(self._scan, self._folder(), describe)

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _scan(self, folder: Path, describe: bool) -> None:
        entries = local_models(folder, lambda part: self._listed.emit(list(part.entries)), self._starter)
        self._listed.emit(entries)
        self._done.emit()
        if not describe or self._readiness is None:
            return
        ready: dict[Path, Readiness] = {}
        usable = [entry for entry in entries if entry.kind == "chat" and entry.problem is None]
        for entry in usable[:MOST_DESCRIBED]:
            if self._closed:
                return
            try:
                ready[entry.path] = self._readiness(entry)
            except ModelFileError:  # it has changed since
                continue
        self._described.emit(ready)

    def _take(self, entries: list[ModelEntry]) -> None:
        starter = next((entry for entry in entries if entry.path == self.starter), None)
        others = [entry for entry in entries if entry is not starter]
        if (others, starter) != (self.entries, self.starter_entry):
            self.entries, self.starter_entry = others, starter
            self.changed.emit()

    def _take_ready(self, ready: dict[Path, Readiness]) -> None:
        if ready != self.ready:
            self.ready = ready
            self.changed.emit()
