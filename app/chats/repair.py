"""What to do with a chats file that is damaged: set it aside, begin anew, save what can be read."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from app.chats.chat import Chat
from app.chats.database import Changes, Database, backups
from app.chats.errors import ChatsError
from app.chats.rows import chat_row, message_row, read_chat, read_message
from app.chats.schema import MIGRATIONS, Migration
from app.chats.titles import title_of

log = logging.getLogger(__name__)

_MOST_ASIDE = 3


class Repair(Struct, frozen=True):
    """What came of a repair: where the damaged file lies, how many chats were saved from it, and how
    many more from a copy made earlier."""

    aside: Path
    saved: int
    from_backup: int

    @property
    def words(self) -> str:
        """For a person, in a sentence or two."""
        read = "No chat could be"
        if self.saved:
            read = "1 chat was" if self.saved == 1 else f"{self.saved:,} chats were"
        more = f", {self.from_backup:,} more from an earlier copy" if self.from_backup else ""
        return (
            f"The file of your chats was damaged. {read} read from it{more}. "
            f"The damaged file is kept as {self.aside.name}."
        )


def open_or_repair(
    path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> tuple[Database, Repair | None]:
    """The database at ``path``, made anew where the file there is damaged. Raises ChatsError for what
    that does not help against."""
    try:
        return Database(path, migrations), None
    except ChatsError as error:
        if error.kind != "damaged":
            raise
        log.warning("the chats are damaged: %s", error.__cause__ or error)
    return repair(path, migrations)


def repair(path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[Database, Repair]:
    """Set the file aside and begin a new one with what can be saved. The file must be closed. Raises
    ChatsError."""
    aside = _set_aside(path)
    database = Database(path, migrations)
    try:
        known: set[int] = set()
        saved = _save(database, aside, known)
        from_backup = 0
        for copy in backups(path)[:1]:
            from_backup = _save(database, copy, known)
    except BaseException:
        database.close()
        raise
    return database, Repair(aside, saved, from_backup)


def _set_aside(path: Path) -> Path:
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() // 1000 % 1_000_000:06}"
    aside = path.with_name(f"{path.stem}.corrupt-{stamp}{path.suffix}")
    try:
        path.replace(aside)
        # What is not in the file yet belongs to it; left behind, it would be played into the new one.
        for tail in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + tail).replace(aside.with_name(aside.name + tail))
    except OSError as error:
        raise ChatsError(
            "read_only", f"The damaged file of your chats cannot be set aside: {error.strerror or error}."
        ) from error
    others = sorted(set(path.parent.glob(f"{path.stem}.corrupt-*{path.suffix}")) - {aside})
    for file in others[: 1 - _MOST_ASIDE]:
        for tail in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                file.with_name(file.name + tail).unlink()
    return aside


def _save(database: Database, source: Path, known: set[int]) -> int:
    """Copy into ``database`` the chats of ``source`` that are not ``known`` yet; how many they were."""
    try:
        # It must not be made anew where it is not there; to play back its log it must be written.
        old = sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", timeout=1.0, uri=True)
    except sqlite3.Error:
        return 0
    with contextlib.closing(old):
        chats: dict[int, Chat] = {}
        for id, data in _rows(old, "id, data", "chats", "deleted_at IS NULL"):
            if isinstance(id, int) and isinstance(data, str) and id not in known:
                chat = read_chat(id, data)
                if chat is not None:
                    chats[id] = chat
        changes = Changes()
        for id, of, parent, data in _rows(old, "id, chat, parent, data", "messages", "TRUE"):
            if not (isinstance(id, int) and isinstance(of, int) and isinstance(data, str)) or of in known:
                continue
            message = read_message(id, parent if isinstance(parent, int) else None, data)
            if message is None:
                continue
            if of not in chats:  # its row is lost, what was said is not
                chats[of] = Chat(id=of, created_at=message.created_at, updated_at=message.created_at)
            chat = chats[of]
            if message.role == "user" and not chat.title:
                chat.title = title_of(message.text)
            changes.messages[id] = message_row(of, message)
    changes.chats.update({id: chat_row(chat) for id, chat in chats.items()})
    known.update(chats)
    if changes:
        database.write(changes)
    return len(chats)


def _rows(db: sqlite3.Connection, columns: str, table: str, where: str) -> Iterator[tuple[object, ...]]:
    """The rows before the first damaged place, and those behind the last."""
    seen: set[object] = set()
    for order in ("ASC", "DESC"):
        try:
            for row in db.execute(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY id {order}"):
                if row[0] not in seen:
                    seen.add(row[0])
                    yield row
            return
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            log.info("%s of the damaged chats, %s: %s", table, order, error)
