"""The token ids of a conversation's prompts, made by the very code that makes them in a chat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from app.bench.player import STARTED_AT, BenchError
from app.bench.workloads import Conversation
from app.protocol import ChatMessage, Done, EngineOptions, Generate, Load
from app.worker.llama_model import LlamaModel
from app.worker.loaded_model import EngineError


class PromptIds:
    """Holds the model with the smallest context there is: only its template and words are used."""

    def __init__(self, model: Path) -> None:
        """Raises BenchError."""
        options = EngineOptions(n_ctx=256, n_batch=64)
        load = Load(request_id=0, model_path=str(model), options=options)
        try:
            self._model = LlamaModel(load, lambda _: True)
        except EngineError as error:
            raise BenchError(str(error), error.kind) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._model.close()

    def of(self, conversation: Conversation, answers: Sequence[Done]) -> list[list[int]]:
        """The whole prompt of each turn, when the turns before it were answered so.

        There must be an answer for every turn but the last.
        """
        prompts: list[list[int]] = []
        messages: list[ChatMessage] = []
        for i, turn in enumerate(conversation.turns):
            if i > 0:
                answer = answers[i - 1]
                self._model.answered(answer.text, answer.token_ids)
                messages.append(ChatMessage("assistant", answer.text))
            messages.append(ChatMessage("user", turn))
            request = Generate(request_id=0, messages=tuple(messages), started_at=STARTED_AT)
            try:
                prompts.append(self._model.prepare(request).tokens)
            except EngineError as error:
                raise BenchError(str(error), error.kind) from error
        return prompts
