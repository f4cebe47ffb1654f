"""One chat in memory: its messages and what of them is sent to the model. Knows no Qt."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from app.protocol import ChatMessage, Piece
from drafting.statistics import Statistics

AnswerState = Literal["waiting", "reading", "writing", "done", "stopped", "failed"]

_ids = itertools.count(1)


class Message(Struct, kw_only=True, eq=False):
    """What was said. ``pieces`` keep who drafted which text; equal neighbours are joined.

    ``problem`` is why an answer is missing or incomplete; the text that came before is kept.
    """

    role: Literal["user", "assistant"]
    id: int = msgspec.field(default_factory=lambda: next(_ids))
    pieces: list[Piece] = []
    state: AnswerState = "done"
    cut_in_reasoning: bool = False
    cut_by_length: bool = False
    problem: str | None = None
    stats: Statistics | None = None
    seed: int | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if not piece.reasoning)

    @property
    def reasoning(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.reasoning)

    @property
    def in_progress(self) -> bool:
        return self.state in ("waiting", "reading", "writing")

    def append(self, piece: Piece) -> None:
        last = self.pieces[-1] if self.pieces else None
        # Joined only up to a size, so that the cost of a token does not grow with the answer.
        if (
            last is not None
            and (last.drafter, last.reasoning) == (piece.drafter, piece.reasoning)
            and len(last.text) < 2000
        ):
            self.pieces[-1] = Piece(last.text + piece.text, last.drafter, last.reasoning)
        else:
            self.pieces.append(piece)


class Conversation:
    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = list(messages)
        self.started_at = time.time()

    def add_user(self, text: str) -> Message:
        message = Message(role="user", pieces=[Piece(text)])
        self.messages.append(message)
        return message

    def add_answer(self) -> Message:
        message = Message(role="assistant", state="waiting")
        self.messages.append(message)
        return message

    def remove(self, message: Message) -> None:
        self.messages.remove(message)

    def truncate(self, first: Message) -> list[Message]:
        """Drop ``first`` and all after it; returns what was dropped."""
        at = self.messages.index(first)
        dropped = self.messages[at:]
        del self.messages[at:]
        return dropped

    def last(self, role: Literal["user", "assistant"]) -> Message | None:
        return next((message for message in reversed(self.messages) if message.role == role), None)

    def prompt(self, system_prompt: str = "") -> tuple[ChatMessage, ...]:
        """What the model sees: thoughts are left out, and so are questions that got no answer,
        because many templates insist that the roles alternate."""
        prompt: list[ChatMessage] = []
        if system_prompt.strip():
            prompt.append(ChatMessage("system", system_prompt))
        pending: ChatMessage | None = None
        for message in self.messages:
            if message.role == "user":
                pending = ChatMessage("user", message.text)
            elif pending is not None and (text := message.text):
                prompt += [pending, ChatMessage("assistant", text)]
                pending = None
        if pending is not None:
            prompt.append(pending)
        return tuple(prompt)
