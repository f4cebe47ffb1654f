"""The server beside a window: on a thread of its own, over the window's engine and its queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.engine_client import EngineClient, Event
from app.settings import Settings

if TYPE_CHECKING:  # what serves takes long to import
    from app.server.host import Host
    from app.server.port import EnginePort

_QUEUE = 64


class BackgroundServer:
    """Runs while it is switched on. All methods but ``receive`` belong to one thread."""

    def __init__(
        self, client: EngineClient, settings: Callable[[], Settings], on_notice: Callable[[str], None]
    ) -> None:
        """``on_notice`` gets a line when it cannot be started, from the server's thread."""
        self._client = client
        self._settings = settings
        self._on_notice = on_notice
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._on: int | None = None  # the port that it was switched on for
        self._host: Host | None = None
        self._port: EnginePort | None = None

    @property
    def busy(self) -> bool:
        """Somebody waits for an answer."""
        port = self._port
        return port is not None and port.busy > 0

    def switch(self, port: int | None) -> None:
        """Serve at this port of the machine, or not at all. Returns at once."""
        if port == self._on:
            return
        self.close()
        self._on = port
        if port is not None:
            self._thread = threading.Thread(target=self._run, args=(port,), name="local server", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop serving; answers under way end with an error. Waits until its port is free again."""
        self._on = None
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with self._lock:
            if self._host is not None:
                self._host.stop()
        thread.join()

    def receive(self, event: Event) -> None:
        """Any thread may call."""
        port = self._port
        if port is not None:
            port.receive(event)

    def _run(self, number: int) -> None:
        from app.server.application import application
        from app.server.host import Address, Host, HostError, listen
        from app.server.port import EnginePort
        from app.server.service import Service
        from app.server.shelf import Shelf

        address = Address(number)
        # The window counts what it asked for itself.
        port = EnginePort(self._client, lambda model, done: None)
        service = Service(port, Shelf(self._settings), self._settings, parallel=1, queue=_QUEUE)
        host = Host(application(service, address))
        with self._lock:
            if self._on != number:
                return  # switched off meanwhile
            self._host = host
        try:
            sockets = listen(address)
        except HostError as error:
            self._on_notice(f"The local server is not running. {error}")
        else:
            self._port = port
            host.run(sockets, port.stop)
        self._port = None
        with self._lock:
            self._host = None
