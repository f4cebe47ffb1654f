"""The routes and what each takes; how they answer is in a file of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from app.server.body import StrictRoute
from app.server.chat import ROUTE as CHAT
from app.server.chat import chat_completions
from app.server.completions import ROUTE as COMPLETIONS
from app.server.completions import completions
from app.server.embeddings import ROUTE as EMBEDDINGS
from app.server.embeddings import embeddings
from app.server.errors import naming
from app.server.requests import ChatRequest, CompletionRequest, EmbeddingsRequest, ResponsesRequest
from app.server.responses import ROUTE as RESPONSES
from app.server.responses import responses
from app.server.service import Service

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": words}
    for status, words in (
        (400, "A field is unknown, or has a value that is not supported; the error names it."),
        (401, "The API key is missing or wrong."),
        (403, "The host or the origin is not allowed."),
        (404, "There is no such model."),
        (408, "The request took too long to arrive."),
        (413, "The request is too large."),
        (415, "The body is not application/json."),
        (429, "Too many requests a minute, or too many that wait; Retry-After says for how long (seconds)."),
        (500, "The engine failed."),
        (503, "The model cannot be loaded, or the server is being stopped."),
    )
}

ANSWERS = frozenset((CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS))
"""Routes that the engine works for."""


def router(service: Service) -> APIRouter:
    routes = APIRouter(route_class=StrictRoute)

    @routes.post(CHAT, responses=_ERRORS, tags=["answers"])
    async def chat(body: ChatRequest, request: Request) -> Response:
        with naming(body.parts()):
            return await chat_completions(service, body, request)

    @routes.post(COMPLETIONS, responses=_ERRORS, tags=["answers"])
    async def text(body: CompletionRequest, request: Request) -> Response:
        return await completions(service, body, request)

    @routes.post(RESPONSES, responses=_ERRORS, tags=["answers"])
    async def response(body: ResponsesRequest, request: Request) -> Response:
        with naming(body.parts()):
            return await responses(service, body, request)

    @routes.post(EMBEDDINGS, responses=_ERRORS, tags=["answers"])
    async def embed(body: EmbeddingsRequest, request: Request) -> Response:
        return await embeddings(service, body, request)

    @routes.get("/v1/models", tags=["models"])
    async def models() -> Response:
        listed = await asyncio.to_thread(service.shelf.models)
        return JSONResponse({"object": "list", "data": [model.body() for model in listed]})

    @routes.get("/v1/models/{model_id}", responses={404: _ERRORS[404]}, tags=["models"])
    async def model(model_id: str) -> Response:
        found = await asyncio.to_thread(service.shelf.find, model_id)
        return JSONResponse(found.body())

    @routes.get("/health", responses={503: {"description": "The engine is not running."}}, tags=["server"])
    async def health() -> Response:
        if service.port.alive:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "the engine is not running"}, 503)

    @routes.get("/metrics", response_class=PlainTextResponse, tags=["server"])
    async def metrics() -> Response:
        text = service.metrics.text(service.port.busy, service.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return routes
