"""What stands before every request: who may ask, for which host, from which page, and how much.

Pure ASGI: it decides before the body is read, and the body is counted while it comes in.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from starlette.middleware.cors import CORSMiddleware

from app.server.errors import ApiError

log = logging.getLogger(__name__)

_PROGRAM = Path(__file__).parent.parent

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_S = 30.0  # a body has arrived by then
_OPEN = ("/health",)  # tells nothing that a key protects

Admit = Callable[[str, str | None], None]
"""Takes path and address of a request that may be made; raises ApiError where it is one too many."""


class Guard:
    """A page on another site, or one that has its name resolve to this machine, gets nothing."""

    def __init__(
        self,
        inner: Application,
        *,
        hosts: frozenset[str],
        origins: frozenset[str],
        readers: frozenset[str] = frozenset(),
        key: str | None,
        most_bytes: int,
        admit: Admit,
    ) -> None:
        """``hosts`` and ``origins`` are compared in full, port and all; pages of ``readers``, which are
        ``origins`` too, may read the answers (CORS). ``key`` None asks for none. ``admit`` is asked last of
        all."""
        self._inner = inner
        self._next: Application = self._admitted
        if readers:
            self._next = CORSMiddleware(
                self._admitted,
                allow_origins=readers,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),  # OpenAI's client for browsers sends many of its own
                allow_private_network=True,
                expose_headers=("Retry-After",),
            )
        self._hosts = hosts
        self._origins = origins
        # A variable of the system's need not hold text.
        self._key = key.encode("utf-8", "surrogateescape") if key is not None else None
        self._most_bytes = most_bytes
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            return
        try:
            self._check_place(scope)
        except ApiError as error:
            await _refuse(error, send)
            return
        try:
            await self._next(scope, receive, send)
        except Exception as error:
            # Whoever runs it must find the place; but what a trace says besides is nobody's business.
            log.error("a request failed: %s", _place(error))

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What comes from where it may."""
        try:
            self._check(scope)
        except ApiError as error:
            await _refuse(error, send)
            return
        body = _Body(receive, self._most_bytes, time.monotonic() + BODY_S)
        begun = refused = False

        async def reply(message: Message) -> None:
            nonlocal begun, refused
            if body.problem is not None and not begun:
                # Whoever reads the body takes any error for one of parsing.
                if not refused:
                    refused = True
                    await _refuse(body.problem, send)
                return
            begun = True
            await send(message)

        await self._inner(scope, body.receive, reply)

    def _check_place(self, scope: Scope) -> None:
        """Raises ApiError."""
        hosts = _values(scope, b"host")
        if not hosts:
            raise ApiError(400, "The request names no host.", code="host_missing")
        if len(hosts) > 1 or _text(hosts[0]).lower() not in self._hosts:
            raise ApiError(403, "This server does not answer for that host.", code="host_not_allowed")
        if any(_text(origin).lower() not in self._origins for origin in _values(scope, b"origin")):
            raise ApiError(403, "This server does not answer that origin.", code="origin_not_allowed")

    def _check(self, scope: Scope) -> None:
        """Raises ApiError."""
        if any(int(length) > self._most_bytes for length in _values(scope, b"content-length")):
            raise _too_large(self._most_bytes)
        if self._key is not None and scope["path"] not in _OPEN:
            given = _values(scope, b"authorization")
            scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
            # In the same time whatever is wrong with it.
            if not hmac.compare_digest(token.strip(), self._key) or scheme.lower() != b"bearer":
                raise ApiError(
                    401,
                    "This server asks for its API key.",
                    type="authentication_error",
                    code="invalid_api_key",
                )
        if scope["method"] == "POST":
            # A page may send some other types without asking first, and has no need to.
            kinds = [
                _text(kind).partition(";")[0].strip().lower() for kind in _values(scope, b"content-type")
            ]
            if kinds != ["application/json"] or _values(scope, b"content-encoding"):
                raise ApiError(
                    415,
                    "The body must be application/json, as it is: not packed.",
                    code="unsupported_media_type",
                )
        client = scope.get("client")
        self._admit(scope["path"], client[0] if client else None)


class _Body:
    """Counts a body that says nothing of its length, and does not wait for it for ever."""

    def __init__(self, receive: Receive, most_bytes: int, until: float) -> None:
        self._receive = receive
        self._left = most_bytes
        self._most = most_bytes
        self._until = until
        self._complete = False
        self.problem: ApiError | None = None

    async def receive(self) -> Message:
        """Raises ApiError, which ``problem`` keeps."""
        if self._complete:
            return await self._receive()
        try:
            return await self._part()
        except ApiError as error:
            self.problem = error
            raise

    async def _part(self) -> Message:
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._until - time.monotonic()))
        except TimeoutError as error:
            raise ApiError(408, "The request took too long to arrive.", code="request_timeout") from error
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_large(self._most)
            self._complete = not message.get("more_body", False)
        return message


def _too_large(most_bytes: int) -> ApiError:
    return ApiError(413, f"The request is larger than {most_bytes // 2**20} MiB.", code="request_too_large")


def _values(scope: Scope, name: bytes) -> list[bytes]:
    """Of a header; an ASGI server gives their names in lower case."""
    return [value for each, value in scope["headers"] if each == name]


def _place(error: Exception) -> str:
    """Kind and place of an error, without its words, which may be the client's, and without a path."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PROGRAM)]
    last = (own or frames)[-1]
    return f"{type(error).__name__} in {last.name} ({Path(last.filename).name}:{last.lineno})"


def _text(value: bytes) -> str:
    return value.decode("latin-1")


async def _refuse(error: ApiError, send: Send) -> None:
    body = json.dumps(error.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    # What of the body is still to come is not read.
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
