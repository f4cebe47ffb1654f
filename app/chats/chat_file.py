"""The chats' file while the program runs: read at once, written by a thread, repaired where need be."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from app.chats.database import Changes, Database, backups
from app.chats.errors import ChatsError
from app.chats.repair import open_or_repair, repair
from app.chats.writer import Writer

log = logging.getLogger(__name__)

BACKUP_AGE_S = 7 * 24 * 3600.0
_RUNNING = "running"  # a fact that is there from opening to closing
_T = TypeVar("_T")


class StoreNews(Struct, frozen=True):
    """Something to tell a person. ``error`` is set when chats are not being saved, ``saved`` when
    they are again; ``reload``: the list of chats has to be shown anew."""

    text: str
    error: ChatsError | None = None
    saved: bool = False
    reload: bool = False


class ChatFile:
    """What goes wrong is told, and the rest goes on as well as it can: without writing, or without a
    file at all."""

    def __init__(
        self, path: Path, tell: Callable[[StoreNews], None], clock: Callable[[], float] = time.time
    ) -> None:
        """``tell`` is called from whatever thread. Raises nothing for what is wrong with the file."""
        self._tell = tell
        self._clock = clock
        self._lock = threading.RLock()  # held while the database is written or replaced
        self._database: Database | None = None
        self._writer: Writer | None = None
        self._repaired = False
        self._crashed = False
        self.problem: ChatsError | None = None
        """Why nothing can be written since the file was opened."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database, repaired = open_or_repair(path)
            self._crashed = _RUNNING in self._database.facts()
        except (ChatsError, OSError) as error:
            self._go_without(path, error)
            return
        self._writer = Writer(self._write, self._saving_changed)
        self.put(Changes(facts={_RUNNING: "1"}))
        if repaired is not None:
            self._repaired = True
            tell(StoreNews(repaired.words))

    @property
    def saves(self) -> bool:
        """There is a file to write to, be it one that cannot be written just now."""
        return self._writer is not None

    @property
    def reads(self) -> bool:
        """There is a file to read from."""
        return self._database is not None

    @property
    def idle(self) -> bool:
        """Everything is on disk."""
        return self._writer is not None and self._writer.idle

    def read(self, ask: Callable[[Database], _T]) -> _T | None:
        """What ``ask`` gets from the database; None where there is none. Raises ChatsError."""
        database = self._database
        if database is None:
            return None
        try:
            return ask(database)
        except ChatsError as error:
            with self._lock:  # a repair that is under way closed it
                if self._database is database and not (error.kind == "damaged" and self._repair(database)):
                    raise
        # It was repaired, by this call or while it ran.
        database = self._database
        return ask(database) if database is not None else None

    def put(self, changes: Changes) -> None:
        """Write this as soon as possible, all of it or nothing."""
        if self._writer is not None:
            self._writer.put(changes)

    def put_soon(self, id: int, make: Callable[[], Changes]) -> None:
        """Write what ``make`` gives within a second or so; see Writer."""
        if self._writer is not None:
            self._writer.put_soon(id, make)

    def look_after(self) -> None:
        """Have done in the background what may be done once after the start: a look at the whole file
        where the program did not end well, deleted chats dropped, a copy where the last is old."""
        if self._writer is not None:
            self._writer.run_idle(self._look_after)

    def retry(self) -> None:
        """Try again to write what could not be written."""
        if self._writer is not None:
            self._writer.retry()

    def flush(self, timeout: float) -> bool:
        """Wait until everything is on disk; False when it is not by then."""
        return self._writer is not None and self._writer.flush(timeout)

    def close(self) -> bool:
        """Write what is left and end; False when something could not be written."""
        written = True
        if self._writer is not None:
            self.put(Changes(facts={_RUNNING: None}))
            written = self._writer.close()
            self._writer = None
        if self._database is not None:
            self._database.close()
            self._database = None
        return written

    # ---- inside

    def _go_without(self, path: Path, failure: ChatsError | OSError) -> None:
        """Nothing will be saved; what there is may still be read."""
        log.warning("chats are kept in memory only: %s", failure.__cause__ or failure)
        if isinstance(failure, ChatsError):
            error = failure
        else:
            why = failure.strerror or str(failure)
            error = ChatsError("read_only", f"Your chats cannot be opened: {why}.")
        if self._database is not None:
            self._database.close()
            self._database = None
        if error.kind == "read_only" and path.is_file():
            try:
                self._database = Database(path, read_only=True)
            except ChatsError as reading:
                log.warning("nor can they be read: %s", reading.__cause__ or reading)
        self.problem = error
        text = f"{error.message} What you write now is kept until you close Slipstream."
        self._tell(StoreNews(text, error=error))

    def _look_after(self) -> None:
        database = self._database
        if database is None:
            return
        try:
            if self._crashed:
                database.check()
            database.purge()
            newest = next(iter(backups(database.path)), None)
            if newest is None or self._clock() - newest.stat().st_mtime > BACKUP_AGE_S:
                database.backup("backup")
        except ChatsError as error:
            log.info("the chats could not be looked after: %s", error)
            if error.kind == "damaged":
                self._repair(database)
        except OSError as error:
            log.info("the chats could not be copied: %s", error)

    def _write(self, changes: Changes) -> None:
        with self._lock:
            database = self._database
            if database is None:
                raise ChatsError("damaged", "The file of your chats is damaged.")
            try:
                database.write(changes)
            except ChatsError as error:
                if error.kind != "damaged" or not self._repair(database):
                    raise
                assert self._database is not None
                self._database.write(changes)

    def _repair(self, damaged: Database) -> bool:
        """Once for each start: what fails again is not the file's fault. Whether there is a good file
        now."""
        with self._lock:
            if self._database is not damaged:
                return self._database is not None
            if self._repaired:
                return False
            self._repaired = True
            damaged.close()
            try:
                self._database, result = repair(damaged.path)
            except ChatsError as error:
                self._database = None
                self._tell(StoreNews(error.message, error=error))
                return False
        self._tell(StoreNews(result.words, reload=True))
        return True

    def _saving_changed(self, error: ChatsError | None) -> None:
        if error is None:
            self._tell(StoreNews("Your chats are saved again.", saved=True))
            return
        text = "What is on the screen is not saved yet: that is tried again until you close Slipstream."
        self._tell(StoreNews(f"{error.message} {text}", error=error))
