"""The quick bench in a process of its own: starts it, reads how far it is, and ends it with this program."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTemporaryDir, Signal

from app.bench.measurement import Row

# The guard ends the bench when its own input ends: with this program, however that ends.
GUARD = (sys.executable, "-m", "app.bench.guard")
BENCH = (sys.executable, "-m", "app", "bench", "--quick", "--json")
_PROGRESS = re.compile(r"^(\d+)/(\d+) (.*)$")
_END_MS = 3000


class Outcome(Struct):
    """The part of the bench's report that is shown."""

    rows: list[Row]


class Measurement(QObject):
    """``progressed``: so many of so many are over, and what comes now. Then either ``measured`` or
    ``failed`` with the reason in words; neither after ``stop``."""

    progressed = Signal(int, int, str)
    measured = Signal(object)  # list[Row]
    failed = Signal(str)

    def __init__(self, command: Sequence[str] = BENCH, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._process: QProcess | None = None
        self._home: QTemporaryDir | None = None
        self._unfinished = b""  # the beginning of a line
        self._reason = ""  # the last line that told no progress

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, arguments: Sequence[str]) -> None:
        """``arguments`` go to the bench."""
        if self._process is not None:
            return
        self._unfinished, self._reason = b"", ""
        # What a bench that is stopped leaves behind goes with this folder.
        self._home = QTemporaryDir()
        environment = QProcessEnvironment.systemEnvironment()
        for name in ("TMPDIR", "TEMP", "TMP"):
            environment.insert(name, self._home.path())
        process = self._process = QProcess(self)
        process.setProcessEnvironment(environment)
        process.readyReadStandardError.connect(lambda: self._read_errors())
        process.finished.connect(self._finished)
        process.errorOccurred.connect(self._broke)
        program, *rest = (*GUARD, *self._command, *arguments)
        process.start(program, rest)

    def stop(self, *, wait: bool = False) -> None:
        """End it; ``wait`` for that, for shutdown only."""
        process = self._let_go()
        if process is None:
            return
        home, self._home = self._home, None

        def ended() -> None:
            if home is not None:
                home.remove()
            process.deleteLater()

        process.finished.connect(ended)
        process.closeWriteChannel()  # the guard's input ends, and with it the bench
        if wait and not process.waitForFinished(_END_MS):
            process.kill()
            process.waitForFinished(_END_MS)

    def _let_go(self) -> QProcess | None:
        process, self._process = self._process, None
        if process is not None:
            for signal in (process.readyReadStandardError, process.finished, process.errorOccurred):
                signal.disconnect()
        return process

    def _read_errors(self, end: bytes = b"") -> None:
        if self._process is None:
            return
        text = self._unfinished + bytes(self._process.readAllStandardError().data()) + end
        *lines, self._unfinished = text.split(b"\n")
        for line in lines:
            words = line.decode("utf-8", "replace").strip()
            if match := _PROGRESS.match(words):
                # The bench counts from 1 what it begins.
                self.progressed.emit(int(match[1]) - 1, int(match[2]), match[3])
            elif words:
                self._reason = words.removeprefix("slipstream: ")

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_errors(end=b"\n")
        process = self._let_go()
        if process is None:
            return
        output = bytes(process.readAllStandardOutput().data())
        process.deleteLater()
        self._home = None
        if code != 0 or status != QProcess.ExitStatus.NormalExit:
            self.failed.emit(self._reason or f"The measurement ended with code {code}.")
            return
        try:
            self.measured.emit(msgspec.json.decode(output, type=Outcome).rows)
        except msgspec.DecodeError as error:
            self.failed.emit(f"What was measured cannot be read: {error}.")

    def _broke(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and (process := self._let_go()) is not None:
            self.failed.emit(f"The measurement cannot be started: {process.errorString()}.")
            process.deleteLater()
