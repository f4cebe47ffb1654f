"""Chats dragged within their list: what Qt would send for it, and what becomes of the chats."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QPoint, Qt
from PySide6.QtWidgets import QInputDialog
from pytestqt.qtbot import QtBot

from app import paths
from tests.ui.chats import fill_home, id_of, titles
from tests.ui.conftest import MakeWindow
from tests.ui.dragging import dropped, held_over, moved
from ui.chat.chat_drag import carried
from ui.chat.chat_list import ChatList
from ui.main_window import MainWindow

MOVE = Qt.DropAction.MoveAction


def three_chats(make_window: MakeWindow) -> MainWindow:
    fill_home(paths.data_dir().parent, {"one": ["a"], "two": ["b"], "three": ["c"]})
    return make_window()


def drag(window: MainWindow, title: str, onto: str) -> bool:
    """A chat onto the row with this text; whether it was taken."""
    rows = window.chat.sidebar.list
    chat = window.session.store.get(id_of(window, title))
    assert chat is not None
    data = carried(chat)
    place = titles(window).index(onto)
    at = rows.visualRect(rows.rows.index(place)).center()
    return dropped(rows.viewport(), data, at, MOVE)


def test_a_chat_is_dragged_into_folders_and_onto_the_pinned_ones(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    keep = window.session.controller.chats
    keep.move(id_of(window, "one"), "Work")
    keep.pin(id_of(window, "two"), True)
    assert titles(window) == ["# Pinned", "two", "# Work", "one", "# Today", "three"]
    assert drag(window, "three", "# Work")
    assert titles(window)[:2] == ["# Pinned", "two"] and set(titles(window)[3:]) == {"one", "three"}
    assert not drag(window, "three", "one")  # it is there already
    assert drag(window, "one", "two")  # any row stands for its group
    assert set(titles(window)[1:3]) == {"one", "two"}
    assert drag(window, "two", "# Work")  # out of the pinned ones
    assert titles(window)[:2] == ["# Pinned", "one"] and set(titles(window)[3:]) == {"two", "three"}
    keep.move(id_of(window, "three"), "")
    assert drag(window, "two", "# Today")
    assert window.session.store.folders() == ["Work"]  # the pinned one is in it still
    assert not drag(window, "two", "three")
    assert drag(window, "one", "# Today")
    assert window.session.store.folders() == [] and titles(window)[0] == "# Today"


def test_a_folded_folder_takes_a_chat(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    window.session.controller.chats.move(id_of(window, "one"), "Work")
    window.chat.sidebar.list.rows.fold("Work", True)
    assert drag(window, "two", "# Work")
    assert titles(window) == ["# Work", "# Today", "three"]


def test_places_that_are_not_there_yet_are_offered_while_a_chat_is_dragged(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    rows = window.chat.sidebar.list
    bar = rows.drop_bar
    one = window.session.store.get(id_of(window, "one"))
    assert one is not None
    assert bar.isHidden()
    bar.show_for(one)
    assert bar.geometry().bottom() == rows.rect().bottom() and bar.width() == rows.width()
    with held_over(bar.pin, carried(one), QPoint(5, 5), MOVE) as wanted:
        assert wanted and bar.pin.property("lit")
    assert not bar.pin.property("lit")
    assert dropped(bar.pin, carried(one), QPoint(5, 5), MOVE)
    assert titles(window)[:2] == ["# Pinned", "one"]
    bar.show_for(one)
    assert bar.pin.isHidden()  # it is pinned
    assert dropped(bar.folder, carried(one), QPoint(5, 5), MOVE)
    qtbot.waitUntil(lambda: rows.findChild(QInputDialog) is not None)
    dialog = rows.findChild(QInputDialog)
    assert isinstance(dialog, QInputDialog)
    dialog.setTextValue("Trips")
    dialog.accept()
    assert titles(window)[:2] == ["# Trips", "one"]


def test_files_and_chats_of_another_window_fall_nowhere(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    rows: ChatList = window.chat.sidebar.list
    text, stranger = QMimeData(), QMimeData()
    text.setText("three")
    stranger.setData("application/x-slipstream-chat", b"17")
    window.session.controller.chats.pin(id_of(window, "one"), True)
    for data in (text, stranger):
        assert not dropped(rows.viewport(), data, rows.visualRect(rows.rows.index(0)).center(), MOVE)
    assert titles(window)[:2] == ["# Pinned", "one"]


def test_the_group_that_would_take_it_is_framed(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    window.session.controller.chats.move(id_of(window, "one"), "Work")
    rows = window.chat.sidebar.list
    two = window.session.store.get(id_of(window, "two"))
    assert two is not None
    before = rows.viewport().grab().toImage()
    at = rows.visualRect(rows.rows.index(0)).center()
    heading = rows.visualRect(rows.rows.index(0))
    edge = QPoint(heading.center().x(), heading.top())
    with held_over(rows.viewport(), carried(two), at, MOVE) as wanted:
        assert wanted
        assert rows.viewport().grab().toImage().pixelColor(edge) != before.pixelColor(edge)
        nowhere = QPoint(5, rows.viewport().height() - 5)
        assert not moved(rows.viewport(), carried(two), nowhere, MOVE)
        assert rows.viewport().grab().toImage().pixelColor(edge) == before.pixelColor(edge)
        assert moved(rows.viewport(), carried(two), at, MOVE)
    assert rows.viewport().grab().toImage().pixelColor(edge) == before.pixelColor(edge)


def test_what_was_dragged_can_be_taken_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = three_chats(make_window)
    qtbot.waitUntil(lambda: len(titles(window)) == 4)
    keep = window.session.controller.chats
    keep.move(id_of(window, "one"), "Work")
    keep.pin(id_of(window, "two"), True)
    before = titles(window)
    undo = window.chat.sidebar.undo
    for title, onto, words in (
        ("three", "# Work", "“three” is in “Work” now."),
        ("two", "# Work", "“two” is in “Work” now."),
        ("one", "# Pinned", "“one” is pinned now."),
        ("one", "# Today", "“one” is in no folder now."),
    ):
        assert drag(window, title, onto) and titles(window) != before
        assert undo.isVisible() and undo.text == words
        undo.button.click()
        assert titles(window) == before and undo.isHidden()
    window.chat.sidebar.undo_asked.emit()  # there is nothing more to take back
    assert titles(window) == before
