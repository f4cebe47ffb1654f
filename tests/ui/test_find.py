"""Finding a text in the chat that is shown, over the real pipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QTextEdit
from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.worker.fake_script import FakeReply
from tests.ui.chats import answered, fill_home, open_chat, ready, say, settled, view
from tests.ui.conftest import MakeWindow
from ui.chat.find_bar import FindBar
from ui.main_window import MainWindow
from ui.theme import LIGHT, Theme

ANSWER = """The needle in prose, and a **nee**dle in `code`.

| needle | other |
|--------|-------|
| one    | Needle |

```python
needle = "hay"  # NEEDLE
```
"""
COUNT = 7  # with the one in the question


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window(FakeReply(text=ANSWER, tokens_per_second=2000))
    ready(window, qtbot)
    say(window, qtbot, "Where is the needle?")
    settled(window, qtbot)
    return window


def open_bar(window: MainWindow, qtbot: QtBot) -> FindBar:
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    bar = window.chat.finding.bar
    assert bar is not None and bar.isVisible() and bar.field.hasFocus()
    return bar


def counted(bar: FindBar, qtbot: QtBot, words: str) -> None:
    qtbot.waitUntil(lambda: bar.count.text() == words)


def editors(window: MainWindow) -> list[QTextEdit | QPlainTextEdit]:
    return [part.editor for one in window.chat.messages.views() for part in one.body.parts()]


def marked(window: MainWindow) -> list[str]:
    return [mark.cursor.selectedText() for editor in editors(window) for mark in editor.extraSelections()]


def strong(window: MainWindow) -> list[tuple[int, str, int]]:
    """What is marked more than the rest: the number of its text, the words and where they begin."""
    return [
        (number, mark.cursor.selectedText(), mark.cursor.selectionStart())
        for number, editor in enumerate(editors(window))
        for mark in editor.extraSelections()
        if mark.format.fontUnderline()
    ]


def seen(window: MainWindow) -> bool:
    """The match that is gone to can be seen as a whole."""
    messages = window.chat.messages
    for editor in editors(window):
        for mark in editor.extraSelections():
            if mark.format.fontUnderline():
                cursor = mark.cursor
                cursor.setPosition(cursor.selectionStart())
                place = editor.cursorRect(cursor)
                top = editor.viewport().mapTo(messages.viewport(), place.topLeft())
                bottom = editor.viewport().mapTo(messages.viewport(), place.bottomLeft())
                return messages.viewport().rect().contains(top) and messages.viewport().rect().contains(
                    bottom
                )
    return False


def test_matches_are_counted_marked_and_gone_through(window: MainWindow, qtbot: QtBot) -> None:
    bar = open_bar(window, qtbot)
    assert bar.count.text() == "" and not bar.next.isEnabled()
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, f"1 of {COUNT}")
    assert [words.lower() for words in marked(window)] == ["needle"] * COUNT
    places = strong(window)
    for number in range(2, COUNT + 1):
        qtbot.keyClick(bar.field, Qt.Key.Key_Return)
        assert bar.count.text() == f"{number} of {COUNT}"
        places += strong(window)
    assert (
        len(places) == COUNT
        and len(set(places)) == COUNT
        and [(n, at) for n, _, at in places] == sorted((n, at) for n, _, at in places)
    )
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)  # from the last to the first
    assert bar.count.text() == f"1 of {COUNT}" and strong(window) == places[:1]
    qtbot.keyClick(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert bar.count.text() == f"{COUNT} of {COUNT}" and strong(window) == places[-1:]
    qtbot.keyClick(bar.field, Qt.Key.Key_F3)
    assert strong(window) == places[:1]
    qtbot.keyClick(bar.field, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
    qtbot.mouseClick(bar.previous, Qt.MouseButton.LeftButton)
    assert strong(window) == [places[-2]]
    qtbot.mouseClick(bar.next, Qt.MouseButton.LeftButton)
    assert strong(window) == places[-1:]


def test_the_row_stands_still_while_it_counts_and_says_in_words_that_there_is_nothing(
    window: MainWindow, qtbot: QtBot
) -> None:
    bar = open_bar(window, qtbot)
    QApplication.processEvents()
    before = [part.geometry() for part in (bar.field, bar.count, bar.previous, bar.next, bar.close_button)]
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, f"1 of {COUNT}")
    qtbot.keyClicks(bar.field, "s")
    counted(bar, qtbot, "Nothing found")
    assert bar.field.accessibleDescription() == "Nothing found"
    assert not bar.next.isEnabled() and not marked(window)
    QApplication.processEvents()
    assert before == [
        part.geometry() for part in (bar.field, bar.count, bar.previous, bar.next, bar.close_button)
    ]
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)  # there is nowhere to go
    qtbot.keyClick(bar.field, Qt.Key.Key_Backspace)
    counted(bar, qtbot, f"1 of {COUNT}")


def test_esc_takes_bar_and_marks_away(window: MainWindow, qtbot: QtBot) -> None:
    bar = open_bar(window, qtbot)
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, f"1 of {COUNT}")
    qtbot.keyClick(bar.field, Qt.Key.Key_Escape)
    assert not bar.isVisible() and not marked(window)
    assert window.chat.composer.edit.hasFocus() and window.chat.messages.following
    say(window, qtbot, "again a needle")
    assert not marked(window)
    open_bar(window, qtbot)  # what was looked for is still there, to be used or typed over
    counted(bar, qtbot, f"{2 * COUNT} found")
    assert bar.field.selectedText() == "needle"
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)
    assert strong(window)


def test_nothing_on_the_screen_moves_when_the_bar_comes_and_goes(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    fill_home(private_home, {"long": [f"line {n}\n\nmore" for n in range(80)]})
    window = make_window()
    ready(window, qtbot)
    open_chat(window, qtbot, "long")
    settled(window, qtbot)
    messages = window.chat.messages

    def place() -> int:
        return messages.views()[-9].mapTo(window, QPoint()).y()

    before = place()
    open_bar(window, qtbot)
    assert place() == before and messages.following
    window.chat.finding.close()
    assert place() == before
    bar = messages.verticalScrollBar()
    bar.triggerAction(bar.SliderAction.SliderPageStepSub)
    settled(window, qtbot)
    before, value = place(), bar.value()
    open_bar(window, qtbot)
    assert place() == before and not messages.following
    window.chat.finding.close()
    assert (place(), bar.value()) == (before, value)


def test_a_match_in_a_message_that_is_not_built_is_gone_to(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    said = [f"message {n}\n\nin two lines" for n in range(300)]
    said[7] = "hay\n\n" * 400 + "a deep needle\n\n" + "hay\n\n" * 100
    said[150] = "a needle in the middle"
    fill_home(private_home, {"long": said})
    window = make_window()
    ready(window, qtbot)
    open_chat(window, qtbot, "long")
    settled(window, qtbot)
    bar = open_bar(window, qtbot)
    messages = window.chat.messages
    assert all(one.message.text not in (said[7], said[150]) for one in messages.views())
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, "2 of 2")  # the nearest
    settled(window, qtbot)
    qtbot.waitUntil(lambda: seen(window))
    assert not messages.following
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)
    assert bar.count.text() == "1 of 2"
    qtbot.waitUntil(lambda: seen(window))
    settled(window, qtbot)
    assert seen(window)  # what is built above and below does not move it
    assert marked(window) == ["needle"]


def test_the_count_follows_an_answer_and_the_reader_stays(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="a needle here\n\n" * 300, tokens_per_second=600))
    ready(window, qtbot)
    window.chat.composer.set_text("go")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    messages = window.chat.messages
    qtbot.waitUntil(lambda: messages.verticalScrollBar().maximum() > 800)
    bar = open_bar(window, qtbot)
    assert messages.following
    bar.field.setText("needle")
    qtbot.waitUntil(lambda: " of " in bar.count.text())
    qtbot.keyClick(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert not messages.following
    value, before = messages.verticalScrollBar().value(), strong(window)
    total = int(bar.count.text().split(" of ")[1])
    qtbot.waitUntil(lambda: int(bar.count.text().split(" of ")[1]) > total)
    answered(window, qtbot)
    settled(window, qtbot)
    qtbot.waitUntil(lambda: bar.count.text().endswith(" of 300"))
    assert messages.verticalScrollBar().value() == value and strong(window) == before
    assert len(marked(window)) == 300


def test_the_words_of_the_live_block_stay_marked(window: MainWindow, qtbot: QtBot) -> None:
    bar = open_bar(window, qtbot)
    bar.field.setText("needle")
    counted(bar, qtbot, f"1 of {COUNT}")
    answer = view(window, -1)
    body = answer._new_body()
    answer.mark(answer._mark)
    body.mark(answer._mark.pattern)  # type: ignore[union-attr]
    from app.protocol import Piece

    for number, word in enumerate(["a ", "nee", "dle", " and ", "**needle", "**", "\n\nneedle"]):
        body.write([Piece(word)])
        wanted = (0, 0, 1, 1, 2, 2, 3)[number]
        assert body.match_count() == wanted
        marks = [
            mark.cursor.selectedText() for part in body.parts() for mark in part.editor.extraSelections()
        ]
        assert marks == ["needle"] * wanted
    body.deleteLater()


def test_marks_have_the_theme_s_colours(window: MainWindow, qtbot: QtBot, theme: Theme) -> None:
    bar = open_bar(window, qtbot)
    bar.field.setText("needle")
    counted(bar, qtbot, f"1 of {COUNT}")

    def colours() -> set[tuple[str, str]]:
        return {
            (mark.format.background().color().name().upper(), mark.format.foreground().color().name().upper())
            for editor in editors(window)
            for mark in editor.extraSelections()
        }

    assert colours() == {(LIGHT.found, LIGHT.on_found), (LIGHT.found_now, LIGHT.on_found_now)}
    theme.apply(Settings(theme="dark"))
    tokens = theme.tokens
    assert tokens.dark
    assert colours() == {
        (tokens.found.upper(), tokens.on_found.upper()),
        (tokens.found_now.upper(), tokens.on_found_now.upper()),
    }
    assert len(marked(window)) == COUNT and len(strong(window)) == 1
    picture = editors(window)[0].grab().toImage()
    ground = QColor(tokens.found_now)
    assert any(
        picture.pixelColor(x, y) == ground for x in range(picture.width()) for y in range(picture.height())
    )


def test_a_match_in_folded_thoughts_unfolds_them(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="<think>a hidden needle</think>nothing", tokens_per_second=2000))
    ready(window, qtbot)
    say(window, qtbot, "hay")
    answer = view(window, -1)
    assert answer.thoughts is not None and answer.thoughts.body is None
    bar = open_bar(window, qtbot)
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, "1 of 1")
    assert answer.thoughts.button.isChecked()
    body = answer.thoughts.body
    assert body is not None
    qtbot.waitUntil(lambda: body.match_count() == 1)
    assert [
        mark.format.fontUnderline() for part in body.parts() for mark in part.editor.extraSelections()
    ] == [True]


def test_a_long_line_of_code_is_scrolled_to_its_match(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text=f"Code:\n\n```text\n{'x' * 400} needle\n```", tokens_per_second=2000))
    ready(window, qtbot)
    say(window, qtbot, "hay")
    settled(window, qtbot)
    bar = open_bar(window, qtbot)
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, "1 of 1")
    assert editors(window)[-1].horizontalScrollBar().value() > 0 and seen(window)


def test_a_search_over_all_chats_marks_what_it_found(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    said = [f"message {n}" for n in range(60)]
    said[21] = "hay\n\n" * 200 + "the **Needles** and a needle\n\n" + "hay\n\n" * 50
    said[20] = "another needle"
    fill_home(private_home, {"long one": said, "other": ["no such thing", "none"]})
    window = make_window()
    ready(window, qtbot)
    window.chat.search_chats()
    sidebar = window.chat.sidebar
    qtbot.keyClicks(sidebar.search, "needle")
    qtbot.waitUntil(lambda: sidebar.stack.currentWidget() is sidebar.results)
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Return)
    settled(window, qtbot)
    qtbot.waitUntil(lambda: seen(window))
    assert marked(window) == ["Needles", "needle"] and strong(window)[0][1] == "Needles"
    assert view(window, 20) is not None  # has one as well, but was not what was chosen
    open_chat(window, qtbot, "other")
    assert not marked(window)


def test_another_chat_is_searched_anew(make_window: MakeWindow, qtbot: QtBot, private_home: Path) -> None:
    fill_home(private_home, {"one": ["needle", "needle needle"], "two": ["a needle", "hay"]})
    window = make_window()
    ready(window, qtbot)
    open_chat(window, qtbot, "one")
    bar = open_bar(window, qtbot)
    qtbot.keyClicks(bar.field, "needle")
    counted(bar, qtbot, "1 of 3")
    open_chat(window, qtbot, "two")
    counted(bar, qtbot, "1 found")
    assert marked(window) == ["needle"] and not strong(window)


def test_the_wheel_is_the_reader_s_while_a_match_is_built(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    fill_home(private_home, {"long": ["hay\n\n" * 3000 + "needle", *["hay"] * 99]})
    window = make_window()
    ready(window, qtbot)
    open_chat(window, qtbot, "long")
    settled(window, qtbot)
    bar = open_bar(window, qtbot)
    bar.field.setText("needle")
    counted(bar, qtbot, "1 of 1")
    messages = window.chat.messages
    here = QPointF(100, 100)
    wheel = QWheelEvent(
        here, messages.mapToGlobal(here), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(messages.viewport(), wheel)
    value = messages.verticalScrollBar().value()
    settled(window, qtbot)
    assert messages.verticalScrollBar().value() == value and not seen(window)
