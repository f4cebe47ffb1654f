"""A chat out of some file, whoever wrote it: with ids of its own, and every message after its parent."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from app.chats.chat import Chat
from app.chats.errors import ChatsError
from app.chats.ids import new_id
from app.chats.message import Message, clean_text, interrupt
from app.chats.titles import one_line

MOST_MESSAGES = 100_000  # in one chat


class ImportedChat(Struct, kw_only=True):
    """A chat that is not in a store yet, with ids of its own; messages parents first."""

    chat: Chat
    messages: list[Message]


def unreadable(why: str) -> ChatsError:
    """To be raised for a file; ``why`` goes on after a colon."""
    return ChatsError("unreadable", f"The file cannot be imported: {why}.")


def with_new_ids(chat: Chat, messages: list[Message], leaf: int | None) -> ImportedChat:
    """Parents first, whatever their order was; a parent that is missing, or a circle, is none."""
    by_id = {message.id: message for message in messages}
    ordered: list[Message] = []
    done: set[int] = set()
    for message in by_id.values():
        line: list[Message] = []
        here: Message | None = message
        seen: set[int] = set()
        while here is not None and here.id not in done:
            if here.id in seen:
                line[-1].parent = None
                break
            seen.add(here.id)
            line.append(here)
            here = by_id.get(here.parent) if here.parent is not None else None
        for one in reversed(line):
            done.add(one.id)
            ordered.append(one)
    ids: dict[int, int] = {}
    for message in ordered:
        old = message.id
        message.id = ids[old] = new_id()
        message.parent = ids.get(message.parent) if message.parent is not None else None
        if message.in_progress:
            interrupt(message)
    chat.id = new_id()
    chat.leaf = ids.get(leaf) if leaf is not None else None
    chat.place = None
    chat.deleted_at = None
    chat.draft = clean_text(chat.draft)
    chat.title = one_line(chat.title)
    return ImportedChat(chat=chat, messages=ordered)


def seconds(value: Any) -> float | None:
    """Unix seconds that a calendar has."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**33:
        return float(value)
    return None
