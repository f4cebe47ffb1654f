"""What may go wrong with the chats' file: killed programs, damage, full disks, other versions.

Cases K01, K03, K04.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from app.chats import database
from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.database import Changes, Database, backups
from app.chats.errors import ChatsError
from app.chats.message import Message
from app.chats.repair import open_or_repair
from app.chats.rows import chat_row
from app.chats.schema import MIGRATIONS, Migration
from app.chats.search_text import parse_query
from app.chats.store import ChatStore
from app.protocol import Piece
from tests.app.test_chats_store import found, make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


def kept(path: Path, *titles: str) -> None:
    """A file with these chats, closed."""
    store = ChatStore(path)
    for title in titles:
        make(store, f"question of {title}", f"answer of {title}", title=title)
    assert store.close()


def titles(store: ChatStore) -> list[str]:
    return sorted(chat.title for chat in store.chats())


def check(path: Path) -> None:
    """The file is sound, and index and rows tell the same."""
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        for table in ("chat_text", "message_text"):
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        lost = db.execute("SELECT count(*) FROM messages WHERE chat NOT IN (SELECT id FROM chats)").fetchone()
        assert lost[0] == 0
    db.close()


# ---- killed


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_program_leaves_whole_steps(path: Path, seed: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.chats_child", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    promised = 0
    for line in child.stdout:
        promised = int(line.split()[1])
        if promised >= 10 + 5 * seed:
            break
    child.kill()
    child.stdout.close()
    child.wait()
    store = ChatStore(path)
    assert store.problem is None
    [chat] = store.chats()
    messages = store.conversation(chat).messages
    assert len(messages) >= 2 * promised
    for i, message in enumerate(messages):
        assert message.role == ("assistant" if i % 2 else "user")
        assert not message.in_progress
        if i < 2 * promised and message.role == "assistant":
            assert message.text == "".join(f"word{word} " for word in range(200))
    assert store.flush(30)
    assert store.close()
    check(path)


def test_a_copy_taken_at_any_moment_opens(path: Path, tmp_path: Path) -> None:
    """As after a power cut: the file and its log as they were just then."""
    store = ChatStore(path)
    chooser = random.Random(7)
    for i in range(40):
        make(store, f"question {i}", "answer", title=f"chat {i}")
        if chooser.random() < 0.2:
            copy = tmp_path / f"copy{i}.db"
            for tail in ("-wal", ""):  # the log first: it may lack what the file has, never the reverse
                source = Path(f"{path}{tail}")
                if source.exists():
                    shutil.copyfile(source, f"{copy}{tail}")
            again = ChatStore(copy)
            assert again.problem is None
            for chat in again.chats():
                assert len(again.conversation(chat).messages) == 2
            again.close()
            check(copy)
    store.close()


# ---- damaged


def first_page_lost(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(bytes(4096) + data[4096:])


def half_lost(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def no_database(path: Path) -> None:
    path.write_bytes(b"this was never a database" * 500)


def middle_overwritten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(size // 4096 // 3, size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(4096))


@pytest.mark.parametrize("harm", [first_page_lost, half_lost, no_database, middle_overwritten])
def test_a_damaged_file_is_set_aside_and_the_program_starts(path: Path, harm: Callable[[Path], None]) -> None:
    kept(path, *(f"chat {i}" for i in range(300)))
    for copy in backups(path):
        copy.unlink()
    harm(path)
    damaged = path.read_bytes()
    store = ChatStore(path)
    for chat in store.chats():  # damage may show only where it is read
        store.conversation(chat)
    news = [one.text for one in store.take_news()]
    assert any("damaged" in text for text in news), news
    [aside] = path.parent.glob("chats.corrupt-*.db")
    assert aside.name in " ".join(news)
    assert aside.read_bytes()[: len(damaged)][-4096:] == damaged[-4096:]
    make(store, "works again", title="works again")
    assert found(store, "works") == ["works again"]
    assert store.close()
    check(path)


def test_rows_that_can_be_read_are_saved_from_a_damaged_file(path: Path) -> None:
    kept(path, *(f"chat {i}" for i in range(300)))
    for copy in backups(path):
        copy.unlink()
    with sqlite3.connect(path) as db:  # the index alone is damaged
        db.execute("UPDATE message_text_data SET block = x'00' WHERE id > 10")
    db.close()
    store = ChatStore(path)
    make(store, "question of somebody new", title="new")
    store.search("question")
    store.flush(30)
    store.take_news()
    assert len(store.chats()) == 301
    assert len(found(store, "question")) == 100
    assert store.close()
    check(path)


def test_what_the_damaged_file_has_lost_comes_from_the_last_copy(path: Path) -> None:
    kept(path, "first", "second")
    for copy in backups(path):
        copy.unlink()  # it may have been made before there were any chats
    store = ChatStore(path)
    end = time.monotonic() + 30
    while not backups(path):  # closing would not wait for one that is not begun
        assert time.monotonic() < end
        time.sleep(0.01)
    assert store.close()
    assert len(backups(path)) == 1
    first_page_lost(path)
    store = ChatStore(path)
    assert "2 more from an earlier copy" in store.take_news()[0].text
    assert titles(store) == ["first", "second"]
    assert found(store, "question") == ["second", "first"]
    store.close()


def test_a_foreign_log_beside_the_file_harms_nothing(path: Path) -> None:
    kept(path, "mine")
    Path(f"{path}-wal").write_bytes(b"\x37\x7f\x06\x82" + os.urandom(4000))
    store = ChatStore(path)
    assert titles(store) == ["mine"]
    store.close()


def test_another_programs_database_is_set_aside(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE things (x)")
    db.close()
    store = ChatStore(path)
    assert store.problem is None and not store.chats()
    assert len(list(path.parent.glob("chats.corrupt-*.db"))) == 1
    store.close()


def test_only_so_many_damaged_files_are_kept(path: Path) -> None:
    for _ in range(6):
        no_database(path)
        opened, repaired = open_or_repair(path)
        assert repaired is not None
        opened.close()
    assert len(list(path.parent.glob("chats.corrupt-*.db"))) == 3


# ---- cannot be written


def test_a_folder_in_its_place_is_said_and_chats_work_in_memory(path: Path) -> None:
    path.mkdir()
    store = ChatStore(path)
    assert store.problem is not None and store.problem.kind == "read_only"
    [news] = store.take_news()
    assert "until you close" in news.text
    chat = make(store, "still works")
    assert store.conversation(chat).messages[0].text == "still works"
    assert not store.saves
    store.close()
    assert path.is_dir()


class Limited(Database):
    """A database on a disk with room for a few pages more, until somebody makes room."""

    def limit(self, pages: int) -> None:
        count = self._write.execute("PRAGMA page_count").fetchone()[0]
        self._write.execute(f"PRAGMA max_page_count = {count + pages}")


def test_a_full_disk_keeps_what_is_on_the_screen_and_tries_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chats.repair.Database", Limited)
    told: list[None] = []
    store = ChatStore(path, on_news=lambda: told.append(None))
    before = make(store, "before")
    assert store.flush(30)
    assert store._file is not None
    limited = store._file._database
    assert isinstance(limited, Limited)
    limited.limit(2)
    chat = make(store, *("x" * 20_000 for _ in range(20)), title="large")
    assert not store.flush(30)
    [news] = store.take_news()
    assert news.error is not None and news.error.kind == "disk_full"
    assert "not saved yet" in news.text and store.problem is news.error
    assert told
    # Nothing of the step is there, what was there before is, and all of it works on screen.
    assert [id for id, _ in limited.chats()] == [before.id]
    assert len(store.conversation(chat).messages) == 20
    store.delete(before)
    limited.limit(100_000)
    store.retry()
    assert store.flush(30)
    [news] = store.take_news()
    assert news.saved and store.problem is None
    assert [id for id, _ in limited.chats()] == [chat.id]
    assert store.close()
    check(path)


def test_closing_on_a_full_disk_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.chats.repair.Database", Limited)
    store = ChatStore(path)
    assert store.flush(30)
    assert store._file is not None
    assert isinstance(store._file._database, Limited)
    store._file._database.limit(0)
    make(store, "x" * 100_000)
    assert not store.close()


def only_readable(store: ChatStore) -> None:
    """Old chats are there to be read, new ones in memory only, and that is said."""
    assert store.problem is not None and store.problem.kind == "read_only"
    assert "until you close" in store.take_news()[0].text
    [chat] = store.chats()
    assert [message.text for message in store.conversation(chat).messages] == [
        "question of old",
        "answer of old",
    ]
    assert [place.chat for place in store.search("question")] == [chat.id]
    make(store, "new", title="new")
    assert titles(store) == ["new", "old"]
    store.close()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_cannot_be_written_can_be_read(path: Path) -> None:
    kept(path, "old")
    path.chmod(stat.S_IRUSR)
    path.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        only_readable(ChatStore(path))
    finally:
        path.parent.chmod(stat.S_IRWXU)


def test_where_sqlite_may_not_write_chats_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a test that runs as root: SQLite itself refuses."""
    kept(path, "old")

    class Refusing(Database):
        def _prepare(self, migrations: Sequence[Migration]) -> None:
            self._write.execute("PRAGMA query_only = ON")
            self._write.execute("PRAGMA user_version = 1")

    monkeypatch.setattr("app.chats.repair.Database", Refusing)
    before = path.read_bytes()
    only_readable(ChatStore(path))
    assert path.read_bytes() == before


