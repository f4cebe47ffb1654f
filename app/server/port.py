"""The engine for coroutines: each answer is a stream of its own events, and ends when nobody reads it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from app.engine_client import Event, WorkerLost
from app.protocol import (
    Chunk,
    Done,
    Embedded,
    EngineOptions,
    Failed,
    Generate,
    Loaded,
    ModelReport,
    Started,
    Unloaded,
)
from app.server.errors import ApiError, engine_error

AnswerEvent = Started | Chunk | Done
_STOPPED = "The server is being stopped."


class Client(Protocol):
    """The part of app.engine_client.EngineClient that is used here."""

    def load(self, model_path: str, draft_model_path: str | None, options: EngineOptions) -> int: ...

    def unload(self) -> int: ...

    def ask(self, request: Generate) -> int: ...

    def embed(self, texts: Sequence[str]) -> int: ...

    def cancel(self, request_id: int) -> None: ...


class EnginePort:
    """Belongs to one event loop. Only ``receive`` may be called from elsewhere."""

    def __init__(self, client: Client, on_done: Callable[[ModelReport, Done], None]) -> None:
        """``on_done`` hears of each answer that ended by itself."""
        self._client = client
        self._on_done = on_done
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answers: dict[int, asyncio.Queue[Started | Chunk | Done | Failed]] = {}
        self._embeds: dict[int, asyncio.Future[Embedded | Failed]] = {}
        self._loads: dict[int, str] = {}
        self._wanted: str | None = None  # the model that the next request will find in memory
        self._problems: dict[str, str] = {}  # why a model could not be loaded
        self.report: ModelReport | None = None
        self.closing = False

    def attach(self) -> None:
        """Events go to the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def receive(self, event: Event) -> None:
        """Take an event of the engine's; any thread may call, and nothing is waited for."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._take, event)

    @property
    def busy(self) -> int:
        """Answers that are asked for and have not ended."""
        return len(self._answers) + len(self._embeds)

    # ---- models

    def want(self, path: str, draft: str | None, options: EngineOptions) -> None:
        """Have this model in memory when the next request is served; requests before it keep theirs."""
        if self._wanted == path:
            return
        self._wanted = path
        self._problems.pop(path, None)
        self._loads[self._client.load(path, draft, options)] = path

    def unload(self) -> None:
        """Give the memory back once what was asked for is done."""
        self._wanted = None
        self._client.unload()

    # ---- answers

    @asynccontextmanager
    async def answer(self, request: Generate) -> AsyncIterator[AsyncIterator[AnswerEvent]]:
        """The events of one answer, ``Done`` last. Raises ApiError where there is none.

        Leaving early cancels it: the engine stops within one pass.
        """
        path = self._wanted
        request_id = self._client.ask(request)
        events: asyncio.Queue[Started | Chunk | Done | Failed] = asyncio.Queue()
        self._answers[request_id] = events
        try:
            yield self._read(events, path)
        finally:
            if self._answers.pop(request_id, None) is not None:
                self._client.cancel(request_id)

    async def _read(
        self, events: asyncio.Queue[Started | Chunk | Done | Failed], path: str | None
    ) -> AsyncIterator[AnswerEvent]:
        while True:
            event = await events.get()
            if isinstance(event, Failed):
                raise self._error(event, path)
            if isinstance(event, Done) and event.finish_reason == "cancelled":
                raise ApiError(503, "The answer was stopped.", type="server_error", code="cancelled")
            yield event
            if isinstance(event, Done):
                return

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of texts. Raises ApiError."""
        path = self._wanted
        request_id = self._client.embed(texts)
        future: asyncio.Future[Embedded | Failed] = asyncio.get_running_loop().create_future()
        self._embeds[request_id] = future
        try:
            event = await future
        finally:
            if self._embeds.pop(request_id, None) is not None:
                self._client.cancel(request_id)
        if isinstance(event, Failed):
            raise self._error(event, path)
        return event

    def _error(self, event: Failed, path: str | None) -> ApiError:
        if event.kind == "no_model" and path in self._problems:
            return engine_error("bad_model", self._problems[path])
        return engine_error(event.kind, event.message)

    def stop(self) -> None:
        """End all answers with an error: the server goes away."""
        self.closing = True
        for request_id, events in self._answers.items():
            self._client.cancel(request_id)
            events.put_nowait(Failed(request_id, "worker_lost", _STOPPED))
        for request_id, future in self._embeds.items():
            if not future.done():
                future.set_result(Failed(request_id, "worker_lost", _STOPPED))

    def _take(self, event: Event) -> None:
        match event:
            case Loaded():
                self._loads.pop(event.request_id, None)
                self._wanted = self._wanted if self._loads else event.model.path
                self.report = event.model
            case Unloaded():
                self.report = None
                if not self._loads:
                    self._wanted = None
            case WorkerLost():
                self.report = None
                if not event.reloading:
                    self._wanted = None
            case Failed() if event.request_id in self._loads:
                path = self._loads.pop(event.request_id)
                self._problems[path] = event.message
                if self._wanted == path:
                    self._wanted = None
            case Embedded() | Failed() if event.request_id in self._embeds:
                future = self._embeds.pop(event.request_id)
                if not future.done():
                    future.set_result(event)
            case Started() | Chunk() | Done() | Failed():
                self._give(event)

    def _give(self, event: Started | Chunk | Done | Failed) -> None:
        events = self._answers.get(event.request_id)
        if events is None:
            return  # nobody waits for it any more
        events.put_nowait(event)
        if isinstance(event, Done | Failed):
            del self._answers[event.request_id]
            if isinstance(event, Done) and event.finish_reason != "cancelled" and self.report is not None:
                self._on_done(self.report, event)
