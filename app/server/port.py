"""The engine for coroutines: each answer is a stream of its own events, and ends when nobody reads it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from app.engine_client import Event, WorkerLost
from app.protocol import (
    Chunk,
    Done,
    Embed,
    Embedded,
    Failed,
    Generate,
    Load,
    Loaded,
    ModelReport,
    Started,
    Unloaded,
)
from app.server.errors import ApiError, engine_error

AnswerEvent = Started | Chunk | Done | Embedded
_OF_LOADS = ("bad_model", "out_of_memory", "cancelled")  # kinds of failure that loads have


class Client(Protocol):
    """The part of app.engine_client.EngineClient that is used here."""

    def ask(self, request: Generate | Embed, model: Load | None = None) -> int: ...

    def unload(self) -> int: ...

    def cancel(self, request_id: int) -> None: ...

    @property
    def pid(self) -> int | None: ...


class EnginePort:
    """Belongs to one event loop. Only ``receive`` may be called from elsewhere."""

    def __init__(self, client: Client, on_done: Callable[[ModelReport, Done], None]) -> None:
        """``on_done`` hears of each answer that ended by itself."""
        self._client = client
        self._on_done = on_done
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answers: dict[int, asyncio.Queue[AnswerEvent | Failed]] = {}
        self._load_problem: str | None = None  # why there is no model
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
        return len(self._answers)

    @property
    def alive(self) -> bool:
        """There is an engine that could answer."""
        return self._client.pid is not None

    def unload(self) -> None:
        """Give the memory back once what was asked for is done."""
        self._client.unload()

    @asynccontextmanager
    async def answer(
        self, request: Generate | Embed, model: Load
    ) -> AsyncIterator[AsyncIterator[AnswerEvent]]:
        """The events of one answer of ``model``, ``Done`` or ``Embedded`` last. Raises ApiError where there
        is none. Leaving early cancels it: the engine stops within one pass.
        """
        request_id = self._client.ask(request, model)
        events: asyncio.Queue[AnswerEvent | Failed] = asyncio.Queue()
        self._answers[request_id] = events
        try:
            yield self._read(events)
        finally:
            if self._answers.pop(request_id, None) is not None:
                self._client.cancel(request_id)

    async def _read(self, events: asyncio.Queue[AnswerEvent | Failed]) -> AsyncIterator[AnswerEvent]:
        while True:
            event = await events.get()
            if isinstance(event, Failed):
                if event.kind == "no_model" and self._load_problem is not None:
                    raise engine_error("bad_model", self._load_problem)
                raise engine_error(event.kind, event.message, event.about)
            if isinstance(event, Done) and event.finish_reason == "cancelled":
                raise ApiError(503, "The answer was stopped.", type="server_error", code="cancelled")
            yield event
            if isinstance(event, Done | Embedded):
                return

    def stop(self) -> None:
        """End all answers with an error: the server goes away."""
        self.closing = True
        for request_id, events in self._answers.items():
            self._client.cancel(request_id)
            events.put_nowait(Failed(request_id, "worker_lost", "The server is being stopped."))

    def _take(self, event: Event) -> None:
        match event:
            case Loaded():
                self.report, self._load_problem = event.model, None
            case Unloaded() | WorkerLost():
                self.report = None
            case Failed() if event.request_id not in self._answers and event.kind in _OF_LOADS:
                self._load_problem = event.message
            case Started() | Chunk() | Done() | Embedded() | Failed():
                self._give(event)

    def _give(self, event: AnswerEvent | Failed) -> None:
        events = self._answers.get(event.request_id)
        if events is None:
            return  # nobody waits for it any more, or it is another client's
        events.put_nowait(event)
        if isinstance(event, Done | Embedded | Failed):
            del self._answers[event.request_id]
        if isinstance(event, Done) and event.finish_reason != "cancelled" and self.report is not None:
            self._on_done(self.report, event)
