"""A synchronous view of the engine client for tests: every wait has an end and collects what it saw."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from app.engine_client import WORKER_COMMAND, EngineClient, Event
from app.protocol import (
    ChatMessage,
    Done,
    DrafterName,
    DraftingParams,
    DraftMode,
    EngineOptions,
    Failed,
    Grammar,
    Loaded,
    ModelReport,
    SamplingParams,
)
from app.worker.fake_script import FakeScript
from drafting.parameters import LinkParameters

# What makes token ids comparable across batch sizes: see drafting.md, "where rounding can change".
# On one thread: tiny models are too small for two, which on a busy machine wait for each other.
EXACT = EngineOptions(n_ctx=2048, n_threads=1, kv_type="f32", flash_attention="off")
EXACT_ON_ALL_CORES = msgspec.structs.replace(EXACT, n_threads=0)
GREEDY = SamplingParams(temperature=0)


def fake_command(script: FakeScript, folder: Path) -> tuple[str, ...]:
    """The worker command that plays ``script``."""
    path = folder / "script.json"
    path.write_bytes(msgspec.json.encode(script))
    return (sys.executable, "-m", "app.worker", "--fake", str(path))


def chat(*texts: str) -> list[ChatMessage]:
    """A conversation in turn, the person first."""
    roles = ("user", "assistant")
    return [ChatMessage(roles[i % 2], text) for i, text in enumerate(texts)]  # type: ignore[arg-type]


class Session:
    def __init__(self, command: Sequence[str] = WORKER_COMMAND, log_path: Path | None = None) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.seen: list[Event] = []
        self.client = EngineClient(self.events.put, command=command, log_path=log_path)
        self.client.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.client.close()

    def until(self, done: Callable[[Event], bool], timeout: float = 60.0) -> Event:
        """The first event that ``done`` accepts; all on the way are in ``seen``."""
        end = time.monotonic() + timeout
        while True:
            event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            self.seen.append(event)
            if done(event):
                return event

    def terminal(self, request_id: int, timeout: float = 60.0) -> Event:
        """The one terminal event of a request."""
        return self.until(
            lambda e: isinstance(e, Loaded | Done | Failed) and e.request_id == request_id, timeout
        )

    def load(
        self,
        model: Path | str,
        draft: Path | None = None,
        options: EngineOptions = EngineOptions(),
    ) -> ModelReport:
        event = self.terminal(self.client.load(str(model), str(draft) if draft else None, options))
        assert isinstance(event, Loaded), event
        return event.model

    def ask(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        links: Sequence[DrafterName] = (),
        max_draft: int = 8,
        mode: DraftMode = "manual",
        parameters: LinkParameters = LinkParameters(),
        sampling: SamplingParams = GREEDY,
        max_tokens: int | None = 64,
        seed: int | None = None,
        exact: bool = False,
        stop: Sequence[str] = (),
        grammar: Grammar | None = None,
        timeout: float = 60.0,
    ) -> Done:
        event = self.terminal(
            self.client.generate(
                [ChatMessage("user", prompt)] if isinstance(prompt, str) else prompt,
                sampling=sampling,
                drafting=DraftingParams(
                    mode=mode, links=tuple(links), parameters=parameters, max_draft=max_draft
                ),
                max_tokens=max_tokens,
                seed=seed,
                exact=exact,
                stop=stop,
                grammar=grammar,
            ),
            timeout,
        )
        assert isinstance(event, Done), event
        return event