def test_who_holds_the_file_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_S", 0.05)
    store = ChatStore(path)
    assert store.flush(30)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    make(store, "waits", title="waits")
    assert not store.flush(30)
    [news] = store.take_news()
    assert news.error is not None and news.error.kind == "locked"
    other.execute("COMMIT")
    other.close()
    assert store.flush(30)
    assert store.close()
    assert titles_in(path) == ["waits"]


def titles_in(path: Path) -> list[str]:
    store = ChatStore(path)
    found = titles(store)
    store.close()
    return found


# ---- other versions


def test_a_newer_file_is_left_alone(path: Path) -> None:
    kept(path, "of the future")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    store = ChatStore(path)
    assert store.problem is not None and store.problem.kind == "newer"
    assert "newer Slipstream" in store.take_news()[0].text
    make(store, "in memory")
    assert store.close()
    assert path.read_bytes() == before
    assert not list(path.parent.glob("chats.corrupt-*"))


def added_column(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE chats ADD COLUMN colour TEXT")


def added_table(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE colours (name TEXT)")
    db.execute("INSERT INTO colours VALUES ('blue')")


def failing(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM chats")
    raise RuntimeError("step two does not work")


def version(path: Path) -> int:
    with sqlite3.connect(path) as db:
        number = int(db.execute("PRAGMA user_version").fetchone()[0])
    db.close()
    return number


def test_an_older_file_is_copied_and_brought_up(path: Path) -> None:
    kept(path, *(f"chat {i}" for i in range(20)))
    for copy in backups(path):
        copy.unlink()
    opened = Database(path, [*MIGRATIONS, added_column, added_table])
    assert len(opened.chats()) == 20
    opened.write(Changes(chats={1: chat_row(Chat(id=1, title="new"))}))
    opened.close()
    assert version(path) == len(MIGRATIONS) + 2
    [copy] = backups(path)
    assert version(copy) == len(MIGRATIONS)
    old = Database(copy)
    assert len(old.chats()) == 20
    old.close()


def test_a_step_that_fails_leaves_the_old_file(path: Path) -> None:
    kept(path, "first", "second")
    with pytest.raises(ChatsError, match="step two") as caught:
        Database(path, [*MIGRATIONS, added_column, failing, added_table])
    assert caught.value.kind == "migration"
    assert version(path) == len(MIGRATIONS)
    assert titles_in(path) == ["first", "second"]
    check(path)


def test_a_program_killed_in_mid_migration_leaves_the_old_file(path: Path) -> None:
    kept(path, "first", "second")
    code = (
        "import os, pathlib, signal, sys\n"
        "from app.chats.database import Database\n"
        "from app.chats.schema import MIGRATIONS\n"
        "def dies(db):\n"
        "    db.execute('DELETE FROM chats')\n"
        "    db.execute('CREATE TABLE half (x)')\n"
        "    os.kill(os.getpid(), getattr(signal, 'SIGKILL', signal.SIGTERM))\n"
        "Database(pathlib.Path(sys.argv[1]), [*MIGRATIONS, dies])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False, capture_output=True)
    assert ended.returncode != 0
    assert version(path) == len(MIGRATIONS)
    assert titles_in(path) == ["first", "second"]
    check(path)


def test_only_so_many_copies_are_kept(path: Path) -> None:
    kept(path, "one")
    for i in range(6):
        Path(f"{path.with_suffix('')}.backup-2020010{i}-000000.db").write_bytes(b"")
    opened = Database(path)
    newest = opened.backup("backup")
    opened.close()
    assert len(backups(path)) == database.MOST_BACKUPS
    assert backups(path)[0] == newest


def test_values_of_another_version_cost_only_themselves(path: Path) -> None:
    kept(path, "mine")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE chats SET data = json_set(data, '$.pinned', 'maybe', '$.colour', 'blue')")
        db.execute("UPDATE messages SET data = json_set(data, '$.stats', 7, '$.seed', 'x')")
        db.execute("INSERT INTO messages VALUES (5, (SELECT id FROM chats), NULL, 'done', 'no json')")
        db.execute("INSERT INTO messages VALUES (6, (SELECT id FROM chats), NULL, 'done', '{}')")
    db.close()
    store = ChatStore(path)
    [chat] = store.chats()
    assert (chat.title, chat.pinned) == ("mine", False)
    assert [message.text for message in store.conversation(chat).messages] == [
        "question of mine",
        "answer of mine",
    ]
    store.close()


def test_a_streaming_answer_is_written_seldom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small pieces, few transactions."""
    writes: list[Changes] = []
    store = ChatStore(path)
    chat, conversation = Chat(title="stream"), Conversation()
    store.add(chat, conversation)
    answer = conversation.add(Message(role="assistant", state="writing"))
    store.keep(chat, answer)
    assert store.flush(30)
    assert store._file is not None and store._file._database is not None
    real = store._file._database.write

    def counted(changes: Changes) -> None:
        writes.append(changes)
        real(changes)

    monkeypatch.setattr(store._file._database, "write", counted)
    for i in range(2000):
        answer.append(Piece(f"{i} "))
        store.keep_soon(chat, answer)
    answer.state = "done"
    store.keep(chat, answer)
    assert store.flush(30)
    assert 1 <= len(writes) <= 5
    store.close()
    again = ChatStore(path)
    assert again.conversation(again.chats()[0]).messages[0].text == answer.text
    again.close()


def test_a_file_that_is_closed_under_others_takes_nobody_with_it(path: Path) -> None:
    """It is closed to be repaired while other threads read, search, write and look through it."""
    kept(path, *(f"chat {i} of many words" for i in range(200)))
    for _ in range(20):
        opened = Database(path)
        started = threading.Barrier(5)
        works = (opened.chats, partial(opened.search, parse_query("words"), 50), opened.check, opened.purge)
        threads = [threading.Thread(target=_until_closed, args=(work, started)) for work in works]
        for thread in threads:
            thread.start()
        started.wait()
        opened.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    check(path)


def _until_closed(work: Callable[[], object], started: threading.Barrier) -> None:
    started.wait()
    with contextlib.suppress(ChatsError):
        while True:
            work()
