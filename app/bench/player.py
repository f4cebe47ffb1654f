"""Plays conversations through the engine client, each from the same cold start.

Drafters remember: mod's table and what the cache drafter learned outlive an answer, a KV cache
holds the prompt before, and a controller knows what paid. So that no measurement helps the next,
the model is unloaded and loaded again for every conversation, and the worker lives in a private
home folder that is emptied in between: each conversation meets a program that has just been
installed. Within a conversation everything is kept, as in a chat.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from app import paths
from app.bench.workloads import Conversation, Workload
from app.engine_client import WORKER_COMMAND, EngineClient, Event, WorkerLost
from app.protocol import (
    ChatMessage,
    Done,
    DraftingParams,
    EngineOptions,
    Failed,
    FailureKind,
    Hello,
    Loaded,
    ModelReport,
    SamplingParams,
    Unloaded,
)

GREEDY = SamplingParams(temperature=0)

# Templates that print a date print this one, or the prompts would not be the same tomorrow.
STARTED_AT = 1_750_000_000.0


class BenchError(Exception):
    """A measurement that cannot go on, in words for the person who asked for it."""

    def __init__(self, message: str, kind: FailureKind = "internal") -> None:
        super().__init__(message)
        self.kind = kind


class Player:
    """One worker for one model. Use it with ``with``: it ends the worker and removes the home."""

    def __init__(
        self,
        model: Path,
        draft_model: Path | None = None,
        *,
        options: EngineOptions = EngineOptions(),
        command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        """``options.n_ctx`` is replaced by what each workload needs."""
        self._model = str(model.absolute())
        self._draft_model = str(draft_model.absolute()) if draft_model else None
        self._options = options
        self._command = command
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._life = contextlib.ExitStack()
        self._is_loaded = False
        self.engine = ""  # llama.cpp's build, as the worker says it

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as life:
            log_path = paths.log_dir() / "worker.log"
            self._home = life.enter_context(_private_home())
            self._client = EngineClient(self._events.put, command=self._command, log_path=log_path)
            life.callback(self._client.close)
            self._client.start()
            self._life = life.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._life.close()

    def load(self, n_ctx: int) -> ModelReport:
        """Load the model into a worker that remembers nothing. Raises BenchError."""
        self.unload()
        for path in self._home.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        options = msgspec.structs.replace(self._options, n_ctx=n_ctx)
        event = self._wait(self._client.load(self._model, self._draft_model, options))
        assert isinstance(event, Loaded)
        self._is_loaded = True
        return event.model

    def unload(self) -> None:
        """Give the model's memory back; the next conversation loads it anyway. Raises BenchError."""
        if self._is_loaded:
            self._wait(self._client.unload())
            self._is_loaded = False

    def play(
        self,
        workload: Workload,
        conversation: Conversation,
        drafting: DraftingParams,
        max_tokens: int,
        script: Sequence[str] = (),
        sampling: SamplingParams = GREEDY,
    ) -> list[Done]:
        """One answer for each turn, from a cold start. Raises BenchError.

        A drawn one has a seed of its own: named, it would ask for a reproducible answer, which accepts
        less. ``script`` holds answers of an earlier run: turns after the first then follow on those,
        whatever this run said, so that all runs answer the same prompts.
        """
        self.load(workload.n_ctx)
        answers: list[Done] = []
        messages: list[ChatMessage] = []
        for i, turn in enumerate(conversation.turns):
            messages.append(ChatMessage("user", turn))
            request = self._client.generate(
                messages,
                sampling=sampling,
                drafting=drafting,
                max_tokens=max_tokens,
                started_at=STARTED_AT,
            )
            event = self._wait(request)
            assert isinstance(event, Done)
            answers.append(event)
            messages.append(ChatMessage("assistant", script[i] if i < len(script) else event.text))
        return answers

    def _wait(self, request_id: int) -> Loaded | Unloaded | Done:
        while True:
            event = self._events.get()
            if isinstance(event, Hello):
                self.engine = event.engine
            elif isinstance(event, WorkerLost):
                raise BenchError(event.message, "worker_lost")
            elif isinstance(event, Failed) and event.request_id == request_id:
                raise BenchError(event.message, event.kind)
            elif isinstance(event, Loaded | Unloaded | Done) and event.request_id == request_id:
                return event


@contextlib.contextmanager
def _private_home() -> Iterator[Path]:
    """A home for the worker alone: what a person's chats have taught must neither help nor grow."""
    before = os.environ.get("SLIPSTREAM_HOME")
    with tempfile.TemporaryDirectory(prefix="slipstream-bench-") as folder:
        os.environ["SLIPSTREAM_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["SLIPSTREAM_HOME"]
            else:
                os.environ["SLIPSTREAM_HOME"] = before
