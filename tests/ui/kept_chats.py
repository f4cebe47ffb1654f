"""Whether the file of the chats is whole, and holds what was shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from app.chats.message import IN_PROGRESS, Message
from app.chats.store import ChatStore

Shown = tuple[tuple[int, str, str, str], ...]  # id, role, state and text of each message


def as_shown(messages: Sequence[Message]) -> Shown:
    return tuple((message.id, message.role, message.state, message.text) for message in messages)


def problems(path: Path, shown: Shown, chat: int | None) -> list[str]:
    """What is wrong with the file at ``path``, which no program has open. ``chat`` is the id of the chat
    in which ``shown`` was seen, None when nothing was kept of it."""
    found: list[str] = []
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        found += [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
        chats = {row[0] for row in database.execute("SELECT id FROM chats")}
        parents: dict[int, tuple[int, int | None]] = {
            row[0]: (row[1], row[2]) for row in database.execute("SELECT id, chat, parent FROM messages")
        }
        states = {row[0] for row in database.execute("SELECT DISTINCT state FROM messages")}
        texts = database.execute(
            "SELECT count(*) FROM messages WHERE id NOT IN (SELECT rowid FROM message_text)"
        ).fetchone()[0]
        lost = database.execute(
            "SELECT count(*) FROM message_text WHERE rowid NOT IN (SELECT id FROM messages)"
        ).fetchone()[0]
    finally:
        database.close()
    for id, (owner, parent) in parents.items():
        if owner not in chats:
            found.append(f"message {id} belongs to no chat")
        if parent is not None and parent not in parents:
            found.append(f"message {id} follows {parent}, which is not there")
        elif parent is not None and (parents[parent][0] != owner or parent >= id):
            found.append(f"message {id} follows {parent}, which it cannot")
    found += [f"a message is {state} for ever" for state in states if state in IN_PROGRESS]
    if texts or lost:
        found.append(f"the search misses {texts} messages and finds {lost} that are gone")
    store = ChatStore(path)
    try:
        found += [f"news at the next start: {news.text}" for news in store.take_news()]
        for kept in store.chats():
            conversation = store.conversation(kept)
            if kept.leaf is not None and conversation.get(kept.leaf) is None:
                found.append(f"chat {kept.id} ends with message {kept.leaf}, which is not there")
            if kept.id == chat and as_shown(conversation.messages) != shown:
                found.append(f"kept {as_shown(conversation.messages)}, but shown was {shown}")
        if chat is not None and store.get(chat) is None:
            found.append("the chat that was shown is gone")
    finally:
        store.close()
    return found
