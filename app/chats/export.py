"""A chat as a file for others to read: Markdown of what is shown, or JSON of everything."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.chats.titles import file_name

ExportKind = Literal["markdown", "json"]
SUFFIXES: dict[ExportKind, str] = {"markdown": ".md", "json": ".json"}
FORMAT = "slipstream-chats"
FORMAT_VERSION = 1


class ExportedChat(Struct, kw_only=True):
    """A chat with the messages of all its branches, the older ones first."""

    chat: Chat
    messages: Sequence[Message]


class ExportedFile(Struct, kw_only=True):
    """The JSON file."""

    format: str = FORMAT
    version: int = FORMAT_VERSION
    chats: Sequence[ExportedChat]


def suggested_name(chat: Chat, kind: ExportKind) -> str:
    """A file name that every system takes."""
    return file_name(chat.label, SUFFIXES[kind])


def exported(chat: Chat, conversation: Conversation, kind: ExportKind) -> bytes:
    """The file's content."""
    if kind == "json":
        return as_json([(chat, conversation)])
    return as_markdown(chat, conversation).encode("utf-8", "replace")


def as_json(chats: Iterable[tuple[Chat, Conversation]]) -> bytes:
    """All branches with everything that is known of each message; importing.py reads it."""
    file = ExportedFile(
        chats=[ExportedChat(chat=chat, messages=conversation.everything) for chat, conversation in chats]
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=1)


def as_markdown(chat: Chat, conversation: Conversation) -> str:
    """The branch that is shown, thoughts folded."""
    parts = [f"# {_plain(chat.label)}"]
    if chat.system_prompt:
        parts.append("\n".join(f"> {line}".rstrip() for line in chat.system_prompt.splitlines()))
    for message in conversation.messages:
        if message.role == "user":
            parts.append("## You")
        else:
            parts.append(f"## {_plain(message.model or 'Answer')}")
        if thoughts := message.reasoning.strip():
            parts.append(f"<details>\n<summary>Thoughts</summary>\n\n{thoughts}\n\n</details>")
        if text := message.text.strip("\n"):
            parts.append(text)
        if message.role == "assistant" and message.incomplete:
            parts.append("*(The answer ends here.)*")
    day = time.strftime("%Y-%m-%d", time.localtime(chat.created_at))
    parts.append(f"---\n\n{day}, Slipstream")
    return "\n\n".join(parts) + "\n"


def _plain(title: str) -> str:
    """``title`` as a heading that shows it as it is."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#" else c for c in title)
