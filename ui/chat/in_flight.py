"""An answer that is being written, or waits to be: in whatever chat, shown or not."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.protocol import Begun, Done, Piece


@dataclass(eq=False)
class InFlight:
    """``request_id`` is None until the engine has heard of it. ``question`` is the message that was
    just sent for it, None where an old one is answered again. ``before`` is what the answer was when
    it was asked to go on."""

    chat: Chat
    conversation: Conversation
    answer: Message
    question: Message | None = None
    request_id: int | None = None
    before: list[Piece] = field(default_factory=list)
    fresh: list[Piece] = field(default_factory=list)  # the view has not heard of these yet

    @property
    def begun(self) -> Begun | None:
        """What the engine has to go on from; None for a new answer."""
        if not self.before:
            return None
        reasoning = "".join(piece.text for piece in self.before if piece.reasoning)
        text = "".join(piece.text for piece in self.before if not piece.reasoning)
        return Begun(text=text, reasoning=reasoning)

    def take(self, pieces: tuple[Piece, ...]) -> None:
        """Text that has come."""
        for piece in pieces:
            self.answer.append(piece)
            self.fresh.append(piece)

    def settle_text(self, event: Done) -> bool:
        """The whole answer is the worker's word; a cut tail may differ from what streamed. Whether it
        did."""
        whole = [piece.text for piece in self.before if not piece.reasoning]
        thoughts = [piece.text for piece in self.before if piece.reasoning]
        said = ("".join((*whole, event.text)), "".join((*thoughts, event.reasoning)))
        if said == (self.answer.text, self.answer.reasoning):
            return False
        rest = (Piece(event.reasoning, None, True), Piece(event.text))
        self.answer.pieces = [*self.before, *(piece for piece in rest if piece.text)]
        return True
