"""The tables of chats.db, as a list of migrations that is only ever added to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

Migration = Callable[[sqlite3.Connection], None]


def _first(db: sqlite3.Connection) -> None:
    # Columns are what is asked for in SQL; ``data`` is the whole, as JSON.
    db.execute(
        "CREATE TABLE chats (id INTEGER PRIMARY KEY, updated_at REAL NOT NULL, deleted_at REAL, "
        "data TEXT NOT NULL)"
    )
    db.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, chat INTEGER NOT NULL, parent INTEGER, "
        "state TEXT NOT NULL, data TEXT NOT NULL)"
    )
    db.execute("CREATE INDEX messages_of_chat ON messages (chat, id)")
    db.execute(
        "CREATE INDEX messages_in_progress ON messages (id) WHERE state IN ('waiting', 'reading', 'writing')"
    )
    for table in ("chat_text", "message_text"):  # rowid: the id in chats or messages
        db.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, tokenize='unicode61 remove_diacritics 2')")
    db.execute("CREATE TABLE presets (name TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID")
    db.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")


MIGRATIONS: Sequence[Migration] = (_first,)
"""Migration n brings a file from ``user_version`` n to n + 1."""
