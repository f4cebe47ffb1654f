"""chats.db: one SQLite file, brought to this version's form when opened. Knows rows, not chats.

What goes wrong is a ChatsError whose kind comes from SQLite's result code.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from app.chats.errors import ChatsError, from_sqlite
from app.chats.rows import ChatRow, MessageRow
from app.chats.schema import MIGRATIONS, Migration
from app.chats.search_text import MARK_END, MARK_START, SearchQuery, shown

log = logging.getLogger(__name__)

MOST_BACKUPS = 3
_BUSY_S = 5.0


class Changes(Struct):
    """What one transaction writes. A None in place of a row or value removes it, a chat with all
    that was said in it."""

    chats: dict[int, ChatRow | None] = msgspec.field(default_factory=dict)
    messages: dict[int, MessageRow | None] = msgspec.field(default_factory=dict)
    presets: dict[str, str | None] = msgspec.field(default_factory=dict)
    facts: dict[str, str | None] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.chats or self.messages or self.presets or self.facts)

    def add(self, later: Changes) -> None:
        """Take in what comes after; of each thing the last counts."""
        for name in ("chats", "messages", "presets", "facts"):
            getattr(self, name).update(getattr(later, name))


class FoundText(Struct, frozen=True):
    """Where a search found something. ``message`` None: in the title. ``marks`` are the ranges of
    characters in ``excerpt`` that were looked for."""

    chat: int
    message: int | None
    excerpt: str
    marks: tuple[tuple[int, int], ...]


class Database:
    """The open file, for any thread; one writes at a time, one reads, and one searches."""

    def __init__(
        self, path: Path, migrations: Sequence[Migration] = MIGRATIONS, *, read_only: bool = False
    ) -> None:
        """Opens or makes the file and migrates it, keeping a copy of the old one. ``read_only`` touches
        nothing, for a file that cannot be written and so is of this version. Raises ChatsError, after
        which the file is as it was."""
        self.path = path
        self._read_only = read_only
        # A connection that is closed while another thread is in it takes the program with it.
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._search_lock = threading.Lock()
        self._search: sqlite3.Connection | None = None
        self._closed = False
        self._write = _connect(path, read_only)
        try:
            with _sorted():
                if read_only:
                    self._check_version(migrations)
                else:
                    self._prepare(migrations)
            self._read = _connect(path, read_only)
        except BaseException:
            self._write.close()
            raise

    def close(self) -> None:
        """Waits for whoever is in it. Raises nothing: what is written is written."""
        with self._search_lock, contextlib.suppress(sqlite3.Error):
            self._closed = True
            if self._search is not None:
                self._search.close()
        for lock, connection in ((self._read_lock, self._read), (self._write_lock, self._write)):
            with lock, contextlib.suppress(sqlite3.Error):
                connection.close()

    # ---- writing

    def write(self, changes: Changes) -> None:
        """All of it or, where this raises ChatsError, nothing."""
        with self._write_lock, _sorted(), _transaction(self._write) as db:
            for id, chat in changes.chats.items():
                _write_chat(db, id, chat)
            for id, message in changes.messages.items():
                _write_message(db, id, message)
            for table, values in (("presets", changes.presets), ("facts", changes.facts)):
                _write_named(db, table, values)

    def purge(self) -> None:
        """Drop for good the chats that were deleted. Raises ChatsError."""
        with self._write_lock, _sorted(), _transaction(self._write) as db:
            for (id,) in db.execute("SELECT id FROM chats WHERE deleted_at IS NOT NULL").fetchall():
                _write_chat(db, id, None)

    def backup(self, name: str) -> Path:
        """A copy of the whole beside the file; of all copies the newest few are kept. Raises
        ChatsError or OSError."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        target = self.path.with_name(f"{self.path.stem}.{name}-{stamp}{self.path.suffix}")
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        try:
            with self._write_lock, _sorted(), contextlib.closing(sqlite3.connect(part)) as copy:
                self._write.backup(copy)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        for old in backups(self.path)[MOST_BACKUPS:]:
            with contextlib.suppress(OSError):
                old.unlink()
        return target

    def check(self) -> None:
        """Look through the whole file. Raises ChatsError when it is damaged."""
        with self._write_lock, _sorted():
            found = self._write.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ChatsError("damaged", "The file of your chats is damaged.")

    # ---- reading

    def chats(self) -> list[tuple[int, str]]:
        """Id and data of all chats that are not deleted. Raises ChatsError, as all below do."""
        return self._ask("SELECT id, data FROM chats WHERE deleted_at IS NULL")

    def messages(self, chat: int) -> list[tuple[int, int | None, str]]:
        """Id, parent and data of all messages of a chat, the older ones first."""
        return self._ask("SELECT id, parent, data FROM messages WHERE chat = ? ORDER BY id", (chat,))

    def unfinished(self) -> list[tuple[int, int, int | None, str]]:
        """Id, chat, parent and data of answers that were being written."""
        return self._ask(
            "SELECT id, chat, parent, data FROM messages WHERE state IN ('waiting', 'reading', 'writing')"
        )

    def presets(self) -> list[tuple[str, str]]:
        return self._ask("SELECT name, data FROM presets ORDER BY name")

    def facts(self) -> dict[str, str]:
        return dict(self._ask("SELECT name, value FROM facts"))

    def search(self, query: SearchQuery, most: int) -> list[FoundText]:
        """At most one place in a chat: its title, else its newest message that fits; the newest
        first. A later search ends an earlier one, which then has found nothing."""
        if query.match is None and not query.literals:
            return []
        if (running := self._search) is not None:
            with contextlib.suppress(sqlite3.Error):  # closed just now
                running.interrupt()
        with self._search_lock, _sorted():
            if self._closed:
                raise sqlite3.ProgrammingError("the file is closed")
            if self._search is None:
                self._search = _connect(self.path, self._read_only)
            try:
                return _search(self._search, query, most)
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                    return []
                raise

    def _ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]
        with self._read_lock, _sorted():
            return self._read.execute(statement, values).fetchall()

    # ---- opening

    def _prepare(self, migrations: Sequence[Migration]) -> None:
        db = self._write
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        newest = len(migrations)
        if version > newest:
            raise ChatsError(
                "newer",
                f"Your chats were last used by a newer Slipstream (their form is {version}, this one knows "
                f"{newest}). They are left as they are.",
            )
        if version == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise ChatsError("damaged", "The file of your chats is some other program's.")
        self._check_length()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA secure_delete = ON")
        if version < newest:
            self._migrate(version, migrations)
        db.execute("SELECT count(*) FROM chats").fetchone()

    def _check_version(self, migrations: Sequence[Migration]) -> None:
        if int(self._write.execute("PRAGMA user_version").fetchone()[0]) != len(migrations):
            raise ChatsError("read_only", "The file of your chats cannot be written.")

    def _check_length(self) -> None:
        """A file that was cut off reads well until its end is needed."""
        size = int(self._write.execute("PRAGMA page_size").fetchone()[0])
        count = int(self._write.execute("PRAGMA page_count").fetchone()[0])
        wal = self.path.with_name(f"{self.path.name}-wal")
        if not (wal.exists() and wal.stat().st_size) and self.path.stat().st_size < size * count:
            raise ChatsError("damaged", "The file of your chats is damaged: its end is missing.")

    def _migrate(self, version: int, migrations: Sequence[Migration]) -> None:
        if version:
            try:
                self.backup(f"before-v{len(migrations)}")
            except OSError as error:
                raise ChatsError(
                    "migration",
                    f"Your chats could not be copied before an update: {error.strerror or error}.",
                ) from error
        try:
            with _transaction(self._write) as db:
                # Another program may have done it since.
                now = int(db.execute("PRAGMA user_version").fetchone()[0])
                for step in migrations[now:]:
                    step(db)
                db.execute(f"PRAGMA user_version = {len(migrations)}")
        except sqlite3.Error as error:
            kind = from_sqlite(error).kind
            if not version or kind in ("damaged", "disk_full", "locked", "read_only"):
                raise
            raise ChatsError("migration", f"{_NOT_MIGRATED} {error}.") from error
        except Exception as error:
            raise ChatsError("migration", f"{_NOT_MIGRATED} {error}.") from error


