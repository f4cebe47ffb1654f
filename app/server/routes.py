"""The routes: chat and text completions, models, health, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from app.protocol import Chunk, Done, Generate
from app.server.answers import (
    Head,
    Usage,
    chat_choice,
    chat_deltas,
    delta,
    finish_reason,
    text_choice,
    text_delta,
)
from app.server.errors import ApiError
from app.server.requests import ChatRequest, CompletionRequest
from app.server.service import Indexed, Service, choices

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": words}
    for status, words in (
        (400, "A field is unknown, or has a value that is not supported; the error names it."),
        (401, "The API key is missing or wrong."),
        (403, "The host or the origin is not allowed."),
        (404, "There is no such model."),
        (408, "The request took too long to arrive."),
        (413, "The request is too large."),
        (429, "Too many requests are waiting; Retry-After says for how long."),
        (500, "The engine failed."),
        (503, "The model cannot be loaded, or the server is being stopped."),
    )
}


def router(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/chat/completions", responses=_ERRORS, tags=["answers"])
    async def chat_completions(body: ChatRequest, request: Request) -> Response:
        settings = service.settings()
        usage_wanted = body.wants_usage()
        generate = Generate(
            request_id=0,
            messages=tuple(body.chat()),
            sampling=body.sampling(settings.sampling_params()),
            drafting=body.drafting(settings.drafting_params()),
            max_tokens=body.most_tokens(),
            stop=body.stops(),
            grammar=body.grammar(),
        )
        head = Head("chat.completion", "chatcmpl", body.model)
        route = "/v1/chat/completions"
        asked = choices(generate, body.seeds())
        if not body.stream:
            return await _unless_gone(request, lambda: _whole_chat(service, head, asked, route))
        return await _stream(
            service, body.model, asked, route, lambda e: _chat_events(e, head, usage_wanted, len(asked))
        )

    @routes.post("/v1/completions", responses=_ERRORS, tags=["answers"])
    async def completions(body: CompletionRequest, request: Request) -> Response:
        settings = service.settings()
        usage_wanted = body.wants_usage()
        asked: list[Generate] = []
        echoes: list[str] = []
        for prompt in body.prompts():
            generate = Generate(
                request_id=0,
                messages=(),
                prompt=prompt,
                sampling=body.sampling(settings.sampling_params()),
                drafting=body.drafting(settings.drafting_params()),
                max_tokens=body.max_tokens or 16,  # OpenAI's own default
                stop=body.stops(),
            )
            made = choices(generate, body.seeds())
            asked += made
            echoes += [prompt if body.echo else ""] * len(made)
        head = Head("text_completion", "cmpl", body.model)
        route = "/v1/completions"
        if not body.stream:
            return await _unless_gone(request, lambda: _whole_text(service, head, asked, echoes, route))
        return await _stream(
            service, body.model, asked, route, lambda e: _text_events(e, head, usage_wanted, echoes)
        )

    @routes.get("/v1/models", tags=["models"])
    async def models() -> Response:
        listed = await asyncio.to_thread(service.shelf.models)
        return JSONResponse({"object": "list", "data": [model.body() for model in listed]})

    @routes.get("/v1/models/{model_id}", responses={404: _ERRORS[404]}, tags=["models"])
    async def model(model_id: str) -> Response:
        found = await asyncio.to_thread(service.shelf.find, model_id)
        return JSONResponse(found.body())

    @routes.get("/health", tags=["server"])
    async def health() -> Response:
        return JSONResponse({"status": "ok"})

    @routes.get("/metrics", response_class=PlainTextResponse, tags=["server"])
    async def metrics() -> Response:
        text = service.metrics.text(service.port.busy, service.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return routes


# ---- whole answers


async def _unless_gone(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
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


async def _gather(
    service: Service, model: str, asked: list[Generate], route: str
) -> tuple[list[Done], Usage]:
    done: dict[int, Done] = {}
    usage = Usage()
    async with service.answers(model, asked, route) as events:
        async for index, event in events:
            if isinstance(event, Done):
                done[index] = event
                usage.add(event.stats)
    return [done[index] for index in range(len(asked))], usage


async def _whole_chat(service: Service, head: Head, asked: list[Generate], route: str) -> Response:
    answers, usage = await _gather(service, head.model, asked, route)
    made = [chat_choice(index, done) for index, done in enumerate(answers)]
    return JSONResponse(head.body(made) | {"usage": usage.body()})


async def _whole_text(
    service: Service, head: Head, asked: list[Generate], echoes: list[str], route: str
) -> Response:
    answers, usage = await _gather(service, head.model, asked, route)
    made = [text_choice(index, done, echoes[index]) for index, done in enumerate(answers)]
    return JSONResponse(head.body(made) | {"usage": usage.body()})


# ---- streams


async def _stream(
    service: Service,
    model: str,
    asked: list[Generate],
    route: str,
    events_of: Callable[[AsyncIterator[Indexed]], AsyncIterator[dict[str, object]]],
) -> Response:
    """What goes wrong before the first event has a status; after it, an event of its own."""
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
            yield _line(first)
            async for event in events:
                yield _line(event)
            yield b"data: [DONE]\n\n"
        except ApiError as error:
            yield _line(error.body())
        finally:
            await stack.aclose()

    return StreamingResponse(
        lines(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _line(event: dict[str, object]) -> bytes:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


async def _chat_events(
    answers: AsyncIterator[Indexed], head: Head, usage_wanted: bool, count: int
) -> AsyncIterator[dict[str, object]]:
    usage = Usage()
    extra: dict[str, object] = {"usage": None} if usage_wanted else {}
    begun: set[int] = set()
    async for index, event in answers:
        if index not in begun:
            # Not before the engine has begun: until then an error still has a status.
            begun.add(index)
            yield head.body([delta(index, {"role": "assistant", "content": ""})], chunk=True) | extra
        if isinstance(event, Chunk):
            for each in chat_deltas(index, event):
                yield head.body([each], chunk=True) | extra
        elif isinstance(event, Done):
            usage.add(event.stats)
            yield head.body([delta(index, {}, finish_reason(event.finish_reason))], chunk=True) | extra
    if usage_wanted:
        yield head.body([], chunk=True) | {"usage": usage.body()}


async def _text_events(
    answers: AsyncIterator[Indexed], head: Head, usage_wanted: bool, echoes: list[str]
) -> AsyncIterator[dict[str, object]]:
    usage = Usage()
    extra: dict[str, object] = {"usage": None} if usage_wanted else {}
    begun: set[int] = set()
    async for index, event in answers:
        if index not in begun:
            begun.add(index)
            yield head.body([text_delta(index, echoes[index])]) | extra
        if isinstance(event, Chunk) and (text := "".join(piece.text for piece in event.pieces)):
            yield head.body([text_delta(index, text)]) | extra
        elif isinstance(event, Done):
            usage.add(event.stats)
            yield head.body([text_delta(index, "", finish_reason(event.finish_reason))]) | extra
    if usage_wanted:
        yield head.body([]) | {"usage": usage.body()}
