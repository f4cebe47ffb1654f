"""Starts the window."""

from __future__ import annotations

import faulthandler
import gc
import logging
import signal
import socket
import sys
from collections.abc import Sequence

from PySide6.QtCore import QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from app.engine_client import WORKER_COMMAND
from app.program_log import start_logging
from app.run_marker import RunMarker
from app.settings import SettingsFile
from ui.icons import app_icon
from ui.main_window import MainWindow
from ui.shell.crash_guard import CrashGuard
from ui.shell.garbage import GarbageCollector
from ui.shell.opening import Opening, opening
from ui.shell.single_instance import SingleInstance
from ui.theme import Theme

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None, engine_command: Sequence[str] = WORKER_COMMAND) -> int:
    """Run until the window is closed; returns the exit status. ``arguments`` may name a model file or a
    chat to open. Where a window is open already, that one shows it, and this ends at once."""
    if sys.stderr is not None:  # there is none in a windowed bundle
        faulthandler.enable()
    application = QApplication([sys.argv[0]])
    application.setApplicationName("slipstream")
    application.setApplicationDisplayName("Slipstream")
    application.setDesktopFileName("slipstream")
    wanted = opening(sys.argv[1:] if arguments is None else arguments)
    instance = SingleInstance()
    first = instance.first(wanted)
    if first is None:
        _say_it_hangs()
    if not first:
        return 0 if first is False else 1
    logs = start_logging()
    guard = CrashGuard()
    guard.install()
    marker = RunMarker()
    garbage = GarbageCollector(application)
    garbage.start()
    try:
        return _run(application, instance, guard, wanted, marker, engine_command)
    finally:
        garbage.stop()
        instance.close()
        marker.end()
        guard.uninstall()
        if logs is not None:
            logging.getLogger().removeHandler(logs)
            logs.close()


def _run(
    application: QApplication,
    instance: SingleInstance,
    guard: CrashGuard,
    wanted: Opening,
    marker: RunMarker,
    engine_command: Sequence[str],
) -> int:
    settings_file = SettingsFile()
    settings = settings_file.load()
    theme = Theme(application, settings.theme)
    theme.apply(settings)
    window = MainWindow(theme, settings_file, settings, engine_command)
    guard.failed.connect(window.tell_of_failure)
    signals = _Signals(window)
    last = marker.begin()
    application.commitDataRequest.connect(lambda _: window.end_with_session())

    def when_seen() -> None:
        window.start()
        window.open(wanted)
        if last is not None:
            window.shell.tell_of_last_run(last)
        application.setWindowIcon(app_icon())
        window.shell.start()
        instance.asked.connect(window.show_and_open)
        instance.listen()
        # What is there now stays until the end: no pause for looking through it again and again.
        gc.freeze()

    window.seen.connect(when_seen)
    window.show()
    status = application.exec()
    signals.close()
    return status


def _say_it_hangs() -> None:
    QMessageBox.critical(
        None,
        "Slipstream",
        "Slipstream is running already, but its window does not answer. End that program first, or wait "
        "until it has ended.",
    )


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
        QTimer.singleShot(0, self._window, self._window.quit)

    def _woken(self) -> None:
        self._reader.recv(64)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._old)
        self._reader.close()
        self._writer.close()
