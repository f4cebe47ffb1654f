"""The speed page over the real pipe and the real file."""

from __future__ import annotations

import sqlite3

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app import paths
from app.speed_history import SpeedHistory
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.conftest import MakeWindow
from tests.ui.speed.test_speed_panel import ask
from ui.main_window import CHATS, SPEED, MainWindow
from ui.speed.speed_page import EMPTY, SpeedPage

REPLY = FakeReply(
    text="Plain words about nothing. " * 20,
    tokens_per_second=2000,
    drafts=((4, 3), (6, 2)),
    drafters=("cache", "map-k"),
)
SCRIPT = FakeScript(replies=(REPLY,), plain_tokens_per_second=500)


@pytest.fixture
def window(make_window: MakeWindow) -> MainWindow:
    window = make_window(script=SCRIPT)
    window.resize(1100, 800)
    return window


def shown(window: MainWindow) -> SpeedPage:
    window.show_page(SPEED)
    page = window.page(SPEED)
    assert isinstance(page, SpeedPage)
    return page


def texts(page: SpeedPage) -> list[list[str]]:
    """All rows of the table, from top to bottom."""
    found: list[list[str]] = []
    waiting = [page.table.invisibleRootItem()]
    while waiting:
        item = waiting.pop()
        if item is not page.table.invisibleRootItem():
            found.append([item.text(column) for column in range(page.table.columnCount())])
        waiting += [item.child(at) for at in reversed(range(item.childCount()))]
    return found


def test_empty_until_an_answer_ends_and_then_its_numbers(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    qtbot.wait(0)
    assert page.body.currentWidget() is page.empty and page.empty.text() == EMPTY
    assert not page.forget.isVisible()
    ask(window, qtbot)  # the page is seen meanwhile
    qtbot.waitUntil(lambda: page.body.currentWidget() is page.table)
    stats = window.session.controller.conversation.messages[-1].stats
    assert stats is not None
    rows = texts(page)
    assert [row[0] for row in rows][:2] == ["toy", "Prose"]
    assert {row[0] for row in rows[2:]} == {"cache", "map-k"}
    prose = rows[1]
    assert prose[1:3] == ["1", f"{stats.drafted}"]
    assert prose[3] == f"{stats.accepted / stats.drafted * 100:.0f} %"
    assert prose[6] == f"{stats.speedup:.1f}x"
    for name, *_, drafted, accepted in [(row[0], row[2], row[3]) for row in rows[2:]]:
        counts = stats.by_drafter[name]
        assert (drafted, accepted) == (
            f"{counts.drafted}",
            f"{counts.accepted / counts.drafted * 100:.0f} %",
        )
    (history,) = SpeedHistory(lambda text: None).read()
    assert history.whole.ever.answers == 1


def test_it_reads_anew_when_it_is_seen_again(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    window.show_page(CHATS)
    ask(window, qtbot)
    ask(window, qtbot)
    assert texts(page) == [], "nothing is read while nobody looks"
    shown(window)
    qtbot.waitUntil(lambda: bool(texts(page)) and texts(page)[0][1] == "2")
    # What was unfolded stays so.
    kind = page.table.invisibleRootItem().child(0).child(0)
    assert not kind.isExpanded()
    kind.setExpanded(True)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: texts(page)[0][1] == "3")
    assert page.table.invisibleRootItem().child(0).child(0).isExpanded()


def test_lately_and_ever(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: bool(texts(page)))
    rows = page.rows
    page.span.buttons["ever"].click()
    assert page.span.value == "ever"
    assert page.rows[0].figures.answers == rows[0].figures.answers == 1
    assert all(button.toolTip() for button in page.span.buttons.values())


def test_forgetting_asks_first(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    ask(window, qtbot)
    qtbot.waitUntil(page.forget.isVisible)
    page.forget.click()
    assert page.question.words.text() == "Forget how fast 1 answer of all models was? The chats stay."
    page.question.no.click()
    assert not page.question.isVisible()
    page.table.setCurrentItem(page.table.invisibleRootItem().child(0))
    page.forget.click()
    assert "of toy was" in page.question.words.text()
    page.question.yes.click()
    qtbot.waitUntil(lambda: page.body.currentWidget() is page.empty)
    assert SpeedHistory(lambda text: None).read() == []
    assert not page.question.isVisible() and not page.forget.isVisible()


def test_a_history_that_cannot_be_read_says_why(window: MainWindow, qtbot: QtBot) -> None:
    with sqlite3.connect(paths.data_dir() / "speed.sqlite3") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    page = shown(window)
    qtbot.waitUntil(lambda: "newer version" in page.empty.text())
    assert page.empty.text().startswith("The speed history cannot be read: ")


def test_every_number_explains_itself(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: bool(texts(page)))
    head = page.table.headerItem()
    row = page.table.invisibleRootItem().child(0)
    for column in range(1, page.table.columnCount()):
        assert head.toolTip(column) and row.toolTip(column) == head.toolTip(column)
    assert page.table.focusPolicy() & Qt.FocusPolicy.TabFocus
    for control in (page.forget, page.measure.button):
        assert control.accessibleDescription()


def test_names_keep_room_in_a_narrow_window(window: MainWindow, qtbot: QtBot) -> None:
    page = shown(window)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: bool(texts(page)))
    header = page.table.header()
    wide = sum(header.sectionSize(column) for column in range(page.table.columnCount()))
    assert wide <= page.table.viewport().width()
    page.setFixedWidth(400)
    qtbot.waitUntil(lambda: page.table.viewport().width() < 400)
    assert header.sectionSize(0) >= page.table.fontMetrics().horizontalAdvance("Repeated source") * 2
    assert page.table.horizontalScrollBar().maximum() > 0
