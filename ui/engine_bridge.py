"""Brings the engine client's events from its reader thread to the GUI thread, in batches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.engine_client import WORKER_COMMAND, EngineClient, Event

# The first event after a pause is handled at once, those that follow at most this often.
INTERVAL_MS = 40
_MOST_SHARE = 0.25  # of the time that the event loop spends on events
# Where the engine computes on every core, what the window takes of one holds up all of them.
_SPARING_SHARE, _LONGEST_S = 0.01, 0.25


class EngineBridge(QObject):
    """Owns the client. ``on_events`` gets every event, in order, on the GUI thread.

    Handling may be slow for a large answer: the pause then grows with it, so that the event loop
    keeps most of the time for itself. ``sparing``: the engine needs all cores. The pause then grows with
    all that the GUI thread does, painting included, though never so long that text stops flowing.
    """

    _woken = Signal()

    def __init__(
        self,
        on_events: Callable[[list[Event]], None],
        command: Sequence[str] = WORKER_COMMAND,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._on_events = on_events
        self._events: deque[Event] = deque()
        self._lock = threading.Lock()
        self._wake_sent = False
        self._closed = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._drain)
        self._next_at = 0.0
        self._spent = 0.0  # processor time of the GUI thread when events were last taken
        self.sparing = False
        self.also: Callable[[Event], None] = lambda event: None  # hears each event, on the reader's thread
        self._woken.connect(self._schedule, Qt.ConnectionType.QueuedConnection)
        self.client = EngineClient(self._receive, command=command)

    def close(self, timeout: float = 3.0) -> None:
        """End the worker; waits for at most twice ``timeout`` seconds. For shutdown only."""
        self._timer.stop()
        self.client.close(timeout)
        with self._lock:
            self._closed = True

    def _receive(self, event: Event) -> None:
        self.also(event)
        with self._lock:
            self._events.append(event)
            if not self._wake_sent and not self._closed:
                self._wake_sent = True
                self._woken.emit()

    @Slot()
    def _schedule(self) -> None:
        wait = self._next_at - time.monotonic()
        self._timer.start(max(0, round(wait * 1000)))

    @Slot()
    def _drain(self) -> None:
        with self._lock:
            events = list(self._events)
            self._events.clear()
            self._wake_sent = False
        began = time.monotonic()
        self._on_events(events)
        now = time.monotonic()
        pause = max(INTERVAL_MS / 1000, (now - began) / _MOST_SHARE)
        spent = time.thread_time()
        if self.sparing:
            # What handling and painting took since the last time.
            pause = max(pause, min(_LONGEST_S, (spent - self._spent) / _SPARING_SHARE))
        self._spent = spent
        self._next_at = began + pause
