"""Chats of LM Studio and Jan, out of the files in which these programs keep them.

LM Studio has a JSON file for each conversation, whose turns have versions; Jan a folder with ``thread.json``
and ``messages.jsonl``. What is in them beside text is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from app.chats.chat import Chat
from app.chats.imported import MOST_MESSAGES, ImportedChat, seconds, unreadable, with_new_ids
from app.chats.message import Message, clean_text
from app.chats.titles import one_line, title_of
from app.protocol import Piece

_LM_STUDIO_PROMPT = "llm.prediction.systemPrompt"
_THINK, _THOUGHT = "<think>", "</think>"


# ---- LM Studio


def is_lm_studio(content: Any) -> bool:
    """Whether the content of a JSON file is a conversation of LM Studio."""
    turns = content.get("messages") if isinstance(content, dict) else None
    return isinstance(turns, list) and all(isinstance(turn, dict) and "versions" in turn for turn in turns)


def lm_studio_chat(content: dict[str, Any]) -> ImportedChat | None:
    """With all versions of each turn; None where nothing was said. Raises ChatsError."""
    messages: list[Message] = []
    parent: int | None = None
    for turn in content["messages"]:
        versions, selected = turn["versions"], turn.get("currentlySelected", 0)
        shown: int | None = None
        for place, version in enumerate(versions if isinstance(versions, list) else ()):
            message = _lm_studio_message(version)
            if message is None:
                continue
            message.id, message.parent = len(messages) + 1, parent
            messages.append(message)
            if shown is None or place == selected:
                shown = message.id
        if len(messages) > MOST_MESSAGES:
            raise unreadable("it has too many messages")
        parent = shown if shown is not None else parent
    if not messages:
        return None
    times = [content.get(name) for name in ("createdAt", "userLastMessagedAt", "assistantLastMessagedAt")]
    chat = _chat(content.get("name"), messages, times)
    chat.system_prompt = _lm_studio_prompt(content)
    chat.pinned = content.get("pinned") is True
    return with_new_ids(chat, messages, parent)


def _lm_studio_message(version: Any) -> Message | None:
    if not isinstance(version, dict) or version.get("role") not in ("user", "assistant"):
        return None
    steps = version.get("steps")
    blocks = steps if isinstance(steps, list) else [version]
    pieces: list[Piece] = []
    for block in blocks:
        text = _text(block.get("content")) if isinstance(block, dict) else ""
        if text.strip():
            style = block.get("style")
            thinks = isinstance(style, dict) and style.get("type") == "thinking"
            between = "\n\n" if pieces and pieces[-1].reasoning == thinks else ""
            pieces.append(Piece(between + text, None, thinks))
    if not pieces:
        return None
    message = Message(role=version["role"], pieces=pieces)
    sender = version.get("senderInfo")
    name = sender.get("senderName") if isinstance(sender, dict) else None
    if message.role == "assistant" and isinstance(name, str):
        message.model = one_line(clean_text(name))
    return message


def _lm_studio_prompt(content: dict[str, Any]) -> str | None:
    settings = content.get("perChatPredictionConfig")
    fields = settings.get("fields") if isinstance(settings, dict) else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and field.get("key") == _LM_STUDIO_PROMPT:
            prompt = field.get("value")
            break
    else:
        prompt = content.get("systemPrompt")
    return clean_text(prompt) if isinstance(prompt, str) and prompt.strip() else None


# ---- Jan


def jan_chat(lines: Sequence[Any], thread: Any) -> ImportedChat | None:
    """Of the decoded lines of a messages.jsonl and the thread.json beside it, whatever that is; None where
    nothing was said. Raises ChatsError."""
    if len(lines) > MOST_MESSAGES:
        raise unreadable("it has too many messages")
    said = [line for line in lines if isinstance(line, dict) and line.get("role") in ("user", "assistant")]
    said.sort(key=lambda line: _moment(line.get("created_at")) or 0.0)
    messages: list[Message] = []
    for line in said:
        text = _text(line.get("content"))
        if not text.strip():
            continue
        message = Message(role=line["role"], pieces=_thought_and_said(text))
        message.id = len(messages) + 1
        message.parent = messages[-1].id if messages else None
        message.created_at = _moment(line.get("created_at")) or message.created_at
        messages.append(message)
    if not messages:
        return None
    head = thread if isinstance(thread, dict) else {}
    times = [head.get("created"), head.get("updated"), *(line.get("created_at") for line in said)]
    return with_new_ids(_chat(head.get("title"), messages, times), messages, messages[-1].id)


def _thought_and_said(text: str) -> list[Piece]:
    begin = text.lstrip()
    if not begin.startswith(_THINK) or _THOUGHT not in begin:
        return [Piece(text)]
    thought, _, said = begin.removeprefix(_THINK).partition(_THOUGHT)
    pieces = [Piece(thought.strip("\n"), None, True), Piece(said.lstrip("\n"))]
    return [piece for piece in pieces if piece.text.strip()]


# ---- both


def _chat(title: Any, messages: Sequence[Message], times: Iterable[Any]) -> Chat:
    """``times`` are when it began and when something was said in it, in milliseconds or seconds."""
    chat = Chat(title=one_line(clean_text(title)) if isinstance(title, str) else "")
    chat.title_given = bool(chat.title)
    if not chat.title:
        chat.title = title_of(messages[0].text)
    known = [moment for time in times if (moment := _moment(time)) is not None]
    if known:
        chat.created_at, chat.updated_at = known[0], max(known)
    return chat


def _text(content: Any) -> str:
    """The parts of a message that are text, which both programs write alike but for one level."""
    if isinstance(content, str):
        return clean_text(content)
    texts: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "text":
            text = part.get("text")
            text = text.get("value") if isinstance(text, dict) else text
            if isinstance(text, str) and text:
                texts.append(text)
    return clean_text("\n\n".join(texts))


def _moment(value: Any) -> float | None:
    """Unix seconds, of those or of milliseconds."""
    known = seconds(value)
    if known is None and isinstance(value, int | float) and not isinstance(value, bool):
        known = seconds(value / 1000)
    return known
