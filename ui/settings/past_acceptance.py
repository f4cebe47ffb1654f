"""What share of each drafter's tokens the model in memory has accepted so far, read off the GUI thread."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from PySide6.QtCore import QObject, Qt, Signal

from app.engine_client import Event
from app.protocol import Done
from app.speed_history import Figures, KindHistory, SpeedHistoryError
from ui.session import Session


class PastAcceptance(QObject):
    """``found`` carries figures by drafter."""

    found = Signal(dict)
    _read = Signal(object)  # Future[list[KindHistory]]

    def __init__(self, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._read.connect(self._take, Qt.ConnectionType.QueuedConnection)

    def ask(self) -> None:
        self._session.history.read().add_done_callback(self._read.emit)

    def ask_after(self, events: Iterable[Event]) -> None:
        """Only an answer's end brings news."""
        if any(isinstance(event, Done) for event in events):
            self.ask()

    def _take(self, future: Future[list[KindHistory]]) -> None:
        report = self._session.controller.state.report
        if future.cancelled() or report is None:
            self.found.emit({})
            return
        try:
            histories = future.result()
        except SpeedHistoryError:  # the Speed page says so
            histories = []
        sums: dict[str, Figures] = {}
        for history in histories:
            # A file that went away since it was loaded has no key any more.
            key, name = history.target.key, history.target.name
            if key == report.file.key if report.file is not None else name == report.name:
                for name, spans in history.links.items():
                    sums[name] = sums.get(name, Figures()) + spans.ever
        self.found.emit(sums)
