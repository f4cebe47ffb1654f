"""Typing a message: Enter, Shift+Enter, input methods, growing (case H08)."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.settings import Settings
from ui.chat.composer import Composer, local_files
from ui.theme import Theme


@pytest.fixture
def composer(theme: Theme, qtbot: QtBot) -> Composer:
    composer = Composer(theme)
    qtbot.addWidget(composer)
    composer.resize(500, 60)
    with qtbot.waitExposed(composer, timeout=60_000):
        composer.show()
    return composer


def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.sent.connect(texts.append)
    return texts


def test_enter_sends_and_shift_enter_breaks_the_line(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)
    qtbot.keyClicks(composer.edit, "one")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.edit, "two")
    assert not texts
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert texts == ["one\ntwo"]


def test_return_while_composing_commits_and_does_not_send(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)
    composer.set_text("今は")
    QApplication.sendEvent(composer.edit, QInputMethodEvent("にほ", []))
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert not texts
    commit = QInputMethodEvent("", [])
    commit.setCommitString("日本")
    QApplication.sendEvent(composer.edit, commit)
    assert composer.text() == "今は日本"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert texts == ["今は日本"]


def test_it_grows_to_eight_lines(composer: Composer) -> None:
    heights = []
    for lines in (1, 2, 5, 8, 30):
        composer.set_text("\n".join("x" * lines))
        QApplication.processEvents()
        heights.append(composer.edit.height())
        if lines <= 5:
            assert composer.edit.firstVisibleBlock().blockNumber() == 0
    assert heights[0] < heights[1] < heights[2] < heights[3] == heights[4]


def test_while_busy_the_button_stops_and_enter_keeps_the_text(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)
    composer.set_busy(True)
    assert composer.button.accessibleName() == "Stop"
    qtbot.keyClicks(composer.edit, "next")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert not texts and composer.text() == "next" and composer.hint.isVisible()
    with qtbot.waitSignal(composer.stopped):
        qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)


def test_what_was_refused_comes_back_before_what_was_typed_since(composer: Composer) -> None:
    composer.give_back("refused")
    assert composer.text() == "refused"
    composer.set_text("typed since")
    composer.give_back("refused")
    assert composer.text() == "refused\n\ntyped since"


def test_up_asks_for_the_last_message_only_when_empty(composer: Composer, qtbot: QtBot) -> None:
    asked: list[bool] = []
    composer.edit_last.connect(lambda: asked.append(True))
    qtbot.keyClicks(composer.edit, "x")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up)
    assert not asked
    composer.clear()
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up)
    assert asked == [True]


def files(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def test_files_that_are_pasted_are_quoted_where_the_cursor_is(composer: Composer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe\xff")
    composer.set_text("Look at")
    composer.edit.insertFromMimeData(files(tmp_path / "a.txt", tmp_path / "b.bin"))
    assert composer.text() == "Look at\n`a.txt`:\n\n```txt\nalpha\n```\n"
    assert composer.hint.text() == "b.bin is not a text file."
    plain = QMimeData()
    plain.setText("just text")
    composer.edit.insertFromMimeData(plain)
    assert composer.text().endswith("```\njust text")


def test_models_are_left_to_the_window(composer: Composer, tmp_path: Path) -> None:
    assert local_files(files(tmp_path / "m.GGUF", tmp_path / "a.txt")) == [tmp_path / "a.txt"]


def test_editing_puts_what_was_typed_aside(composer: Composer, qtbot: QtBot) -> None:
    drafts: list[str] = []
    composer.draft_changed.connect(drafts.append)
    composer.set_text("typed")
    composer.start_editing("sent once", "Sending makes another version.")
    assert composer.banner.isVisible() and composer.text() == "sent once"
    assert composer.banner.accessibleName() == "Sending makes another version."
    composer.start_editing("another", "The same again.")
    qtbot.keyClicks(composer.edit, "!")
    assert drafts == ["typed"]  # what is edited is no draft
    with qtbot.waitSignal(composer.editing_left):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert composer.text() == "typed" and not composer.banner.isVisible()
    composer.start_editing("an answer", "Saving.", saves=True)
    assert composer.button.accessibleName() == "Save"
    qtbot.mouseClick(composer.cancel, Qt.MouseButton.LeftButton)
    assert composer.button.accessibleName() == "Send" and composer.text() == "typed"


def test_hardly_any_width_is_no_end_of_laying_out(composer: Composer, theme: Theme) -> None:
    """With a scroll bar nothing is left for the text, without it there are many lines: neither may ask
    for the other for ever."""
    theme.apply(Settings(theme="light", zoom=200))
    composer.set_text("hi" + "word " * 60)
    for width in range(2, 60):
        composer.edit.resize(width, composer.edit.height())
    theme.apply(Settings(theme="light"))
