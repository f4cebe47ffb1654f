"""What can be done with single messages, over the real pipe: versions of a turn, going on, taking away."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.worker.fake_script import FakeReply
from tests.ui.chats import WAIT, answered, ready, say, settled, texts, view
from tests.ui.conftest import MakeWindow
from ui.main_window import MainWindow
from ui.widgets.quiet_button import QuietButton


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    """A chat of two turns; every answer repeats what was said."""
    window = make_window(FakeReply(text="re: {prompt}", tokens_per_second=2000))
    ready(window, qtbot)
    say(window, qtbot, "one")
    say(window, qtbot, "two")
    return window


def press(window: MainWindow, qtbot: QtBot, button: QPushButton | QuietButton) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def tool(window: MainWindow, index: int, name: str) -> QuietButton:
    return next(tool for tool in view(window, index).tools if tool.accessibleName() == name)


def choose(window: MainWindow, index: int, words: str) -> None:
    """From the menu of a message."""
    shown = view(window, index)
    button = shown.footer.more_button if shown.footer is not None else shown.tools[-1]
    next(action for action in button.menu().actions() if action.text() == words).trigger()


def test_an_earlier_message_is_edited_in_the_composer_and_both_versions_stay(
    window: MainWindow, qtbot: QtBot
) -> None:
    composer = window.chat.composer
    composer.set_text("a draft")
    press(window, qtbot, tool(window, 0, "Edit your message"))
    assert composer.text() == "one" and composer.banner.isVisible()
    composer.set_text("uno")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)
    assert texts(window) == ["uno", "re: uno"]
    assert composer.text() == "a draft" and not composer.banner.isVisible()
    switcher = view(window, 0).switcher
    assert switcher.isVisible() and switcher.words == "2 / 2"
    press(window, qtbot, switcher.before)
    qtbot.waitUntil(lambda: texts(window) == ["one", "re: one", "two", "re: two"])
    assert view(window, 0).switcher.words == "1 / 2"
    assert view(window, 0).switcher.after.hasFocus()  # the only way left
    qtbot.keyClick(view(window, 0).switcher.after, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: texts(window) == ["uno", "re: uno"])


def test_esc_leaves_editing_and_nothing_has_changed(window: MainWindow, qtbot: QtBot) -> None:
    composer = window.chat.composer
    composer.set_text("a draft")
    press(window, qtbot, tool(window, 2, "Edit your message"))
    composer.set_text("something else")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert composer.text() == "a draft" and not composer.editing
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)
    assert texts(window) == ["one", "re: one", "two", "re: two", "a draft", "re: a draft"]


def test_an_answer_is_edited_without_asking_the_model(window: MainWindow, qtbot: QtBot) -> None:
    choose(window, 3, "Edit the answer")
    composer = window.chat.composer
    assert composer.button.accessibleName() == "Save"
    composer.set_text("my own words")
    press(window, qtbot, composer.button)
    assert not window.session.controller.busy
    assert texts(window) == ["one", "re: one", "two", "my own words"]
    assert view(window, 3).switcher.words == "2 / 2"


def test_regenerating_keeps_the_first_answer(window: MainWindow, qtbot: QtBot) -> None:
    footer = view(window, 3).footer
    assert footer is not None
    press(window, qtbot, footer.again_button)
    answered(window, qtbot)
    assert texts(window) == ["one", "re: one", "two", "re: two"]
    assert view(window, 3).switcher.words == "2 / 2"
    first = view(window, 1).footer
    assert first is not None
    press(window, qtbot, first.again_button)  # of an earlier one
    answered(window, qtbot)
    assert texts(window) == ["one", "re: one"]
    press(window, qtbot, view(window, 1).switcher.before)
    qtbot.waitUntil(lambda: texts(window) == ["one", "re: one", "two", "re: two"])


def test_a_stopped_answer_goes_on_where_it_ended(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(
        FakeReply(text="begun " * 400, tokens_per_second=150), FakeReply(text="and **ended**.")
    )
    ready(window, qtbot)
    window.chat.composer.set_text("go")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(texts(window)) == 2 and "begun" in texts(window)[1], timeout=WAIT)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Escape)
    answered(window, qtbot)
    begun = texts(window)[1]
    footer = view(window, 1).footer
    assert footer is not None and footer.continue_button.isVisible()
    press(window, qtbot, footer.continue_button)
    answered(window, qtbot)
    assert texts(window)[1].startswith(begun)
    assert texts(window)[1].endswith("and **ended**.")
    body = view(window, 1).body
    qtbot.waitUntil(lambda: not body.building)
    shown = "".join(part.toPlainText() for part in body.parts())  # type: ignore[union-attr]
    assert shown.endswith("and ended.") and shown.startswith("begun begun")
    assert not footer.continue_button.isVisible()


def test_deleting_takes_what_follows_along(window: MainWindow, qtbot: QtBot) -> None:
    choose(window, 2, "Delete from here on")
    assert texts(window) == ["one", "re: one"]


def test_while_an_answer_is_written_nothing_is_taken_away(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 2000, tokens_per_second=150))
    ready(window, qtbot)
    window.chat.composer.set_text("go")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(texts(window)) == 2 and "word" in texts(window)[1], timeout=WAIT)
    press(window, qtbot, tool(window, 0, "Edit your message"))
    assert not window.chat.composer.editing and window.chat.composer.hint.isVisible()
    choose(window, 0, "Delete from here on")
    assert texts(window)[0] == "go"
    window.session.controller.stop()
    answered(window, qtbot)


def test_copying_takes_the_markdown_as_it_was_written(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="# Title\n\n- **a**\n"))
    ready(window, qtbot)
    say(window, qtbot, "go `x`")
    footer = view(window, 1).footer
    assert footer is not None
    press(window, qtbot, footer.copy_button)
    assert QGuiApplication.clipboard().text() == "# Title\n\n- **a**\n"
    press(window, qtbot, tool(window, 0, "Copy your message"))
    assert QGuiApplication.clipboard().text() == "go `x`"


def test_every_number_of_the_footer_explains_itself(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words " * 20, drafts=((4, 3),)))
    ready(window, qtbot)
    say(window, qtbot, "go")
    footer = view(window, 1).footer
    assert footer is not None
    for words in ("tokens", "first ", "tok/s", " % accepted"):
        assert words in footer.text()
    for label in footer._labels:
        assert len(label.toolTip()) > 20 and label.toolTip() in label.accessibleName()


def test_switching_a_version_keeps_the_message_where_it_is(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="line\n\n" * 30, tokens_per_second=5000))
    ready(window, qtbot)
    for text in ("one", "two", "three"):
        say(window, qtbot, text)
    footer = view(window, 5).footer
    assert footer is not None
    press(window, qtbot, footer.again_button)
    answered(window, qtbot)
    messages = window.chat.messages
    messages.setFocus()
    qtbot.keyClick(messages, Qt.Key.Key_PageUp)
    shown = view(window, 5)
    settled(window, qtbot)
    y = shown.mapTo(messages.viewport(), shown.rect().topLeft()).y()
    press(window, qtbot, shown.switcher.before)
    settled(window, qtbot)
    shown = next(view for view in messages.views() if view.switcher.isVisible())
    assert shown.switcher.words == "1 / 2"
    assert abs(shown.mapTo(messages.viewport(), shown.rect().topLeft()).y() - y) <= 1


def test_deleted_messages_come_back_where_they_were(window: MainWindow, qtbot: QtBot) -> None:
    footer = view(window, 3).footer
    assert footer is not None
    press(window, qtbot, footer.again_button)
    answered(window, qtbot)
    press(window, qtbot, view(window, 3).switcher.before)
    qtbot.waitUntil(lambda: len(texts(window)) == 4)
    whole = [message.id for message in window.session.controller.conversation.everything]
    choose(window, 2, "Delete from here on")
    undo = window.chat.undo
    assert undo.isVisible() and undo.text == "3 messages were deleted."
    assert texts(window) == ["one", "re: one"]
    press(window, qtbot, undo.button)
    qtbot.waitUntil(lambda: texts(window) == ["one", "re: one", "two", "re: two"])
    assert view(window, 3).switcher.words == "1 / 2"
    assert [message.id for message in window.session.controller.conversation.everything] == whole
    assert window.session.store.flush()
    assert not window.session.controller.restore_messages()  # only once


def test_the_footer_wraps_and_no_line_begins_with_a_dot(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words " * 20, drafts=((4, 3),)))
    ready(window, qtbot)
    say(window, qtbot, "go")
    footer = view(window, 1).footer
    assert footer is not None
    for width in (700, 400, 240, 120):
        height = footer.fit(width)
        lines: dict[int, list[str]] = {}
        for label in footer._labels:
            lines.setdefault(label.y(), []).append(label.text())
        assert not any(words[0].startswith(" ·") for words in lines.values())
        dots = sum(label.text().count("·") for label in footer._labels)
        assert dots == len(footer._labels) - len(lines)
        for button in (footer.copy_button, footer.again_button, footer.more_button):
            assert button.x() + button.width() <= width + 6 and button.y() < height
