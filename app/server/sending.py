"""How answers leave: whole or event by event, and not at all when the client has gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from app.protocol import Chunk, Done, Generate, TokenLogprob
from app.server.answers import Usage
from app.server.errors import ApiError
from app.server.service import Indexed, Service

Event = dict[str, object]
DONE = b"data: [DONE]\n\n"


class Whole(NamedTuple):
    """One choice that has ended; ``chances`` None where they were not asked for."""

    done: Done
    chances: list[TokenLogprob] | None


async def gather(
    service: Service, model: str, asked: Sequence[Generate], route: str
) -> tuple[list[Whole], Usage]:
    """All choices of a request, in order. Raises ApiError."""
    ended: dict[int, Done] = {}
    chances: list[list[TokenLogprob]] = [[] for _ in asked]
    usage = Usage()
    async with service.answers(model, asked, route) as events:
        async for index, event in events:
            if isinstance(event, Chunk):
                chances[index] += event.logprobs
            elif isinstance(event, Done):
                ended[index] = event
                usage.add(event.stats)
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


async def stream(
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
    stack = contextlib.AsyncExitStack()
    try:
        answers = await stack.enter_async_context(service.answers(model, asked, route))
        events = events_of(answers)
        first = await anext(events)
    except BaseException:
        await stack.aclose()
        raise

    async def lines() -> AsyncIterator[bytes]:
        try:
            yield _line(first, named)
            async for event in events:
                yield _line(event, named)
            if not named:
                yield DONE
        except ApiError as error:
            if named:
                said: Event = {
                    "type": "error",
                    "code": error.code,
                    "message": error.message,
                    "param": error.param,
                }
                yield _line(said, named)
            else:
                yield _line(error.body(), named)
        finally:
            await stack.aclose()

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)


def _line(event: Event, named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
