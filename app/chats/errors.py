"""What can go wrong with the chats' file, sorted by whose matter it is and said in a sentence."""

from __future__ import annotations

import sqlite3
from typing import Literal

ChatsErrorKind = Literal[
    "newer",  # a newer version of the program wrote the file; it is left alone
    "damaged",
    "disk_full",
    "read_only",  # the file or its folder cannot be written, or not be opened at all
    "locked",  # another program holds on to it
    "migration",  # it could not be brought to this version's form; it is as it was
    "unreadable",  # a file to import is not what it should be
    "internal",  # our fault
]

_KINDS: dict[int, ChatsErrorKind] = {
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_CANTOPEN: "read_only",
    sqlite3.SQLITE_PERM: "read_only",
    sqlite3.SQLITE_IOERR: "read_only",
}
_WORDS: dict[ChatsErrorKind, str] = {
    "damaged": "The file of your chats is damaged.",
    "disk_full": "The disk is full.",
    "locked": "Another program holds on to the file of your chats.",
    "read_only": "The file of your chats cannot be written.",
}


class ChatsError(Exception):
    """``message`` is a sentence for a person."""

    def __init__(self, kind: ChatsErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def from_sqlite(error: sqlite3.Error) -> ChatsError:
    """By SQLite's result code, never by its words."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = _KINDS.get(code & 0xFF, "internal") if code is not None else "internal"
    return ChatsError(kind, _WORDS.get(kind) or f"The chats could not be kept: {error}.")
