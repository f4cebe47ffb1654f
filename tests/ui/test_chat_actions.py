"""What keys and the palette do with the chat that is shown."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.protocol import NEURAL
from app.worker.fake_script import FakeReply
from tests.ui.chats import WAIT, answered, ready, say, texts, titles
from tests.ui.conftest import MakeWindow
from ui.main_window import CHATS, SPEED, MainWindow

_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window(FakeReply(text="**{prompt}**"))
    ready(window, qtbot)
    return window


def run(window: MainWindow, title: str) -> None:
    """As the palette does."""
    [entry] = [entry for entry in window.shell.entries() if entry.title == title]
    entry.run()


def test_a_chat_is_pinned_copied_and_deleted_from_the_palette(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "one")
    window.show_page(SPEED)
    run(window, "Pin or unpin this chat")
    assert titles(window) == ["# Pinned", "one"] and window.shown == CHATS
    run(window, "Duplicate this chat")
    assert titles(window) == ["# Pinned", "one", "# Today", "one (copy)"]
    assert window.session.controller.chat.title == "one (copy)"
    window.chat.toggle_sidebar()
    assert not window.chat.sidebar.isVisible()
    run(window, "Delete this chat")
    assert titles(window) == ["# Pinned", "one"]
    assert window.chat.sidebar.undo.isVisible()  # the sidebar came for it
    window.chat.sidebar.undo.button.click()
    assert titles(window) == ["# Pinned", "one", "# Today", "one (copy)"]


def test_a_new_chat_has_nothing_to_delete_or_copy(window: MainWindow) -> None:
    QGuiApplication.clipboard().setText("before")
    for title in ("Delete this chat", "Pin or unpin this chat", "Duplicate this chat", "Answer again"):
        run(window, title)
    assert titles(window) == [] and texts(window) == []
    run(window, "Copy the last answer")
    assert QGuiApplication.clipboard().text() == "before" and window.chat.composer.hint.isVisible()


def test_keys_answer_again_copy_and_colour(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "two")
    window.activateWindow()
    edit = window.chat.composer.edit
    with qtbot.waitActive(window, timeout=WAIT):
        window.activateWindow()
    qtbot.keyClick(edit, Qt.Key.Key_C, _CTRL | _SHIFT)
    assert QGuiApplication.clipboard().text() == "**two**"
    qtbot.keyClick(edit, Qt.Key.Key_R, _CTRL)
    answered(window, qtbot)
    answer = window.session.controller.conversation.messages[-1]
    assert window.session.controller.versions(answer) == (1, 2)
    shown = window.session.settings.show_drafts
    qtbot.keyClick(edit, Qt.Key.Key_D, _CTRL | _SHIFT)
    assert window.session.settings.show_drafts is not shown
    assert window.chat.header.drafts_button.isChecked() is not shown
    run(window, "Instructions and sampling of this chat")
    assert window.chat._options.shown


def turn(window: MainWindow, angle: int, keys: Qt.KeyboardModifier) -> None:
    area = window.chat.messages.viewport()
    at = QPointF(area.rect().center())
    event = QWheelEvent(
        at,
        area.mapToGlobal(at),
        QPoint(),
        QPoint(0, angle),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(area, event)
    if not event.isAccepted():  # Qt goes on to the parents only with what came from the system
        QApplication.sendEvent(window, event)


def test_the_wheel_with_ctrl_makes_the_text_larger(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "line\n" * 200)
    before = window.session.settings.zoom
    for _ in range(3):
        turn(window, 40, _CTRL)  # of a touchpad
    assert window.session.settings.zoom == before + 10 and window.chat.messages.following
    turn(window, -240, _CTRL)
    assert window.session.settings.zoom == before - 10
    turn(window, 120, Qt.KeyboardModifier.NoModifier)
    assert window.session.settings.zoom == before - 10 and not window.chat.messages.following


def test_the_legend_does_not_promise_drafters_before_the_model_is_there(make_window: MakeWindow) -> None:
    window = make_window(start=False, show_drafts=True)
    named = window.chat.legend.names
    assert "suffix" in named and not set(named) & set(NEURAL)