_NOT_MIGRATED = "Your chats could not be brought to this version's form; they are as they were:"


def backups(path: Path) -> list[Path]:
    """Copies made of the file at ``path``, the newest first."""
    found = [*path.parent.glob(f"{path.stem}.b*-????????-??????{path.suffix}")]
    return sorted(found, key=lambda copy: copy.stem[-15:], reverse=True)


def _connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    # SQLite would need to write beside a file in WAL mode even to read it, unless told that nobody writes.
    name = f"{path.absolute().as_uri()}?mode=ro&immutable=1" if read_only else str(path)
    with _sorted():
        return sqlite3.connect(
            name, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=read_only
        )


@contextlib.contextmanager
def _sorted() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error) from error


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors, a full disk among them.
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _write_chat(db: sqlite3.Connection, id: int, row: ChatRow | None) -> None:
    if row is None:
        db.execute("DELETE FROM message_text WHERE rowid IN (SELECT id FROM messages WHERE chat = ?)", (id,))
        db.execute("DELETE FROM messages WHERE chat = ?", (id,))
        db.execute("DELETE FROM chat_text WHERE rowid = ?", (id,))
        db.execute("DELETE FROM chats WHERE id = ?", (id,))
        return
    db.execute(
        "INSERT INTO chats (id, updated_at, deleted_at, data) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
        "SET updated_at = excluded.updated_at, deleted_at = excluded.deleted_at, data = excluded.data",
        (id, row.updated_at, row.deleted_at, row.data),
    )
    _index(db, "chat_text", id, row.text)


