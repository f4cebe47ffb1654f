"""A short run of tests.ui.random_actions: nothing breaks, and what was shown is what was kept."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from app.worker.fake_script import FakeScript
from tests.ui.conftest import MakeWindow
from tests.ui.kept_chats import problems
from tests.ui.random_actions import SCRIPT, Person, Watch

STEPS = 300


@pytest.mark.parametrize("seed", [1])
def test_whatever_a_person_does(
    make_window: MakeWindow, private_home: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    window = make_window(script=SCRIPT, offline=True)
    person = Person(window, seed, tmp_path / "files")
    with Watch() as watch:
        try:
            person.run(range(STEPS))
            shown, chat = person.end()
        finally:
            person.close()
    assert not watch.found, "\n".join(watch.found)
    assert problems(private_home / "data" / "chats.db", shown, chat) == []


def test_a_file_that_is_not_what_was_shown_is_noticed(
    make_window: MakeWindow, private_home: Path, tmp_path: Path
) -> None:
    window = make_window(script=FakeScript())
    person = Person(window, 5, tmp_path / "files")
    person.run(range(40))
    shown, _ = person.end()
    person.close()
    path = private_home / "data" / "chats.db"
    assert problems(path, shown, 12345)[-1] == "the chat that was shown is gone"
    database = sqlite3.connect(path)
    database.execute("UPDATE messages SET parent = 99 WHERE id = (SELECT max(id) FROM messages)")
    database.commit()
    database.close()
    assert any("follows 99, which is not there" in one for one in problems(path, shown, None))
