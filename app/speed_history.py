"""How fast models were lately, by model pair and kind of text: counts and times, never a word of a chat.

One SQLite file that window and command line share. What goes wrong with it is said once and never
in the way of an answer.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from app import paths
from app.protocol import Done, LoadedFile, ModelReport
from app.text_kind import KINDS, TextKind, kind_of
from drafting.statistics import Statistics
from model_store.file_key import file_key

log = logging.getLogger(__name__)

HALF_LIFE = 20  # answers of a pair and kind after which one counts half in what was "lately"
_VERSION = 1
_BUSY_S = 5.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WHOLE = ""  # in place of a link: the answers as a whole
_NONE = ""  # in place of a drafter: no model drafted

_T = TypeVar("_T")


class SpeedHistoryError(Exception):
    """The file cannot be used, for a reason outside of this program, in words."""


class Model(Struct, frozen=True):
    """``key`` names the file wherever it lies, ``name`` is what it was last called."""

    key: str
    name: str


class Figures(Struct):
    """Sums over answers, prefill apart; "lately" they are weighted and no whole numbers.

    Of a link: the passes that verified its drafts and the answers it drafted in. Times in seconds;
    ``plain_s`` is what the target alone would have needed for the same tokens, 0 if unknown.
    """

    answers: float = 0.0
    passes: float = 0.0
    tokens: float = 0.0
    proposals: float = 0.0
    drafted: float = 0.0
    accepted: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    rest_s: float = 0.0
    plain_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.draft_s + self.verify_s + self.rest_s

    @property
    def tokens_per_second(self) -> float | None:
        return self.tokens / self.seconds if self.seconds > 0 else None

    @property
    def speedup(self) -> float | None:
        """Over plain decoding by its measured cost; None where that is not known."""
        return (self.plain_s + self.rest_s) / self.seconds if self.plain_s > 0 and self.seconds > 0 else None

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.drafted if self.drafted > 0 else None

    @property
    def tokens_per_pass(self) -> float | None:
        return self.tokens / self.passes if self.passes > 0 else None

    def __add__(self, other: Figures) -> Figures:
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Figures(*(a + b for a, b in zip(mine, others, strict=True)))


class Spans(Struct):
    """The same figures over all answers, and with recent answers weighing most."""

    ever: Figures
    lately: Figures
    last_used: float  # Unix seconds


class KindHistory(Struct):
    """One model pair on one kind of text; ``links`` by name, those that drafted most first."""

    target: Model
    drafter: Model | None
    kind: TextKind
    whole: Spans
    links: dict[str, Spans]


_COLUMNS = tuple(field.name for field in msgspec.structs.fields(Figures))
_SPANS = ("ever", "lately")


class SpeedHistory:
    """The file. Each call opens it anew, so that any thread and any process may use it."""

    def __init__(
        self,
        on_notice: Callable[[str], None],
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``on_notice`` gets a line for the person, each once, from whatever thread calls."""
        self._on_notice = on_notice
        self._path = path
        self._clock = clock
        self._told: set[str] = set()

    def record(self, model: ModelReport, done: Done) -> None:
        """Count a finished answer. Never raises for what is wrong with the file."""
        stats = done.stats
        if stats.completion_tokens <= stats.first_pass_tokens or stats.decode_s <= 0:
            return
        kind = kind_of(done.text or done.reasoning, done.repeated)
        target = _model(model.path, model.name, model.size_bytes, model.file)
        drafter = None
        if model.draft_model_path is not None:
            drafter = _model(model.draft_model_path, Path(model.draft_model_path).stem, 0, model.draft_file)
        try:
            self._do(lambda db: self._add(db, target, drafter, kind, stats))
        except SpeedHistoryError as error:
            self._tell(f"The speed of this answer is not kept: {error}.")

    def read(self) -> list[KindHistory]:
        """All there is, by target, drafter and kind. Raises SpeedHistoryError."""
        return self._do(_read, begin="BEGIN") if self._file().exists() else []

    def forget(self, targets: Iterable[str] | None = None) -> int:
        """Drop the figures of these targets' keys, or all; how many answers those were.

        Raises SpeedHistoryError."""
        chosen = None if targets is None else set(targets)
        return self._do(lambda db: _forget(db, chosen)) if self._file().exists() else 0

    # ---- inside

    def _file(self) -> Path:
        """Raises SpeedHistoryError when there is no folder to keep it in."""
        try:
            return self._path or paths.data_dir() / "speed.sqlite3"
        except OSError as error:
            raise SpeedHistoryError(_words(error)) from error

    def _do(self, action: Callable[[sqlite3.Connection], _T], begin: str = "BEGIN IMMEDIATE") -> _T:
        """Run ``action`` in one transaction. A damaged file is set aside and a new one begun."""
        path = self._file()
        found = _identity(path)
        try:
            with _open(path, begin) as db:
                return action(db)
        except _Foreign:
            pass
        except sqlite3.Error as error:
            if _code(error) not in _DAMAGED:
                raise SpeedHistoryError(_words(error)) from error
            log.info("the speed history is damaged: %s", error)
        try:
            # Another process may have been faster; its new file is left alone.
            if found == _identity(path):
                self._set_aside(path)
            with _open(path, begin) as db:
                return action(db)
        except (_Foreign, sqlite3.Error, OSError) as error:
            raise SpeedHistoryError(_words(error)) from error

    def _set_aside(self, path: Path) -> None:
        aside = path.with_suffix(f".damaged{path.suffix}")
        path.replace(aside)
        with contextlib.suppress(FileNotFoundError):  # it would be played back into the new file
            Path(f"{path}-journal").replace(f"{aside}-journal")
        self._tell(f"The speed history was damaged. It begins anew; the old file is {aside.name}.")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._on_notice(text)

    def _add(
        self, db: sqlite3.Connection, target: Model, drafter: Model | None, kind: TextKind, stats: Statistics
    ) -> None:
        pair = (target.key, drafter.key if drafter else _NONE, kind)
        db.executemany(
            "INSERT INTO models VALUES (?, ?) ON CONFLICT DO UPDATE SET name = excluded.name",
            [(model.key, model.name) for model in (target, drafter) if model],
        )
        fade = ", ".join(f"{column} = {column} * :rate" for column in _COLUMNS)
        where = "target = :target AND drafter = :drafter AND kind = :kind AND span = 'lately'"
        keys = dict(zip(("target", "drafter", "kind"), pair, strict=True))
        db.execute(f"UPDATE figures SET {fade} WHERE {where}", {"rate": 0.5 ** (1 / HALF_LIFE), **keys})
        marks = ", ".join("?" * (len(_COLUMNS) + 6))
        sums = ", ".join(f"{column} = {column} + excluded.{column}" for column in _COLUMNS)
        now = self._clock()
        db.executemany(
            f"INSERT INTO figures VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET last_used = excluded.last_used, {sums}",
            [
                (*pair, link, span, now, *msgspec.structs.astuple(figures))
                for link, figures in _figures(stats)
                for span in _SPANS
            ],
        )