def _write_message(db: sqlite3.Connection, id: int, row: MessageRow | None) -> None:
    if row is None:
        db.execute("DELETE FROM messages WHERE id = ?", (id,))
        db.execute("DELETE FROM message_text WHERE rowid = ?", (id,))
        return
    db.execute(
        "INSERT INTO messages (id, chat, parent, state, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) "
        "DO UPDATE SET chat = excluded.chat, parent = excluded.parent, state = excluded.state, "
        "data = excluded.data",
        (id, row.chat, row.parent, row.state, row.data),
    )
    _index(db, "message_text", id, row.text)


def _index(db: sqlite3.Connection, table: str, id: int, text: str | None) -> None:
    if text is None:
        return
    found = db.execute(f"SELECT text FROM {table} WHERE rowid = ?", (id,)).fetchone()
    if found is None:
        db.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (id, text))
    elif found[0] != text:
        db.execute(f"UPDATE {table} SET text = ? WHERE rowid = ?", (text, id))


def _write_named(db: sqlite3.Connection, table: str, values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            db.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
        else:
            db.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (name, value))


def _search(db: sqlite3.Connection, query: SearchQuery, most: int) -> list[FoundText]:
    found: dict[int, FoundText] = {}
    # The newest first, which is the index's own order backwards: no sorting of all that fits.
    for table, owner, condition in (
        ("chat_text", "t.rowid", ""),
        ("message_text", "m.chat", "JOIN messages m ON m.id = t.rowid "),
    ):
        where = ["c.deleted_at IS NULL"]
        values: list[object] = [MARK_START, MARK_END]
        if query.match is not None:
            where.append(f"{table} MATCH ?")
            values.append(query.match)
        for literal in query.literals:
            where.append("instr(lower(t.text), lower(?))")
            values.append(literal)
        excerpt = f"snippet({table}, 0, ?, ?, '…', 14)" if query.match else "? || ? || t.text"
        rows = db.execute(
            f"SELECT c.id, t.rowid, {excerpt} FROM {table} t {condition}JOIN chats c ON c.id = {owner} "
            f"WHERE {' AND '.join(where)} ORDER BY t.rowid DESC",
            values,
        )
        for chat, rowid, text in rows:
            if chat not in found:
                message = None if table == "chat_text" else rowid
                found[chat] = _excerpt(chat, message, text, query)
                if len(found) >= most:
                    return list(found.values())
    return list(found.values())


def _excerpt(chat: int, message: int | None, text: str, query: SearchQuery) -> FoundText:
    if query.match is None:
        plain = shown(text.removeprefix(MARK_START + MARK_END))
        literal = shown(query.literals[0])
        at = max(0, plain.lower().find(literal.lower()))
        start, end = max(0, at - 40), at + len(literal) + 60
        lead, tail = "…" if start else "", "…" if end < len(plain) else ""
        text = f"{lead}{plain[start:at]}{MARK_START}{plain[at : at + len(literal)]}{MARK_END}"
        text += f"{plain[at + len(literal) : end]}{tail}"
    marks: list[tuple[int, int]] = []
    clean = ""
    start = 0
    for character in shown(" ".join(text.split())):
        if character == MARK_START:
            start = len(clean)
        elif character == MARK_END:
            marks.append((start, len(clean)))
        else:
            clean += character
    return FoundText(chat, message, clean, tuple(marks))
