"""Chats out of files: our own JSON, and ChatGPT's conversations.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from app.chats.chat import Chat
from app.chats.errors import ChatsError
from app.chats.export import FORMAT, FORMAT_VERSION
from app.chats.ids import new_id
from app.chats.message import Message, clean_text, interrupt
from app.chats.rows import convert_leniently
from app.chats.titles import one_line, title_of
from app.protocol import Piece

MAX_BYTES = 512 * 1024 * 1024
_MOST_MESSAGES = 100_000  # in one chat


class ImportedChat(Struct, kw_only=True):
    """A chat that is not in a store yet, with ids of its own; messages parents first."""

    chat: Chat
    messages: list[Message]


def read_chats_file(path: Path) -> list[ImportedChat]:
    """May be called from any thread. Raises ChatsError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _unreadable("it is larger than 512 MB")
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(error.strerror or str(error)) from error
    return read_chats(data)


def read_chats(data: bytes) -> list[ImportedChat]:
    """The chats in the content of a file. Raises ChatsError for what is no such file."""
    try:
        content = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(f"it is no JSON ({error})") from error
    except RecursionError as error:
        raise _unreadable("it is nested too deep") from error
    if isinstance(content, dict) and content.get("format") == FORMAT:
        chats = _ours(content)
    elif isinstance(content, list) and all(isinstance(one, dict) and "mapping" in one for one in content):
        chats = [chat for one in content if (chat := _chatgpt(one)) is not None]
    elif isinstance(content, dict) and "mapping" in content:
        chats = [chat for chat in [_chatgpt(content)] if chat is not None]
    else:
        raise _unreadable("it is neither an export of Slipstream nor ChatGPT's conversations.json")
    if not chats:
        raise _unreadable("there is no chat in it")
    return chats


def _unreadable(why: str) -> ChatsError:
    return ChatsError("unreadable", f"The file cannot be imported: {why}.")


def _ours(content: dict[str, Any]) -> list[ImportedChat]:
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise _unreadable("it does not say which version of the format it has")
    if version > FORMAT_VERSION:
        raise _unreadable("a newer Slipstream wrote it")
    chats = content.get("chats")
    if not isinstance(chats, list):
        raise _unreadable("there is no list of chats in it")
    return [_our_chat(one) for one in chats]


def _our_chat(one: Any) -> ImportedChat:
    if not isinstance(one, dict):
        raise _unreadable("a chat in it is no object")
    head, said = one.get("chat"), one.get("messages")
    if not isinstance(head, dict) or not isinstance(said, list) or len(said) > _MOST_MESSAGES:
        raise _unreadable("a chat in it has no messages")
    chat = convert_leniently(head, Chat)
    messages = [
        convert_leniently(message, Message) if isinstance(message, dict) else None for message in said
    ]
    if chat is None or None in messages:
        raise _unreadable("a message in it says neither who spoke nor what")
    kept = [message for message in messages if message is not None]
    for message in kept:
        message.pieces = [Piece(clean_text(p.text), p.drafter, p.reasoning) for p in message.pieces]
    return _with_new_ids(chat, kept, chat.leaf)


def _with_new_ids(chat: Chat, messages: list[Message], leaf: int | None) -> ImportedChat:
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


# ---- ChatGPT: a tree of nodes by name; system and tool messages are left out


def _chatgpt(one: dict[str, Any]) -> ImportedChat | None:
    nodes = one["mapping"]
    if not isinstance(nodes, dict) or len(nodes) > _MOST_MESSAGES:
        raise _unreadable("a conversation in it has no messages")
    numbers = {name: number for number, name in enumerate(nodes, 1)}
    messages: dict[str, Message] = {}
    for name, node in nodes.items():
        if isinstance(node, dict) and (message := _chatgpt_message(node.get("message"))) is not None:
            message.id = numbers[name]
            messages[name] = message
    for name, message in messages.items():
        parent = _kept_ancestor(nodes, messages, name)
        message.parent = numbers[parent] if parent is not None else None
    if not messages:
        return None
    current = one.get("current_node")
    if isinstance(current, str) and current not in messages:
        current = _kept_ancestor(nodes, messages, current)
    created = _time(one.get("create_time"))
    title = one.get("title")
    first = next(iter(messages.values()))
    chat = Chat(title=one_line(clean_text(title)) if isinstance(title, str) else title_of(first.text))
    chat.title_given = isinstance(title, str) and bool(chat.title)
    if created is not None:
        chat.created_at = created
        chat.updated_at = _time(one.get("update_time")) or created
    return _with_new_ids(
        chat, list(messages.values()), numbers.get(current) if isinstance(current, str) else None
    )


def _chatgpt_message(said: Any) -> Message | None:
    """None for what a person never saw, and for what has no text."""
    if not isinstance(said, dict):
        return None
    author, content = said.get("author"), said.get("content")
    role = author.get("role") if isinstance(author, dict) else None
    if role not in ("user", "assistant") or not isinstance(content, dict):
        return None
    if said.get("recipient", "all") != "all" or content.get("content_type") not in (
        "text",
        "multimodal_text",
    ):
        return None
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    text = clean_text("\n\n".join(part for part in texts if part))
    if not text.strip():
        return None
    message = Message(role=role, pieces=[Piece(text)])
    created = _time(said.get("create_time"))
    if created is not None:
        message.created_at = created
    about = said.get("metadata")
    model = about.get("model_slug") if isinstance(about, dict) else None
    if role == "assistant" and isinstance(model, str):
        message.model = one_line(model)
    return message


def _kept_ancestor(nodes: dict[str, Any], messages: dict[str, Message], name: str) -> str | None:
    seen = {name}
    while isinstance(node := nodes.get(name), dict):
        parent = node.get("parent")
        if not isinstance(parent, str) or parent in seen:
            return None
        if parent in messages:
            return parent
        seen.add(parent)
        name = parent
    return None


def _time(value: Any) -> float | None:
    """Unix seconds that a calendar has."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**33:
        return float(value)
    return None