class BackgroundHistory:
    """The history on a thread of its own, for a caller that must not wait for a disk. What is asked for
    is done in turn: who reads sees what was recorded before. Once closed, futures are cancelled."""

    def __init__(self, history: SpeedHistory) -> None:
        self._history = history
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="speed-history")
        self._closed = False

    def record(self, model: ModelReport, done: Done) -> None:
        """Call it from one thread only, the one that calls ``close``."""
        if not self._closed:
            self._pool.submit(self._write, model, done)

    def read(self) -> Future[list[KindHistory]]:
        """All there is. Fails with SpeedHistoryError."""
        return self._later(self._history.read)

    def forget(self, targets: Iterable[str] | None = None) -> Future[int]:
        """Drop the figures of these targets' keys, or all; how many answers those were. Fails with
        SpeedHistoryError."""
        return self._later(lambda: self._history.forget(targets))

    def _later(self, action: Callable[[], _T]) -> Future[_T]:
        if not self._closed:
            return self._pool.submit(action)
        nothing: Future[_T] = Future()
        nothing.cancel()
        return nothing

    def close(self) -> None:
        """Returns when everything is written."""
        self._closed = True
        self._pool.shutdown()

    def _write(self, model: ModelReport, done: Done) -> None:
        try:
            self._history.record(model, done)
        except Exception:
            log.exception("an answer's speed could not be counted")


class _Foreign(Exception):
    """A database, but not one of ours."""


@contextlib.contextmanager
def _open(path: Path, begin: str) -> Iterator[sqlite3.Connection]:
    """A transaction, committed at the end. Raises sqlite3.Error, _Foreign, SpeedHistoryError."""
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        if _version(db) < _VERSION:
            db.execute("BEGIN IMMEDIATE")
            _create(db)
            db.execute("COMMIT")
        db.execute(begin)
        yield db
        db.execute("COMMIT")
    finally:
        db.close()


