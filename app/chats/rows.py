"""Chats and messages as rows of the database: whole structs as JSON, read leniently."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from app.chats.chat import Chat
from app.chats.message import Message
from app.chats.search_text import indexed
from app.lenient import converted

log = logging.getLogger(__name__)

_AnyStruct = TypeVar("_AnyStruct", bound=Struct)


class ChatRow(Struct, frozen=True):
    """``text`` is what search finds; None leaves the index as it is."""

    id: int
    updated_at: float
    deleted_at: float | None
    data: str
    text: str | None


class MessageRow(Struct, frozen=True):
    """``text`` as in ChatRow."""

    id: int
    chat: int
    parent: int | None
    state: str
    data: str
    text: str | None


def chat_row(chat: Chat) -> ChatRow:
    return ChatRow(chat.id, chat.updated_at, chat.deleted_at, _json(chat), indexed(chat.label))


def message_row(chat_id: int, message: Message) -> MessageRow:
    """Text that is still growing is not yet searched."""
    text = None if message.in_progress else indexed(message.text)
    return MessageRow(message.id, chat_id, message.parent, message.state, _json(message), text)


def read_chat(id: int, data: str) -> Chat | None:
    """None for a row that says nothing any more."""
    chat = read_struct(data, Chat)
    if chat is not None:
        chat.id = id
    return chat


def read_message(id: int, parent: int | None, data: str) -> Message | None:
    """None for a row that says nothing any more."""
    message = read_struct(data, Message)
    if message is not None:
        message.id, message.parent = id, parent
    return message


def read_struct(data: str | bytes, kind: type[_AnyStruct]) -> _AnyStruct | None:
    """Fields that another version wrote differently fall back to their defaults."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, UnicodeDecodeError):
        pass
    except msgspec.DecodeError as error:
        log.warning("a row of the chats cannot be read: %s", error)
        return None
    try:
        values = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("a row of the chats cannot be read: %s", error)
        return None
    return convert_leniently(values, kind)


def convert_leniently(values: dict[str, Any], kind: type[_AnyStruct]) -> _AnyStruct | None:
    """``values`` as a ``kind``, with what does not fit left out. None when a field that must be
    there does not fit."""
    try:
        struct, ignored = converted(values, kind)
    except TypeError:
        return None
    for name, reason in ignored.items():
        log.warning("%s of a %s has its default: %s", name, kind.__name__, reason)
    return struct


def _json(struct: Struct) -> str:
    return msgspec.json.encode(struct).decode()
