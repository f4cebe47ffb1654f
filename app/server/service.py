"""What the routes share: which model answers, how many may wait, and the events of a request's choices."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from app.protocol import Done, Embed, Embedded, Generate
from app.server.errors import ApiError, unsupported
from app.server.metrics import Metrics
from app.server.port import AnswerEvent, EnginePort
from app.server.rate_limit import RateLimit, client_of
from app.server.shelf import Shelf
from app.settings import Settings

_ANSWER_S = 5.0  # what an answer takes, while none was timed

Indexed = tuple[int, AnswerEvent]


class Service:
    """``queue`` requests may wait beside those that are answered."""

    def __init__(
        self,
        port: EnginePort,
        shelf: Shelf,
        settings: Callable[[], Settings],
        *,
        queue: int,
        idle_s: float | None = None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """``idle_s``: seconds without a request after which the model leaves memory; None: it stays.
        ``on_answer`` is called after each answer that ended by itself."""
        self.port = port
        self.shelf = shelf
        self.settings = settings
        self.metrics = Metrics()
        self._rate = RateLimit()
        self._queue = queue
        self._idle_s = idle_s
        self._on_answer = on_answer
        self._idle: asyncio.TimerHandle | None = None
        self._seconds = _ANSWER_S  # of an answer, lately

    @property
    def waiting(self) -> int:
        return max(0, self.port.busy - self._parallel)

    @property
    def _parallel(self) -> int:
        return self.settings().n_parallel

    def admit(self, route: str, address: str | None) -> None:
        """Count a request before it is read. Raises ApiError where its client makes too many."""
        per_minute = self.settings().server_requests_per_minute
        wait = self._rate.take(client_of(address), per_minute, time.monotonic())
        if wait:
            code = "rate_limit_exceeded"
            self.metrics.refused(code)
            self.metrics.request(route, 429)
            raise ApiError(
                429,
                f"More than {per_minute} requests a minute; try again later.",
                type="rate_limit_error",
                code=code,
                retry_after_s=math.ceil(wait),
            )

    @asynccontextmanager
    async def answers(
        self, model_id: str, requests: Sequence[Generate], route: str
    ) -> AsyncIterator[AsyncIterator[Indexed]]:
        """Events of all ``requests``, each with its place among them, as they come. Raises ApiError."""
        self._admit(len(requests))
        model = await asyncio.to_thread(self.shelf.find, model_id)
        if model.embeds:
            raise unsupported("model", "this is an embedding model, which writes no text")
        load = await asyncio.to_thread(self.shelf.load, model)
        self._admit(len(requests))  # others may have come while the folder was read
        self._rest()
        async with AsyncExitStack() as stack:
            stack.callback(self._wait_for_rest)
            streams = [await stack.enter_async_context(self.port.answer(each, load)) for each in requests]
            yield _merged([self._counted(stream, route) for stream in streams])

    async def embed(self, model_id: str, texts: Sequence[str]) -> Embedded:
        """Vectors of texts, by an embedding model. Raises ApiError."""
        self._admit(1)
        model = await asyncio.to_thread(self.shelf.find, model_id)
        if not model.embeds:
            raise unsupported("model", "this model writes text; embeddings need an embedding model")
        load = await asyncio.to_thread(self.shelf.load, model)
        self._admit(1)  # others may have come while the folder was read
        self._rest()
        try:
            async with self.port.answer(Embed(0, tuple(texts)), load) as events:
                async for event in events:
                    if isinstance(event, Embedded):
                        self._on_answer()
                        return event
            raise AssertionError("an answer without an end")
        finally:
            self._wait_for_rest()

    async def _counted(self, stream: AsyncIterator[AnswerEvent], route: str) -> AsyncIterator[AnswerEvent]:
        async for event in stream:
            if isinstance(event, Done):
                self.metrics.answer(route, event.stats)
                taken = event.stats.prefill_s + event.stats.decode_s  # without the time in the queue
                self._seconds += 0.2 * (taken - self._seconds)
                self._on_answer()
            yield event

    def _admit(self, count: int) -> None:
        """Raises ApiError where too many wait already."""
        if self.port.closing:
            raise ApiError(503, "The server is being stopped.", type="server_error", code="stopping")
        if self.port.busy + count > self._parallel + self._queue:
            self.metrics.refused("queue_full")
            rounds = math.ceil((self.waiting + 1) / self._parallel)
            raise ApiError(
                429,
                "Too many requests are waiting; try again later.",
                type="rate_limit_error",
                code="queue_full",
                retry_after_s=max(1, min(600, round(rounds * self._seconds))),
            )

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _wait_for_rest(self) -> None:
        self._rest()
        if self._idle_s is not None:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._unload)

    def _unload(self) -> None:
        if self.port.busy:
            self._wait_for_rest()
        elif self.port.report is not None:
            self.port.unload()

    def close(self) -> None:
        self._rest()
        self.port.stop()


def choices(request: Generate, seeds: Sequence[int | None]) -> list[Generate]:
    """The same request once for each seed."""
    return [msgspec.structs.replace(request, seed=seed) for seed in seeds]


async def _merged(streams: Sequence[AsyncIterator[AnswerEvent]]) -> AsyncIterator[Indexed]:
    """Events of all streams as they come. Raises the first ApiError of any."""
    if len(streams) == 1:
        async for event in streams[0]:
            yield 0, event
        return
    events: asyncio.Queue[Indexed | ApiError | None] = asyncio.Queue()

    async def read(index: int, stream: AsyncIterator[AnswerEvent]) -> None:
        try:
            async for event in stream:
                events.put_nowait((index, event))
        except ApiError as error:
            events.put_nowait(error)
        finally:
            events.put_nowait(None)

    readers = [asyncio.create_task(read(i, stream)) for i, stream in enumerate(streams)]
    try:
        ended = 0
        while ended < len(streams):
            item = await events.get()
            if item is None:
                ended += 1
            elif isinstance(item, ApiError):
                raise item
            else:
                yield item
    finally:
        for reader in readers:
            reader.cancel()
        for reader in readers:
            with contextlib.suppress(asyncio.CancelledError):
                await reader
