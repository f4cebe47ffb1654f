"""Starts the window."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import signal
import socket
import sys
from collections.abc import Sequence

from PySide6.QtCore import QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication

from app.engine_client import WORKER_COMMAND
from app.settings import SettingsFile
from ui.main_window import MainWindow
from ui.theme import Theme


def main(engine_command: Sequence[str] = WORKER_COMMAND) -> int:
    """Run until the window is closed; returns the exit status."""
    if sys.stderr is not None:  # there is none in a windowed bundle
        faulthandler.enable()
    multiprocessing.freeze_support()
    application = QApplication([sys.argv[0]])
    application.setApplicationName("slipstream")
    application.setApplicationDisplayName("Slipstream")
    application.setDesktopFileName("slipstream")
    settings_file = SettingsFile()
    settings = settings_file.load()
    theme = Theme(application, settings.theme)
    theme.apply(settings)
    window = MainWindow(theme, settings_file, settings, engine_command)
    signals = _Signals(window)
    window.show()
    window.start()
    # What is there now stays until the end: no pause for looking through it again and again.
    gc.freeze()
    status = application.exec()
    signals.close()
    return status


class _Signals(QObject):
    """SIGINT and SIGTERM close the window: Python handles a signal only once it runs again, so a
    socket wakes the event loop."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._old = signal.set_wakeup_fd(self._writer.fileno())
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._woken)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: object) -> None:
        # Not from here: Python may be anywhere, even before the event loop, which a close must end.
        QTimer.singleShot(0, self._window, self._window.close)

    def _woken(self) -> None:
        self._reader.recv(64)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._old)
        self._reader.close()
        self._writer.close()
