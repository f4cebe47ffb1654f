"""The server beside a window: on a thread of its own, over the window's engine and its queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from app.engine_client import EngineClient, Event
from app.settings import Settings

if TYPE_CHECKING:  # what serves takes long to import
    from app.server.host import Address, Host
    from app.server.port import EnginePort

_QUEUE = 64
_NO_KEY = "To be reached from other machines it needs an API key."


@dataclass(frozen=True)
class Place:
    """Where it serves. ``network``: for other machines, too, which need ``key``; programs on this one send it
    as well."""

    port: int
    network: bool = False
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ServerState:
    """``place`` is where it serves, or would like to; ``problem`` says why it does not. ``answered``:
    requests since it was started."""

    phase: Literal["off", "starting", "running", "failed"] = "off"
    place: Place | None = None
    problem: str = ""
    answered: int = 0


class BackgroundServer:
    """Runs while it is switched on. All methods but ``receive`` belong to one thread."""

    def __init__(
        self,
        client: EngineClient,
        settings: Callable[[], Settings],
        on_notice: Callable[[str], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_notice`` gets a line when it cannot be started, and ``on_change`` is called when there is
        another state, both from the server's thread, too."""
        self._client = client
        self._settings = settings
        self._on_notice = on_notice
        self._on_change = on_change
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._on: Place | None = None  # what it was switched on for
        self._host: Host | None = None
        self._port: EnginePort | None = None
        self.state = ServerState()

    @property
    def busy(self) -> bool:
        """Somebody waits for an answer."""
        port = self._port
        return port is not None and port.busy > 0

    def switch(self, place: Place | None) -> None:
        """Serve there, or not at all. Returns at once, or when what was served elsewhere has ended."""
        if place == self._on:
            return
        self.close()
        self._on = place
        if place is None:
            return
        self._say(ServerState("starting", place))
        self._thread = threading.Thread(target=self._run, args=(place,), name="local server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving; answers under way end with an error. Waits until its port is free again."""
        self._on = None
        thread, self._thread = self._thread, None
        if thread is not None:
            with self._lock:
                if self._host is not None:
                    self._host.stop()
            thread.join()
        if self.state.phase != "off":
            self._say(ServerState())

    def receive(self, event: Event) -> None:
        """Any thread may call."""
        port = self._port
        if port is not None:
            port.receive(event)

    # ---- on its own thread

    def _run(self, place: Place) -> None:
        from app.server.application import application
        from app.server.host import Host, HostError, listen
        from app.server.port import EnginePort
        from app.server.service import Service
        from app.server.shelf import Shelf

        if place.network and place.key is None:
            self._fail(place, _NO_KEY)
            return
        address = _address(place)
        # The window counts what it asked for itself.
        port = EnginePort(self._client, lambda model, done: None)
        service = Service(
            port, Shelf(self._settings), self._settings, queue=_QUEUE, on_answer=self._count_answer
        )
        host = Host(application(service, address, place.key))
        with self._lock:
            if self._on != place:
                return  # switched off meanwhile
            self._host = host
        try:
            sockets = listen(address)
        except HostError as error:
            self._fail(place, str(error))
        else:
            self._port = port
            self._say(ServerState("running", place))
            host.run(sockets, port.stop)
            if self._on == place:
                self._fail(place, "It stopped by itself; its log may say why.")
        self._port = None
        with self._lock:
            self._host = None

    def _fail(self, place: Place, why: str) -> None:
        self._say(ServerState("failed", place, why))
        self._on_notice(f"The local server is not running. {why}")

    def _count_answer(self) -> None:
        self._say(replace(self.state, answered=self.state.answered + 1))

    def _say(self, state: ServerState) -> None:
        self.state = state
        self._on_change()


def _address(place: Place) -> Address:
    from app.server.host import Address
    from app.server.network import ALL, own_hosts

    if not place.network:
        return Address(place.port)
    return Address(place.port, bind=ALL, hosts=own_hosts(place.port))
