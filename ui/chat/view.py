"""What the controller asks of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from app.chats.chat import Chat
from app.chats.message import Message
from app.protocol import Piece


class Problem(Struct, frozen=True):
    """Something a person should know of and can act on. ``actions`` name what is offered:
    retry, restart, restart_plain, reload, choose, save, ask_anew, or one of the
    window's."""

    what: str
    kept: str = ""
    actions: tuple[str, ...] = ()


class View(Protocol):
    """What the controller asks of the window. Messages are those of the chat that is shown."""

    def message_added(self, message: Message) -> None:
        """At the end of what is shown."""

    def message_removed(self, message: Message) -> None:
        """It is not shown any more; on another branch it may be kept."""

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        """``pieces`` came at its end."""

    def message_changed(self, message: Message) -> None:
        """Its state, numbers or problem; or how many versions its turn has."""

    def conversation_replaced(self) -> None:
        """Another chat is shown, or another branch of it from far up: read all of it anew."""

    def chats_changed(self) -> None:
        """The list of chats: which there are, or their order."""

    def chat_changed(self, chat: Chat) -> None:
        """One chat's title, folder, settings, or whether it is being answered."""

    def engine_changed(self) -> None: ...

    def numbers_changed(self) -> None: ...

    def notice(self, text: str, action: str = "") -> None:
        """A line to read once; ``action`` names what helps, see Session.action_asked."""

    def problem(self, problem: Problem | None) -> None: ...

    def give_back(self, text: str) -> None:
        """A message that could not be taken, or a draft that was kept: it belongs into the composer."""
