"""Runs the server on this machine's own addresses, in whatever thread it is given."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import h11
import psutil
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.server.guard import Application

LOOPBACK = ("127.0.0.1", "::1")
PORT = 1337
_HEADER_BYTES = 16 << 10
HEADER_S = 10.0  # the lines before a body have arrived by then
_HTTP_PORT = 80  # which no client names
_GRACE_S = 2


class HostError(Exception):
    """The server cannot be started, in words for a person."""


@dataclass(frozen=True)
class Address:
    """Where the server listens. ``hosts`` are further names that it answers to, as in a Host header."""

    port: int = PORT
    bind: tuple[str, ...] = LOOPBACK
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return all(map(_is_loopback, self.bind))

    def allowed_hosts(self) -> frozenset[str]:
        """Exact values of the Host header."""
        names = {"localhost", "127.0.0.1", "[::1]"}
        names |= {f"[{each}]" if ":" in each else each.lower() for each in self.bind}
        own = {f"{name}:{self.port}" for name in names}
        if self.port == _HTTP_PORT:
            own |= names
        return frozenset(own | {host.lower() for host in self.hosts})

    def allowed_origins(self) -> frozenset[str]:
        """Its own page, and what was named."""
        return frozenset(f"http://{host}" for host in self.allowed_hosts()) | self.named_origins()

    def named_origins(self) -> frozenset[str]:
        """Pages that may read the answers."""
        return frozenset(map(_as_sent, self.origins))


def _as_sent(origin: str) -> str:
    """As browsers write it: in lower case, without a path, and without a port that goes without saying."""
    origin = origin.lower().rstrip("/")
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(address: Address) -> list[socket.socket]:
    """Sockets that listen; one address that the machine lacks is left out. Raises HostError."""
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for host in address.bind:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            problem = error
            continue
        try:
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if sys.platform == "win32":  # where the other option lets two programs have one port
                made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, address.port))
            made.listen(128)
        except OSError as error:
            made.close()
            problem = error
            if error.errno == errno.EADDRINUSE:
                break  # on the other address somebody else would answer
            continue
        sockets.append(made)
    if not sockets or (problem is not None and problem.errno == errno.EADDRINUSE):
        for each in sockets:
            each.close()
        assert problem is not None
        if problem.errno == errno.EADDRINUSE:
            name = _listener(address.port)
            other = f"another program ({name})" if name else "another program"
            raise HostError(f"Port {address.port} is in use by {other}. Choose another port.")
        raise HostError(f"Port {address.port} cannot be opened: {problem.strerror or problem}.")
    return sockets


def _listener(port: int) -> str | None:
    """The name of the program that has it, where the system tells."""
    try:
        for each in psutil.net_connections("tcp"):
            if each.pid and each.status == psutil.CONN_LISTEN and each.laddr[1:] == (port,):
                return str(psutil.Process(each.pid).name())
    except psutil.Error:
        pass
    return None


class _Protocol(H11Protocol):
    """Does not wait for a request's first lines for ever, as uvicorn does."""

    _head_by: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._await_head()
        else:
            self._head_by = None

    def _await_head(self) -> None:
        if self._head_by is None:
            self._head_by = self.loop.time() + HEADER_S
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(self._head_by, self.timeout_keep_alive_handler)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """What a signal means is for whoever runs it to say."""
        yield


class Host:
    """One run of the server. ``stop`` may be called from any thread."""

    def __init__(self, application: Application) -> None:
        self._server = _Server(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,  # paths and addresses are nobody's business
                server_header=False,
                date_header=False,
                h11_max_incomplete_event_size=_HEADER_BYTES,
                http=_Protocol,
                proxy_headers=False,
                ws="none",
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE_S,
                lifespan="on",
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_stop: Callable[[], None] = lambda: None

    def run(self, sockets: Sequence[socket.socket], on_stop: Callable[[], None] = lambda: None) -> None:
        """Serve until ``stop``. ``on_stop`` is called on the loop when that is asked for: answers end."""
        self._on_stop = on_stop
        asyncio.run(self._serve(list(sockets)))

    async def _serve(self, sockets: list[socket.socket]) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets)

    def stop(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._stop)
        else:
            self._server.should_exit = True

    def _stop(self) -> None:
        self._on_stop()
        self._server.should_exit = True
