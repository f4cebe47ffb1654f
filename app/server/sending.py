"""How answers leave: whole or event by event, and not at all when the client has gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.protocol import Chunk, Done, Generate, TokenLogprob
from app.server.answers import Usage
from app.server.errors import ApiError
from app.server.service import Indexed, Service

Event = dict[str, object]
DONE = b"data: [DONE]\n\n"
# JSON lets them stand in texts as they are, but many a reader of lines ends a line there.
_BREAKS = {mark: f"\\u{mark:04x}" for mark in (0x85, 0x2028, 0x2029)}


class Whole(NamedTuple):
    """One choice that has ended; ``chances`` None where they were not asked for."""

    done: Done
    chances: list[TokenLogprob] | None


async def gather(
    service: Service, model: str, asked: Sequence[Generate], route: str, *, n: int
) -> tuple[list[Whole], Usage]:
    """All choices of a request, ``n`` for each prompt, in order. Raises ApiError."""
    ended: dict[int, Done] = {}
    chances: list[list[TokenLogprob]] = [[] for _ in asked]
    usage = Usage()
    async with service.answers(model, asked, route) as events:
        async for index, event in events:
            if isinstance(event, Chunk):
                chances[index] += event.logprobs
            elif isinstance(event, Done):
                ended[index] = event
                usage.add(event.stats, index // n)
    wholes = [
        Whole(ended[i], chances[i] if request.logprobs is not None else None)
        for i, request in enumerate(asked)
    ]
    return wholes, usage


async def unless_gone(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do it, but stop when the client has gone."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(work())
    gone = asyncio.ensure_future(watch())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        return Response(status_code=499)  # nobody reads it
    finally:
        for each in (task, gone):
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError, ApiError):
                await each


class _Stream(StreamingResponse):
    """Ends the answers behind it however it ends, also where not a line was asked for."""

    def __init__(self, lines: AsyncIterator[bytes], answers: contextlib.AsyncExitStack) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(lines, media_type="text/event-stream", headers=headers)
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answers.aclose()


async def stream(
    request: Request,
    service: Service,
    model: str,
    asked: Sequence[Generate],
    route: str,
    events_of: Callable[[AsyncIterator[Indexed]], AsyncIterator[Event]],
    *,
    named: bool = False,
) -> Response:
    """Server-sent events. What goes wrong before the first has a status; after it, an event of its own.

    ``named``: each event's name is its type, and nothing marks the end (the responses API).
    """

    async def begin() -> Response:
        stack = contextlib.AsyncExitStack()
        try:
            answers = await stack.enter_async_context(service.answers(model, asked, route))
            events = events_of(answers)
            return _Stream(_lines(await anext(events), events, named), stack)
        except BaseException:
            await stack.aclose()
            raise

    return await unless_gone(request, begin)  # which may be long before the first event


async def _lines(first: Event, events: AsyncIterator[Event], named: bool) -> AsyncIterator[bytes]:
    sent = 1
    try:
        yield _line(first, named)
        async for event in events:
            yield _line(event, named)
            sent += 1
        if not named:
            yield DONE
    except ApiError as error:
        if named:
            yield _line(error.event(sent), named)
        else:
            yield _line(error.body(), named)


def _line(event: Event, named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False).translate(_BREAKS)}\n\n".encode()
