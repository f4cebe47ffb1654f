"""What nobody caught goes to the log and is told in a line; the window stays."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
from types import TracebackType
from typing import TextIO

from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from app.program_log import crash_log

log = logging.getLogger(__name__)

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class CrashGuard(QObject):
    """``failed`` carries a sentence, once for each place that fails. It may come from any thread."""

    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._seen: set[tuple[str, str, int]] = set()
        self._file: TextIO | None = None

    def install(self) -> None:
        """Take over from Python's and Qt's own handlers, for the rest of the process."""
        sys.excepthook = self.caught
        threading.excepthook = self._in_thread
        sys.unraisablehook = self._unraisable
        qInstallMessageHandler(_qt_message)
        try:
            # It stays open: whoever writes there later cannot open anything any more.
            self._file = crash_log().open("a", encoding="utf-8")
        except OSError as error:
            log.warning("stacks of crashes cannot be kept: %s", error)
        else:
            faulthandler.enable(self._file)

    def uninstall(self) -> None:
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        sys.unraisablehook = sys.__unraisablehook__
        qInstallMessageHandler(None)
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            self._file = None

    def caught(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """As sys.excepthook is called."""
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, traceback)
            return
        log.error("something was not caught", exc_info=(kind, error, traceback))
        last = traceback
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        place = (kind.__name__, last.tb_frame.f_code.co_filename, last.tb_lineno) if last else ("", "", 0)
        if place not in self._seen:
            self._seen.add(place)
            self.failed.emit(
                f"Something went wrong inside Slipstream ({kind.__name__}). Your chats are kept; the log has "
                "the details."
            )

    def _in_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and args.exc_type is not SystemExit:
            self.caught(args.exc_type, args.exc_value, args.exc_traceback)

    def _unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value is not None:
            self.caught(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)


def _qt_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    logging.getLogger("qt").log(_LEVELS.get(kind, logging.WARNING), "%s", text)
