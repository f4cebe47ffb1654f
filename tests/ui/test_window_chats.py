"""The window over a chats' file that is damaged, cannot be written or was left in mid-answer (K01, K04)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app import paths
from app.chats.store import ChatStore
from app.worker.fake_script import FakeReply
from tests.app.test_chats_faults import Limited, first_page_lost, kept
from tests.ui.chats import WAIT, answered, ready, say, texts
from tests.ui.conftest import MakeWindow


@pytest.fixture
def path() -> Path:
    """Of the file that the window opens."""
    return paths.data_dir() / "chats.db"


def test_a_damaged_file_is_a_notice_and_the_window_works(
    make_window: MakeWindow, qtbot: QtBot, path: Path
) -> None:
    kept(path, "before")
    first_page_lost(path)
    window = make_window(FakeReply(text="still here"))
    ready(window, qtbot)
    assert any("damaged" in text for text in window.chat.notices())
    say(window, qtbot, "hi")
    assert texts(window)[-2:] == ["hi", "still here"]


def test_without_a_file_that_can_be_opened_chats_work_and_it_is_said(
    make_window: MakeWindow, qtbot: QtBot, path: Path
) -> None:
    path.mkdir()
    window = make_window(FakeReply(text="still here"))
    ready(window, qtbot)
    assert any("until you close" in text for text in window.chat.notices())
    say(window, qtbot, "hi")
    assert texts(window) == ["hi", "still here"]
    assert [chat.title for chat in window.session.store.chats()] == ["hi"]


def test_a_full_disk_is_a_card_and_saving_again_works(
    make_window: MakeWindow, qtbot: QtBot, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chats.repair.Database", Limited)
    window = make_window(FakeReply(text="x" * 12_000, tokens_per_second=1e6))
    ready(window, qtbot)
    store = window.session.store
    assert store.flush(30)
    assert store._file is not None
    limited = store._file._database
    assert isinstance(limited, Limited)
    limited.limit(0)
    say(window, qtbot, "hi")
    qtbot.waitUntil(lambda: window.chat.messages.problem_card() is not None, timeout=WAIT)
    card = window.chat.messages.problem_card()
    assert card is not None
    assert texts(window) == ["hi", "x" * 12_000]
    limited.limit(100_000)
    [button] = [button for button in card.findChildren(QPushButton) if "again" in button.text()]
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: store.saved and store.problem is None, timeout=WAIT)
    assert window.chat.messages.problem_card() is None
    window.close()
    again = ChatStore(path)
    assert [len(m.text) for m in again.conversation(again.chats()[0]).messages] == [2, 12_000]
    again.close()


def test_an_answer_that_was_cut_by_closing_goes_on_at_the_next_start(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    story = " ".join(f"w{i:03}" for i in range(2000))
    window = make_window(FakeReply(text=story, tokens_per_second=100))
    ready(window, qtbot)
    window.chat.composer.set_text("a story, please")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(texts(window)[-1]) > 50, timeout=WAIT)
    window.close()
    window = make_window(FakeReply(text=" and so it ended"))
    ready(window, qtbot)
    question, cut = texts(window)
    assert question == "a story, please" and story.startswith(cut) and len(cut) > 50
    answer = window.session.controller.conversation.messages[-1]
    assert answer.state == "interrupted" and answer.problem is not None
    assert window.session.controller.continue_answer()
    answered(window, qtbot)
    assert texts(window)[-1] == f"{cut} and so it ended"
    assert answer.state == "done" and answer.problem is None
