"""One window for one home folder: a second start hands over what it was asked to open, and ends."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout
from PySide6.QtCore import QObject, Signal

from app import paths
from ui.shell.opening import LONGEST, Opening, decode, encode

log = logging.getLogger(__name__)

_WAIT_MS = 300
_TAKEN = b"taken\n"


class SingleInstance(QObject):
    """The lock on the home folder decides who is first; the system frees it when its holder dies.

    A socket alone could not: its file outlives a crash, and two starts at once would both find nobody
    there. ``asked`` carries what a later start wants opened.
    """

    asked = Signal(object)  # Opening

    def __init__(self, folder: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        folder = folder or paths.data_dir()
        self._lock = FileLock(folder / "window.lock")
        key = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self.name = f"slipstream-{key}"
        self._server: QObject | None = None

    def acquire(self) -> bool:
        """Whether this is the first instance now."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            # No lock can be kept here: better two windows than none.
            log.warning("the lock of the window cannot be taken: %s", error)
        return True

    def first(self, opening: Opening, patience_s: float = 10.0) -> bool | None:
        """True: this instance is the one that runs. False: another one took ``opening``. None: another
        one holds the lock, but did not answer for ``patience_s`` seconds.

        Both are tried in turn: the other one may be about to listen, or about to end.
        """
        end = time.monotonic() + patience_s
        while True:
            if self.acquire():
                return True
            if self._hand_over(opening):
                return False
            if time.monotonic() >= end:
                return None
            time.sleep(0.05)  # nothing of ours is on the screen yet

    def listen(self) -> None:
        """Take what later starts ask for. For the first instance, once its window is there."""
        from PySide6.QtNetwork import QLocalServer

        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        if not server.listen(self.name):
            # Left behind by a crash: the lock says that nobody listens there.
            QLocalServer.removeServer(self.name)
            if not server.listen(self.name):
                log.warning("no other start can be heard: %s", server.errorString())
        server.newConnection.connect(lambda: self._connected(server.nextPendingConnection))
        self._server = server

    def close(self) -> None:
        """Let another instance be the first."""
        from PySide6.QtNetwork import QLocalServer

        if isinstance(self._server, QLocalServer):
            self._server.close()
        self._lock.release()

    def _hand_over(self, opening: Opening) -> bool:
        from PySide6.QtNetwork import QLocalSocket

        socket = QLocalSocket()
        socket.connectToServer(self.name)
        if not socket.waitForConnected(_WAIT_MS):
            return False
        socket.write(encode(opening) + b"\n")
        socket.waitForBytesWritten(_WAIT_MS)
        end = time.monotonic() + 2.0
        while not socket.canReadLine() and time.monotonic() < end:
            if (
                not socket.waitForReadyRead(_WAIT_MS)
                and socket.state() != socket.LocalSocketState.ConnectedState
            ):
                break
        return bytes(socket.readLine().data()) == _TAKEN

    def _connected(self, next_connection: Callable[[], QObject | None]) -> None:
        from PySide6.QtNetwork import QLocalSocket

        while isinstance(socket := next_connection(), QLocalSocket):
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)
            self._read(socket)

    def _read(self, socket: QObject) -> None:
        from PySide6.QtNetwork import QLocalSocket

        assert isinstance(socket, QLocalSocket)
        if not socket.canReadLine():
            if socket.bytesAvailable() > LONGEST:
                socket.abort()
            return
        opening = decode(bytes(socket.readLine(LONGEST).data()))
        if opening is None:
            socket.abort()
            return
        socket.write(_TAKEN)
        socket.flush()
        self.asked.emit(opening)
