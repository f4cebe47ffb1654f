"""One message of a chat, as it is shown and kept."""

from __future__ import annotations

import time
from typing import Literal

import msgspec
from msgspec import Struct

from app.chats.ids import new_id
from app.protocol import Piece, SamplingParams
from drafting.statistics import Statistics

MessageRole = Literal["user", "assistant"]
AnswerState = Literal[
    "waiting",  # for the model, or for another answer to end
    "reading",  # its prompt is being read
    "writing",
    "done",
    "stopped",  # by the person
    "failed",
    "interrupted",  # the program ended while it was being written
]
INTERRUPTED = "Slipstream ended while this was being written."
IN_PROGRESS: tuple[AnswerState, ...] = ("waiting", "reading", "writing")
# Pieces are joined only up to a size, so that the cost of a token does not grow with the answer.
_LONGEST_JOINED = 2000


class RequestSettings(Struct, frozen=True, kw_only=True):
    """What an answer was asked with: enough to ask for the same again, with the message's seed."""

    sampling: SamplingParams
    max_tokens: int | None = None
    verification: str = "automatic"
    drafting: bool = True
    preset: str | None = None


class Message(Struct, kw_only=True, omit_defaults=True, eq=False):
    """What was said. ``pieces`` keep who drafted which text; equal neighbours are joined.

    ``parent`` is the message it follows, None for a first one. ``problem`` is why an answer is
    missing or incomplete; the text that came before is kept. ``model`` and ``model_key`` name the
    file that answered (see app.protocol.LoadedFile), ``created_at`` is in Unix seconds.
    """

    role: MessageRole
    id: int = msgspec.field(default_factory=new_id)
    parent: int | None = None
    pieces: list[Piece] = []
    state: AnswerState = "done"
    cut_in_reasoning: bool = False
    cut_by_length: bool = False
    edited: bool = False  # a person wrote this answer, or changed it
    problem: str | None = None
    stats: Statistics | None = None
    seed: int | None = None
    created_at: float = msgspec.field(default_factory=time.time)
    model: str = ""
    model_key: str | None = None
    request: RequestSettings | None = None

    @property
    def text(self) -> str:
        """What was said, thoughts apart."""
        return "".join(piece.text for piece in self.pieces if not piece.reasoning)

    @property
    def reasoning(self) -> str:
        """What was thought before it was said."""
        return "".join(piece.text for piece in self.pieces if piece.reasoning)

    @property
    def in_progress(self) -> bool:
        """It is being written, or will be."""
        return self.state in IN_PROGRESS

    @property
    def can_continue(self) -> bool:
        """An answer that could go on from its end: it was cut, stopped or lost, or just ended."""
        return self.role == "assistant" and not self.in_progress and bool(self.pieces)

    @property
    def incomplete(self) -> bool:
        """An answer that ended before the model had said all: offering to continue makes sense."""
        return self.can_continue and (
            self.state in ("stopped", "failed", "interrupted") or self.cut_by_length or self.cut_in_reasoning
        )

    def append(self, piece: Piece) -> None:
        """Add text at the end."""
        last = self.pieces[-1] if self.pieces else None
        if (
            last is not None
            and (last.drafter, last.reasoning) == (piece.drafter, piece.reasoning)
            and len(last.text) < _LONGEST_JOINED
        ):
            self.pieces[-1] = Piece(last.text + piece.text, last.drafter, last.reasoning)
        else:
            self.pieces.append(piece)


def interrupt(message: Message) -> None:
    """Mark an answer that was being written when the program ended."""
    message.state = "interrupted"
    message.problem = INTERRUPTED


def clean_text(text: str) -> str:
    """``text`` without halves of characters, which no file can hold; a half becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
