"""Stops work in another thread at once, even while it waits for a server."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any


class Stopped(Exception):
    """The work was asked to stop."""


class StopSignal:
    """Given to work when it starts; ``stop`` may be called from any thread, and more than once."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None

    @property
    def stopped(self) -> bool:
        return self._event.is_set()

    def stop(self) -> None:
        with self._lock:
            self._event.set()
            if self._connection is not None:
                _shut_down(self._connection)

    def check(self) -> None:
        """Raises Stopped."""
        if self._event.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Raises Stopped, as soon as there is reason to."""
        if self._event.wait(seconds):
            raise Stopped

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """For a request's ``trace`` extension: learns which connection to shut down."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            connection = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._connection = connection
                if self._event.is_set():
                    _shut_down(connection)

    def forget_connection(self) -> None:
        """The connection is closed; its number may soon be another file's."""
        with self._lock:
            self._connection = None


def _shut_down(connection: socket.socket) -> None:
    # Not the method of ssl.SSLSocket, which another thread may be reading from.
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
