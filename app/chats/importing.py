"""Chats out of files: our own JSON, and what ChatGPT, LM Studio and Jan write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from app.chats.chat import Chat
from app.chats.export import FORMAT, FORMAT_VERSION
from app.chats.imported import MOST_MESSAGES, ImportedChat, seconds, unreadable, with_new_ids
from app.chats.message import Message, clean_text
from app.chats.other_programs import is_lm_studio, jan_chat, lm_studio_chat
from app.chats.rows import convert_leniently
from app.chats.titles import one_line, title_of
from app.protocol import Piece

MAX_BYTES = 512 * 1024 * 1024


def read_chats_file(path: Path) -> list[ImportedChat]:
    """Of Jan, messages.jsonl or the thread.json beside it. May be called from any thread. Raises
    ChatsError."""
    if path.suffix.lower() == ".jsonl":
        return _jan(path, path.with_name("thread.json"))
    if path.name == "thread.json" and (said := path.with_name("messages.jsonl")).is_file():
        return _jan(said, path)
    return read_chats(_bytes(path))


def read_chats(data: bytes) -> list[ImportedChat]:
    """The chats in the content of a file. Raises ChatsError for what is no such file."""
    content = _decoded(data)
    if isinstance(content, dict) and content.get("format") == FORMAT:
        chats = _ours(content)
    elif isinstance(content, list) and all(isinstance(one, dict) and "mapping" in one for one in content):
        chats = [chat for one in content if (chat := _chatgpt(one)) is not None]
    elif isinstance(content, dict) and "mapping" in content:
        chats = [chat for chat in [_chatgpt(content)] if chat is not None]
    elif is_lm_studio(content):
        chats = [chat for chat in [lm_studio_chat(content)] if chat is not None]
    else:
        raise unreadable("it is neither an export of Slipstream nor a chat of ChatGPT, LM Studio or Jan")
    if not chats:
        raise unreadable("there is no chat in it")
    return chats


def _jan(said: Path, thread: Path) -> list[ImportedChat]:
    lines = [_decoded(line) for line in _bytes(said).splitlines() if line.strip()]
    chat = jan_chat(lines, _decoded(_bytes(thread)) if thread.is_file() else None)
    if chat is None:
        raise unreadable("there is no chat in it")
    return [chat]


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise unreadable("it is larger than 512 MB")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error.strerror or str(error)) from error


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(f"it is no JSON ({error})") from error
    except RecursionError as error:
        raise unreadable("it is nested too deep") from error


def _ours(content: dict[str, Any]) -> list[ImportedChat]:
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise unreadable("it does not say which version of the format it has")
    if version > FORMAT_VERSION:
        raise unreadable("a newer Slipstream wrote it")
    chats = content.get("chats")
    if not isinstance(chats, list):
        raise unreadable("there is no list of chats in it")
    return [_our_chat(one) for one in chats]


def _our_chat(one: Any) -> ImportedChat:
    if not isinstance(one, dict):
        raise unreadable("a chat in it is no object")
    head, said = one.get("chat"), one.get("messages")
    if not isinstance(head, dict) or not isinstance(said, list) or len(said) > MOST_MESSAGES:
        raise unreadable("a chat in it has no messages")
    chat = convert_leniently(head, Chat)
    messages = [
        convert_leniently(message, Message) if isinstance(message, dict) else None for message in said
    ]
    if chat is None or None in messages:
        raise unreadable("a message in it says neither who spoke nor what")
    kept = [message for message in messages if message is not None]
    for message in kept:
        message.pieces = [Piece(clean_text(p.text), p.drafter, p.reasoning) for p in message.pieces]
    return with_new_ids(chat, kept, chat.leaf)


# ---- ChatGPT: a tree of nodes by name; system and tool messages are left out


def _chatgpt(one: dict[str, Any]) -> ImportedChat | None:
    nodes = one["mapping"]
    if not isinstance(nodes, dict) or len(nodes) > MOST_MESSAGES:
        raise unreadable("a conversation in it has no messages")
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
    created = seconds(one.get("create_time"))
    title = one.get("title")
    first = next(iter(messages.values()))
    chat = Chat(title=one_line(clean_text(title)) if isinstance(title, str) else title_of(first.text))
    chat.title_given = isinstance(title, str) and bool(chat.title)
    if created is not None:
        chat.created_at = created
        chat.updated_at = seconds(one.get("update_time")) or created
    return with_new_ids(
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
    created = seconds(said.get("create_time"))
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
