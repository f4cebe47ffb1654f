"""What the chat needs of the program around it: an engine, and somebody who counts answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.protocol import (
    Begun,
    ChatMessage,
    Done,
    DraftingParams,
    EngineOptions,
    ModelReport,
    SamplingParams,
)


class Engine(Protocol):
    """The part of app.engine_client.EngineClient that is used here."""

    def load(self, model_path: str, draft_model_path: str | None, options: EngineOptions) -> int: ...

    def generate(
        self,
        messages: Sequence[ChatMessage],
        *,
        sampling: SamplingParams,
        drafting: DraftingParams,
        max_tokens: int | None,
        reproducible: bool,
        exact: bool,
        begun: Begun | None,
        started_at: float | None,
    ) -> int: ...

    def cancel(self, request_id: int) -> None: ...

    def unload(self) -> int: ...

    def restart(self) -> None: ...


class AnswerCounter(Protocol):
    """The part of app.speed_history.BackgroundHistory that is used here."""

    def record(self, model: ModelReport, done: Done) -> None: ...
