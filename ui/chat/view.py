"""What the controller asks of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from app.protocol import Piece
from ui.chat.conversation import Message


class Problem(Struct, frozen=True):
    """Something a person should know of and can act on. ``actions`` name what is offered:
    retry, restart, restart_plain, reload, choose."""

    what: str
    kept: str = ""
    actions: tuple[str, ...] = ()


class View(Protocol):
    """What the controller asks of the window."""

    def message_added(self, message: Message) -> None: ...

    def message_removed(self, message: Message) -> None: ...

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None: ...

    def message_changed(self, message: Message) -> None: ...

    def conversation_replaced(self) -> None: ...

    def engine_changed(self) -> None: ...

    def numbers_changed(self) -> None: ...

    def notice(self, text: str) -> None: ...

    def problem(self, problem: Problem | None) -> None: ...

    def give_back(self, text: str) -> None: ...
