"""All chats out of the window into a file and back, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app import paths
from app.worker.fake_script import FakeReply
from tests.ui.chats import WAIT, answered, fill_home, ready, say, settled, texts, titles
from tests.ui.conftest import MakeWindow
from ui.main_window import CHATS, SETTINGS, MainWindow
from ui.settings.settings_page import SettingsPage

_MANY = 45  # more than are added at a time


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    fill_home(paths.data_dir().parent, {f"chat {n}": [f"question {n}", f"answer {n}"] for n in range(_MANY)})
    window = make_window(FakeReply(text="{prompt}!"))
    ready(window, qtbot)
    return window


def said(window: MainWindow, words: str) -> bool:
    return any(words in text for text in (*window.chat.notices(), *window.notices.texts()))


def test_all_chats_are_written_and_what_is_gone_comes_back(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "all.json"
    window.chat.files.export_all(path, "json")
    qtbot.waitUntil(lambda: said(window, f"{_MANY} chats were exported to {path}."), timeout=WAIT)
    store, keep = window.session.store, window.session.controller.chats
    for chat in store.chats()[:30]:
        keep.delete(chat.id)
    assert len(store) == _MANY - 30
    window.chat.files.import_files([path])
    qtbot.waitUntil(lambda: said(window, "30 chats were imported. 15 more were here already."), timeout=WAIT)
    assert sorted(chat.title for chat in store.chats()) == sorted(f"chat {n}" for n in range(_MANY))
    assert len(titles(window)) == _MANY + 1
    number = window.session.controller.chat.title.removeprefix("chat ")
    assert texts(window) == [f"question {number}", f"answer {number}"]
    window.chat.files.import_files([path])
    qtbot.waitUntil(lambda: said(window, "All these chats are here already."), timeout=WAIT)
    assert len(store) == _MANY


def test_what_cannot_be_written_or_read_is_a_card_that_offers_to_try_again(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window.show_page(SETTINGS)
    window.chat.files.export_all(tmp_path / "no folder" / "all.zip", "markdown")
    qtbot.waitUntil(lambda: window.chat.messages.problem_card() is not None, timeout=WAIT)
    assert window.shown == CHATS
    card = window.chat.messages.problem_card()
    assert card is not None and "could not be exported" in card.what
    card.buttons["export_chats_markdown"].click()
    dialog = window.findChild(QFileDialog)
    assert isinstance(dialog, QFileDialog) and dialog.defaultSuffix() == "zip"
    assert window.chat.messages.problem_card() is None
    dialog.reject()
    (tmp_path / "none.json").write_text("no chats")
    window.chat.files.import_files([tmp_path / "none.json"])
    qtbot.waitUntil(lambda: window.chat.messages.problem_card() is not None, timeout=WAIT)
    card = window.chat.messages.problem_card()
    assert card is not None and list(card.buttons) == ["import_chats", "dismiss"]


def test_of_several_files_those_that_can_be_read_are_taken(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    good, bad = tmp_path / "1758392316161.conversation.json", tmp_path / "bad.json"
    turn = {"versions": [{"role": "user", "content": [{"type": "text", "text": "from there"}]}]}
    good.write_text(json.dumps({"name": "Moved here", "messages": [turn]}))
    bad.write_text("[]]")
    window.chat.files.import_files([good, bad])
    qtbot.waitUntil(lambda: window.chat.messages.problem_card() is not None, timeout=WAIT)
    card = window.chat.messages.problem_card()
    assert card is not None and "bad.json" in card.what
    assert said(window, "1 chat was imported.") and texts(window) == ["from there"]
    assert "Moved here" in titles(window)


def test_settings_and_palette_lead_there(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(SETTINGS)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    menu = page.chats.write.menu()
    for action, suffix in zip(menu.actions(), ("json", "zip"), strict=True):
        action.trigger()
        dialog = window.findChildren(QFileDialog)[-1]
        assert dialog.defaultSuffix() == suffix and dialog.acceptMode() == QFileDialog.AcceptMode.AcceptSave
        dialog.reject()
    page.chats.take.click()
    dialog = window.findChildren(QFileDialog)[-1]
    assert dialog.fileMode() == QFileDialog.FileMode.ExistingFiles
    dialog.reject()
    assert {"Import chats", "Export all chats as JSON", "Export all chats as Markdown"} <= {
        entry.title for entry in window.shell.entries()
    }


def test_an_answer_that_is_being_written_is_exported_as_far_as_it_is(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(FakeReply(text="word " * 4000, tokens_per_second=200))
    ready(window, qtbot)
    window.chat.composer.set_text("a story")
    window.chat.composer.button.click()
    qtbot.waitUntil(lambda: len(texts(window)) == 2 and len(texts(window)[-1]) > 40, timeout=WAIT)
    path = tmp_path / "all.json"
    window.chat.files.export_all(path, "json")
    qtbot.waitUntil(lambda: said(window, "1 chat was exported"), timeout=WAIT)
    content = json.loads(path.read_text())
    answer = content["chats"][0]["messages"][1]
    assert "word word" in "".join(str(piece) for piece in answer["pieces"])
    window.session.controller.stop()
    answered(window, qtbot)


def test_the_reading_place_is_kept_for_the_next_start(make_window: MakeWindow, qtbot: QtBot) -> None:
    said = [f"message {n} " + "some more words " * 60 for n in range(40)]
    fill_home(paths.data_dir().parent, {"long": said, "short": ["a", "b"]})
    window = make_window(FakeReply(text="!"))
    ready(window, qtbot)
    chats = {chat.title: chat.id for chat in window.session.store.chats()}
    window.open_chat(chats["long"])
    settled(window, qtbot)
    for _ in range(3):
        qtbot.keyClick(window.chat.messages, Qt.Key.Key_PageUp)
    settled(window, qtbot)
    place = window.chat.messages.place()
    assert place is not None
    window.close()
    kept = window.session.controller.chat.place
    assert kept == (place.message, place.offset)
    again = make_window(FakeReply(text="!"))
    ready(again, qtbot)
    assert again.session.controller.chat.title == "long"
    settled(again, qtbot)
    back = again.chat.messages.place()
    # between two messages is the end of the first
    assert back is not None and back.message == place.message and abs(back.offset - place.offset) <= 16
    say(again, qtbot, "at the end again")
    again.close()
    third = make_window(FakeReply(text="!"))
    ready(third, qtbot)
    settled(third, qtbot)
    assert third.chat.messages.following
