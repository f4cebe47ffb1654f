"""The list of chats: groups by time, what moves when something changes, thousands of rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chats.chat import Chat
from app.chats.database import FoundText
from app.chats.errors import ChatsError
from ui.chat.chat_groups import grouped
from ui.chat.chat_list import ChatList
from ui.chat.chat_search import ChatSearcher, brought_into_view
from ui.chat.sidebar import Sidebar
from ui.theme import Theme
from ui.widgets.undo_line import UndoLine

NOW = datetime(2026, 3, 10, 9, 30)


def chat(title: str, when: datetime = NOW, **values: object) -> Chat:
    return Chat(title=title, updated_at=when.timestamp(), **values)  # type: ignore[arg-type]


def rows(view: ChatList) -> list[str]:
    return [row.group.title if row.chat is None else row.chat.title for row in view.rows.rows()]


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> ChatList:
    view = ChatList(theme)
    qtbot.addWidget(view)
    view.resize(260, 400)
    view.show()
    return view


# ---- groups


def test_groups_by_time() -> None:
    chats = [
        chat("now", NOW),
        chat("midnight", datetime(2026, 3, 10)),
        chat("evening", datetime(2026, 3, 9, 23, 59)),
        chat("week", datetime(2026, 3, 3)),
        chat("before", datetime(2026, 3, 2, 23, 59)),
        chat("month", datetime(2026, 2, 28)),
        chat("last year", datetime(2025, 3, 5)),
    ]
    groups = grouped(reversed(chats), NOW)
    assert [(group.title, [one.title for one in group.chats]) for group in groups] == [
        ("Today", ["now", "midnight"]),
        ("Yesterday", ["evening"]),
        ("Previous 7 days", ["week"]),
        ("March", ["before"]),
        ("February", ["month"]),
        ("March 2025", ["last year"]),
    ]


def test_pins_come_first_then_folders_by_name() -> None:
    chats = [
        chat("loose"),
        chat("pinned in a folder", pinned=True, folder="b"),
        chat("two", folder="b"),
        chat("one", folder="A"),
    ]
    groups = grouped(chats, NOW)
    assert [(group.kind, group.title) for group in groups] == [
        ("pinned", "Pinned"),
        ("folder", "A"),
        ("folder", "b"),
        ("date", "Today"),
    ]
    assert [one.title for one in groups[0].chats] == ["pinned in a folder"]
    assert [one.title for one in groups[2].chats] == ["two"]


def test_a_clock_that_was_wrong_puts_a_chat_to_today() -> None:
    assert [group.title for group in grouped([chat("future", NOW + timedelta(days=40))], NOW)] == ["Today"]


def test_no_chats_no_groups() -> None:
    assert grouped([], NOW) == []


# ---- the list


def test_the_view_stays_where_it_was_when_a_chat_moves_up(view: ChatList) -> None:
    chats = [chat(f"chat {n}", NOW - timedelta(minutes=n)) for n in range(200)]
    view.show_chats(chats, NOW)
    view.setCurrentIndex(view.rows.index_of(chats[50].id))
    bar = view.verticalScrollBar()
    bar.setValue(1500)
    chats[120].updated_at = NOW.timestamp() + 1
    view.show_chats(chats, NOW)
    assert bar.value() == 1500
    assert view.rows.chat_at(view.currentIndex()) is chats[50]
    assert rows(view)[1] == "chat 120"


def test_a_row_is_as_high_as_its_text_needs(view: ChatList, theme: Theme) -> None:
    view.show_chats([chat("one")], NOW)
    small = view.visualRect(view.rows.index(1)).height()
    assert small >= QFontMetrics(view.font()).height() + 8


def test_titles_cannot_deceive_and_headings_cannot_be_chosen(view: ChatList) -> None:
    view.show_chats([chat("gpj\u202efdp.exe")], NOW)
    assert "U+202E" in str(view.rows.index(1).data(Qt.ItemDataRole.DisplayRole))
    assert view.rows.flags(view.rows.index(0)) == Qt.ItemFlag.NoItemFlags
    assert view.rows.flags(view.rows.index(1)) & Qt.ItemFlag.ItemIsSelectable


def test_a_folder_says_how_many_chats_it_has_and_whether_it_is_folded(view: ChatList) -> None:
    view.show_chats([chat("one", folder="Work"), chat("two", folder="Work")], NOW)
    spoken = Qt.ItemDataRole.AccessibleTextRole
    assert view.rows.index(0).data(spoken) == "Folder Work, 2 chats, unfolded"
    view.rows.fold("Work", True)
    assert view.rows.index(0).data(spoken) == "Folder Work, 2 chats, folded"
    assert rows(view) == ["Work"]


def test_the_shown_chat_becomes_the_current_row_once_it_is_there(view: ChatList) -> None:
    first, second = chat("first"), chat("second", NOW - timedelta(hours=1))
    view.show_chats([first], NOW)
    view.set_shown(second.id)  # not kept yet
    view.show_chats([first, second], NOW)
    view.set_shown(second.id)
    assert view.rows.chat_at(view.currentIndex()) is second
    view.setCurrentIndex(view.rows.index_of(first.id))
    view.set_shown(second.id)  # nothing new: the person's place in the list stays
    assert view.rows.chat_at(view.currentIndex()) is first


def test_five_thousand_chats_are_filled_and_scrolled_at_once(view: ChatList) -> None:
    """In this thread's own time: what other processes take says nothing about the window."""
    chats = [chat(f"chat {n} about some subject", NOW - timedelta(hours=n)) for n in range(5000)]
    began = time.thread_time()
    view.show_chats(chats, NOW)
    QApplication.processEvents()
    assert time.thread_time() - began < 0.3
    bar = view.verticalScrollBar()
    worst = 0.0
    for value in range(0, bar.maximum(), bar.maximum() // 60):
        began = time.thread_time()
        bar.setValue(value)
        QApplication.processEvents()
        worst = max(worst, time.thread_time() - began)
    assert worst < 0.05
    assert view.rows.rowCount() > 5000


# ---- searching


def test_the_first_mark_is_brought_into_view(theme: Theme, qapp: QApplication) -> None:
    metrics = QFontMetrics(qapp.font())
    text = "one two three four five six seven eight nine needle and more"
    at = text.index("needle")
    cut, marks = brought_into_view(text, [(at, at + 6)], 160, metrics)
    assert [cut[start:end] for start, end in marks] == ["needle"]
    assert cut.startswith("…") and metrics.horizontalAdvance(cut[: marks[0][1]]) < 160
    assert brought_into_view(text, [(0, 3)], 160, metrics) == (text, [(0, 3)])
    wide = "x" * 100 + "needle"
    cut, marks = brought_into_view(wide, [(100, 106)], 160, metrics)
    assert [cut[start:end] for start, end in marks] == ["needle"]


@pytest.fixture
def searcher() -> Iterator[ChatSearcher]:
    def search(text: str) -> list[FoundText]:
        if text == "broken":
            raise ChatsError("damaged", "The file of your chats is damaged.")
        return [FoundText(1, None, text, ())]

    searcher = ChatSearcher(search)
    yield searcher
    searcher.close()


def test_only_what_was_asked_for_last_is_told(searcher: ChatSearcher, qtbot: QtBot) -> None:
    heard: list[str] = []
    searcher.found.connect(lambda text, found: heard.append(text))
    for text in ("n", "ne", "needle"):
        searcher.ask(text)
    qtbot.waitUntil(lambda: heard == ["needle"])
    with qtbot.waitSignal(searcher.failed) as failed:
        searcher.ask("broken")
    assert failed.args == ["The file of your chats is damaged."]
    searcher.ask("given up")
    searcher.ask("")
    searcher.ask("last")
    qtbot.waitUntil(lambda: heard == ["needle", "last"])


def test_search_by_keys_alone(theme: Theme, qtbot: QtBot) -> None:
    chats = [chat("first"), chat("second")]
    sidebar = Sidebar(
        theme, lambda text: [FoundText(one.id, 7, f"say {text} now", ((4, 4 + len(text)),)) for one in chats]
    )
    qtbot.addWidget(sidebar)
    sidebar.show_chats(chats)
    sidebar.resize(260, 500)
    sidebar.show()
    qtbot.keyClicks(sidebar.search, "word")
    qtbot.waitUntil(lambda: sidebar.stack.currentWidget() is sidebar.results)
    sidebar.search.setFocus()
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Down)
    assert sidebar.results.hasFocus()
    qtbot.keyClick(sidebar.results, Qt.Key.Key_Down)
    with qtbot.waitSignal(sidebar.found) as found:
        qtbot.keyClick(sidebar.results, Qt.Key.Key_Return)
    assert found.args[0].chat == chats[1].id
    spoken = sidebar.results.rows.index(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "second: say word now"
    assert not sidebar.grab().isNull()  # the marks are drawn
    qtbot.keyClick(sidebar.results, Qt.Key.Key_Up)
    qtbot.keyClick(sidebar.results, Qt.Key.Key_Up)
    assert sidebar.search.hasFocus()
    sidebar.close_search()


# ---- undo


def test_the_undo_line_goes_by_itself_but_not_while_it_has_the_focus(theme: Theme, qtbot: QtBot) -> None:
    line = UndoLine(theme)
    qtbot.addWidget(line)
    line.offer("“one” was deleted.")
    assert line.isVisible() and line.button.accessibleName() == "Undo: “one” was deleted."
    line.activateWindow()
    line.button.setFocus()
    qtbot.waitUntil(line.button.hasFocus)
    line._timer.timeout.emit()
    assert line.isVisible()
    line.button.clearFocus()
    QApplication.sendEvent(line, QEvent(QEvent.Type.Leave))  # wherever the pointer is
    line._timer.timeout.emit()
    assert not line.isVisible()