def _version(db: sqlite3.Connection) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > _VERSION:
        raise SpeedHistoryError("the file was written by a newer version of this program")
    return version


def _create(db: sqlite3.Connection) -> None:
    if _version(db) == _VERSION:
        return  # another process has just done it
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise _Foreign("this is some other program's file")
    columns = ", ".join(f"{column} REAL NOT NULL" for column in _COLUMNS)
    db.execute("CREATE TABLE models (key TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID")
    db.execute(
        "CREATE TABLE figures (target TEXT NOT NULL, drafter TEXT NOT NULL, kind TEXT NOT NULL, "
        f"link TEXT NOT NULL, span TEXT NOT NULL, last_used REAL NOT NULL, {columns}, "
        "PRIMARY KEY (target, drafter, kind, link, span)) WITHOUT ROWID"
    )
    db.execute(f"PRAGMA user_version = {_VERSION}")


def _figures(stats: Statistics) -> Iterator[tuple[str, Figures]]:
    """What one answer adds, as a whole and by link."""
    yield (
        _WHOLE,
        Figures(
            answers=1,
            passes=max(0, stats.target_passes - 1),  # the first one belongs to the prompt
            tokens=stats.completion_tokens - stats.first_pass_tokens,
            proposals=sum(counts.proposals for counts in stats.by_drafter.values()),
            drafted=stats.drafted,
            accepted=stats.accepted,
            draft_s=stats.draft_s,
            verify_s=stats.verify_s,
            rest_s=stats.rest_s,
            plain_s=stats.plain_s,
        ),
    )
    for link, counts in stats.by_drafter.items():
        yield (
            link,
            Figures(
                answers=1,
                passes=counts.proposals,
                tokens=counts.pass_tokens,
                proposals=counts.proposals,
                drafted=counts.drafted,
                accepted=counts.accepted,
                draft_s=counts.draft_s,
                verify_s=counts.verify_s,
                rest_s=counts.rest_s,
                plain_s=counts.plain_s,
            ),
        )


def _read(db: sqlite3.Connection) -> list[KindHistory]:
    names: dict[str, str] = dict(db.execute("SELECT key, name FROM models"))
    found: dict[tuple[str, str, TextKind], dict[str, Spans]] = {}
    for target, drafter, kind, link, span, last_used, *values in db.execute(
        "SELECT * FROM figures WHERE span IN (?, ?)", _SPANS
    ):
        links = found.setdefault((target, drafter, kind), {})
        spans = links.setdefault(link, Spans(Figures(), Figures(), last_used))
        setattr(spans, span, Figures(*values))
    histories = [
        KindHistory(
            target=Model(target, names.get(target, target)),
            drafter=Model(drafter, names.get(drafter, drafter)) if drafter != _NONE else None,
            kind=kind,
            whole=links.pop(_WHOLE),
            links=dict(sorted(links.items(), key=lambda link: (-link[1].ever.drafted, link[0]))),
        )
        for (target, drafter, kind), links in found.items()
        if kind in KINDS and _WHOLE in links
    ]
    return sorted(histories, key=_place)


def _place(history: KindHistory) -> tuple[str, str, str, int]:
    drafter = history.drafter.name if history.drafter else ""
    return (history.target.name.casefold(), history.target.key, drafter, KINDS.index(history.kind))


def _forget(db: sqlite3.Connection, targets: set[str] | None) -> int:
    answers = 0
    for target, count in db.execute(
        "SELECT target, sum(answers) FROM figures WHERE link = ? AND span = 'ever' GROUP BY target", (_WHOLE,)
    ).fetchall():
        if targets is None or target in targets:
            answers += round(count)
            db.execute("DELETE FROM figures WHERE target = ?", (target,))
    db.execute(
        "DELETE FROM models WHERE key NOT IN (SELECT target FROM figures UNION SELECT drafter FROM figures)"
    )
    return answers


def _model(path: str, name: str, size: int, file: LoadedFile | None) -> Model:
    if file is not None:
        return Model(file.key, name)
    try:
        return Model(file_key(Path(path)), name)
    except OSError:  # gone since it was loaded
        return Model(f"{name}, {size} bytes", name)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _code(error: Exception) -> int | None:
    """SQLite's primary result code."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _words(error: Exception) -> str:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another program holds on to the file"
        case sqlite3.SQLITE_FULL:
            return "the disk is full"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "its file cannot be opened or written"
    return str(getattr(error, "strerror", None) or error)
