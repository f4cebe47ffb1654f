"""Chats in the window over the real pipe: kept, found, sorted, answered unseen, and there again."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.settings import SettingsFile
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.chats import (
    WAIT,
    answered,
    fill_home,
    id_of,
    open_chat,
    ready,
    say,
    settled,
    texts,
    titles,
    view,
)
from tests.ui.conftest import MakeWindow
from tests.ui.dragging import dropped, held_over
from ui.main_window import MainWindow


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    """Every answer repeats what was said."""
    window = make_window(FakeReply(text="{prompt}", tokens_per_second=2000))
    ready(window, qtbot)
    return window


def test_a_chat_is_in_the_list_from_its_first_message_on(window: MainWindow, qtbot: QtBot) -> None:
    assert titles(window) == []
    assert not window.chat.sidebar.words.isHidden()
    say(window, qtbot, "How high is the sky?")
    assert titles(window) == ["# Today", "How high is the sky?"]
    assert window.chat.header.title.title == "How high is the sky?"
    window.session.controller.new_chat()
    assert window.chat.header.title.title == "New chat"
    say(window, qtbot, "Another thing")
    assert titles(window) == ["# Today", "Another thing", "How high is the sky?"]


def test_a_click_opens_a_chat_with_its_messages(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "first")
    window.session.controller.new_chat()
    say(window, qtbot, "second")
    open_chat(window, qtbot, "first")
    assert texts(window) == ["first", "first"]
    assert window.chat.header.title.title == "first"


def test_the_list_is_used_with_keys(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("apple", "banana", "cherry"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    rows = window.chat.sidebar.list
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_Down)
    qtbot.keyClick(rows, Qt.Key.Key_Return)
    assert texts(window)[0] == "banana"
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_A)  # type-ahead
    qtbot.keyClick(rows, Qt.Key.Key_Return)
    assert texts(window)[0] == "apple"
    qtbot.keyClick(rows, Qt.Key.Key_Up)
    qtbot.keyClick(rows, Qt.Key.Key_Up)
    assert rows.rows.chat_at(rows.currentIndex()).label == "cherry"  # type: ignore[union-attr]
    qtbot.keyClick(rows, Qt.Key.Key_Up)  # a heading is no row to stand on
    assert rows.rows.chat_at(rows.currentIndex()).label == "cherry"  # type: ignore[union-attr]


def test_renaming_in_the_list(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "old name")
    rows = window.chat.sidebar.list
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_F2)
    editor = rows.findChild(QLineEdit)
    assert editor is not None and editor.text() == "old name"
    editor.setText("  new\nname ")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: titles(window) == ["# Today", "new name"])
    assert window.chat.header.title.title == "new name"


def test_renaming_is_not_disturbed_by_the_list_and_can_be_left(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("one", "two"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    rows = window.chat.sidebar.list
    rows.rename(id_of(window, "one"))
    editor = rows.findChild(QLineEdit)
    assert editor is not None
    editor.setText("typed")
    window.session.controller.chats.pin(id_of(window, "two"), True)
    assert rows.is_renaming and editor.text() == "typed"
    qtbot.keyClick(editor, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: titles(window) == ["# Pinned", "two", "# Today", "one"])


def test_return_and_a_focus_that_leaves_at_once_rename_once(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "one")
    rows = window.chat.sidebar.list
    rows.rename(id_of(window, "one"))
    editor = rows.findChild(QLineEdit)
    assert editor is not None
    qtbot.waitUntil(editor.hasFocus)
    editor.setText("two")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    window.chat.composer.setFocus()
    qtbot.waitUntil(lambda: titles(window) == ["# Today", "two"])
    rows.rename(id_of(window, "two"))
    again = next(one for one in rows.findChildren(QLineEdit) if one.isVisible())
    again.setText("three")
    QTest.keyClick(again, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: titles(window) == ["# Today", "three"])


def test_renaming_in_the_header(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "old name")
    title = window.chat.header.title
    qtbot.mouseClick(title, Qt.MouseButton.LeftButton)
    assert title.edit.isVisible()
    title.edit.setText("of no use")
    qtbot.keyClick(title.edit, Qt.Key.Key_Escape)
    assert title.title == "old name" and not title.edit.isVisible()
    qtbot.mouseClick(title, Qt.MouseButton.LeftButton)
    title.edit.setText("better")
    qtbot.keyClick(title.edit, Qt.Key.Key_Return)
    assert titles(window) == ["# Today", "better"]


def test_deleting_can_be_undone(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "keep me")
    window.session.controller.new_chat()
    say(window, qtbot, "lose me")
    rows = window.chat.sidebar.list
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_Delete)
    assert titles(window) == ["# Today", "keep me"]
    assert texts(window) == []
    undo = window.chat.sidebar.undo
    assert undo.isVisible() and "lose me" in undo.text
    qtbot.mouseClick(undo.button, Qt.MouseButton.LeftButton)
    assert titles(window) == ["# Today", "lose me", "keep me"]
    assert texts(window) == ["lose me", "lose me"]
    assert not undo.isVisible()


def test_after_deleting_with_keys_the_next_chat_is_at_hand(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("a", "b", "c"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    rows = window.chat.sidebar.list
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_Down)
    qtbot.keyClick(rows, Qt.Key.Key_Delete)
    assert titles(window) == ["# Today", "c", "a"]
    assert rows.rows.chat_at(rows.currentIndex()).label == "a"  # type: ignore[union-attr]
    assert rows.hasFocus()
    qtbot.keyClick(rows, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert titles(window) == ["# Today", "c", "b", "a"]
    qtbot.keyClick(rows, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)  # there is no more to undo
    assert titles(window) == ["# Today", "c", "b", "a"]


def test_pinning_folders_and_duplicating_from_the_menu(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("one", "two"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    rows = window.chat.sidebar.list

    def choose(title: str, *path: str) -> None:
        # The whole menu is kept: a part of it goes with it.
        whole = menu = rows.menu_for(window.session.store.get(id_of(window, title)))  # type: ignore[arg-type]
        for words in path[:-1]:
            menu = next(action.menu() for action in menu.actions() if action.text() == words)  # type: ignore[assignment]
        next(action for action in menu.actions() if action.text() == path[-1]).trigger()
        assert whole.actions()

    choose("one", "Pin")
    assert titles(window) == ["# Pinned", "one", "# Today", "two"]
    choose("one", "Unpin")
    window.session.controller.chats.move(id_of(window, "two"), "Work")
    assert titles(window) == ["# Work", "two", "# Today", "one"]
    choose("one", "Move to folder", "Work")
    assert titles(window) == ["# Work", "two", "one"]
    choose("one", "Move to folder", "No folder")
    choose("one", "Duplicate")
    assert sorted(titles(window)) == ["# Today", "# Work", "one", "one (copy)", "two"]
    assert texts(window) == ["one", "one"]


def test_a_folder_is_folded_and_unfolded(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "one")
    window.session.controller.chats.move(id_of(window, "one"), "Work")
    rows = window.chat.sidebar.list
    qtbot.mouseClick(
        rows.viewport(), Qt.MouseButton.LeftButton, pos=rows.visualRect(rows.rows.index(0)).center()
    )
    assert titles(window) == ["# Work"]
    rows.setFocus()
    qtbot.keyClick(rows, Qt.Key.Key_Right)
    assert titles(window) == ["# Work", "one"]


def test_a_folder_is_renamed_and_dissolved(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("one", "two"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
        window.session.controller.chats.move(id_of(window, text), "Work")
    window.session.controller.chats.pin(id_of(window, "two"), True)
    rows = window.chat.sidebar.list
    folder = next(row.group for row in rows.rows.rows() if row.group.kind == "folder")
    rows.rename_folder(folder, "  Play   time ")
    assert titles(window) == ["# Pinned", "two", "# Play time", "one"]
    assert {chat.folder for chat in window.session.store.chats()} == {"Play time"}
    folder = next(row.group for row in rows.rows.rows() if row.group.kind == "folder")
    menu = rows.menu_for_folder(folder)
    menu.actions()[-1].trigger()
    assert titles(window) == ["# Pinned", "two", "# Today", "one"]


def test_search_finds_text_and_goes_to_the_message(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    long = [f"message {number}" for number in range(60)]
    long[21] = "the needle in 100% hay"
    fill_home(private_home, {"long one": long, "other": ["no such thing", "none"]})
    window = make_window()
    ready(window, qtbot)
    sidebar = window.chat.sidebar
    qtbot.keyClick(
        window.chat.composer.edit,
        Qt.Key.Key_F,
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
    )
    assert sidebar.search.hasFocus()
    qtbot.keyClicks(sidebar.search, "needle")
    qtbot.waitUntil(lambda: sidebar.stack.currentWidget() is sidebar.results, timeout=WAIT)
    found = sidebar.results.rows.found_at(sidebar.results.rows.index(0))
    assert found is not None and sidebar.results.rows.rowCount() == 1
    assert [found.excerpt[start:end] for start, end in found.marks] == ["needle"]
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Return)
    assert window.chat.header.title.title == "long one"
    settled(window, qtbot)
    shown = next(view for view in window.chat.messages.views() if view.message.text == long[21])
    top = shown.mapTo(window.chat.messages.viewport(), shown.rect().topLeft()).y()
    assert 0 <= top < window.chat.messages.viewport().height() / 2
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Escape)
    assert sidebar.stack.currentWidget() is sidebar.list
    qtbot.keyClicks(sidebar.search, "absent")
    qtbot.waitUntil(lambda: sidebar.stack.currentWidget() is sidebar.words, timeout=WAIT)
    assert "absent" in sidebar.words.text()


def test_an_answer_goes_on_while_another_chat_is_shown(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 600, tokens_per_second=400))
    ready(window, qtbot)
    window.chat.composer.set_text("slow one")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "word" in texts(window)[-1], timeout=WAIT)
    rows = window.chat.sidebar.list
    window.session.controller.new_chat()
    index = rows.rows.index_of(id_of(window, "slow one"))
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "slow one, being answered"
    assert not window.chat.messages.views()
    window.chat.composer.set_text("typed elsewhere")
    assert window.chat.composer.button.accessibleName() == "Send"
    before = window.session.controller.numbers.tokens
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > before, timeout=WAIT)
    open_chat(window, qtbot, "slow one")
    assert window.chat.composer.button.accessibleName() == "Stop"
    answered(window, qtbot)
    assert texts(window)[-1].count("word") == 600
    shown = "".join(part.toPlainText() for part in view(window, -1).body.parts())  # type: ignore[union-attr]
    assert shown.count("word") == 600
    assert rows.rows.index_of(id_of(window, "slow one")).data(Qt.ItemDataRole.AccessibleTextRole) == (
        "slow one, shown"
    )


def test_what_was_typed_and_where_one_read_are_kept_for_each_chat(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    fill_home(private_home, {"long": [f"line\n\n{n} " * 8 for n in range(80)], "short": ["a", "b"]})
    window = make_window()
    ready(window, qtbot)
    open_chat(window, qtbot, "long")
    settled(window, qtbot)
    messages = window.chat.messages
    qtbot.keyClicks(window.chat.composer.edit, "half a thought")
    messages.setFocus()
    for _ in range(3):
        qtbot.keyClick(messages, Qt.Key.Key_PageUp)
        settled(window, qtbot)
    place = messages.place()
    assert place is not None and not messages.following

    def offset() -> int:
        found = next(view for view in messages.views() if view.message.id == place.message)
        return messages.verticalScrollBar().value() - found.y()

    assert offset() == place.offset
    open_chat(window, qtbot, "short")
    assert window.chat.composer.text() == "" and messages.following
    open_chat(window, qtbot, "long")
    settled(window, qtbot)
    assert window.chat.composer.text() == "half a thought"
    assert offset() == place.offset and not messages.following


def test_the_next_start_shows_the_same_chats(
    make_window: MakeWindow, qtbot: QtBot, private_home: Path
) -> None:
    window = make_window(FakeReply(text="{prompt}!"))
    ready(window, qtbot)
    for text in ("one", "two"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    window.session.controller.chats.pin(id_of(window, "one"), True)
    open_chat(window, qtbot, "one")
    window.chat.composer.set_text("not sent yet")
    rows = titles(window)
    window.close()
    again = make_window(FakeReply(text="{prompt}!"))
    ready(again, qtbot)
    assert titles(again) == rows == ["# Pinned", "one", "# Today", "two"]
    assert texts(again) == ["one", "one!"]
    assert again.chat.composer.text() == "not sent yet"
    say(again, qtbot, "more")
    assert texts(again) == ["one", "one!", "more", "more!"]


@pytest.mark.parametrize("kind", ["markdown", "json"])
def test_export(window: MainWindow, qtbot: QtBot, tmp_path: Path, kind: str) -> None:
    say(window, qtbot, "tell me")
    path = tmp_path / "chat.out"
    window.chat.files.export(id_of(window, "tell me"), path, kind)  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8").count("tell me") >= 2
    assert any(str(path) in notice for notice in window.chat.notices())


def test_what_was_exported_is_imported_again(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    say(window, qtbot, "tell me")
    path = tmp_path / "chat.json"
    window.chat.files.export(id_of(window, "tell me"), path, "json")
    window.session.controller.new_chat()
    window.chat.files.import_files([path])
    qtbot.waitUntil(lambda: titles(window) == ["# Today", "tell me", "tell me"], timeout=WAIT)
    assert texts(window) == ["tell me", "tell me"]
    assert "1 chat was imported." in window.chat.notices()
    path.write_text("no chats here")
    window.chat.files.import_files([path])
    qtbot.waitUntil(lambda: window.chat.messages.problem_card() is not None, timeout=WAIT)


def test_the_sidebar_is_hidden_and_shown_with_keys(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "one")
    page = window.chat
    keys = (Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(page.composer.edit, *keys)
    assert not page.sidebar.isVisible() and page.main.x() == 0
    assert not page.header.sidebar_button.isChecked()
    qtbot.keyClick(page.composer.edit, *keys)
    assert page.sidebar.isVisible() and page.sidebar.list.hasFocus()
    qtbot.keyClick(page.sidebar.list, Qt.Key.Key_Escape)
    assert page.sidebar.isVisible() and page.composer.edit.hasFocus()


def test_a_narrow_window_hides_the_sidebar_until_it_is_asked_for(window: MainWindow, qtbot: QtBot) -> None:
    for text in ("one", "two"):
        window.session.controller.new_chat()
        say(window, qtbot, text)
    page = window.chat
    window.resize(560, 700)
    qtbot.waitUntil(lambda: not page.sidebar.isVisible())
    qtbot.mouseClick(page.header.sidebar_button, Qt.MouseButton.LeftButton)
    assert page.sidebar.isVisible() and page.main.x() == 0  # over the messages, which do not move
    open_chat(window, qtbot, "one")
    assert not page.sidebar.isVisible()
    page.search_chats()
    assert page.sidebar.search.hasFocus()
    qtbot.keyClick(page.sidebar.search, Qt.Key.Key_Escape)
    assert not page.sidebar.isVisible() and page.composer.edit.hasFocus()
    window.resize(1200, 700)
    qtbot.waitUntil(lambda: page.sidebar.isVisible())


def test_the_sidebars_width_is_chosen_and_kept(
    window: MainWindow, make_window: MakeWindow, qtbot: QtBot
) -> None:
    window.resize(1200, 700)
    frame = window.chat.frame
    width = frame.side_width
    frame.handle.setFocus()
    qtbot.keyClick(frame.handle, Qt.Key.Key_Right)
    assert window.chat.sidebar.width() == frame.side_width > width
    wider = frame.side_width
    window.close()
    assert make_window().chat.frame.side_width == wider


def test_options_of_a_chat_hold_for_it_alone(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="ok"), system_prompt="Be kind.")
    ready(window, qtbot)
    say(window, qtbot, "one")
    page = window.chat
    qtbot.mouseClick(page.header.options_button, Qt.MouseButton.LeftButton)
    panel = page._options.panel
    assert panel is not None and panel.isVisible()
    assert "Be kind." in panel.prompt.placeholderText()
    qtbot.keyClicks(panel.prompt, "Be brief.")
    panel.preset.setCurrentIndex(panel.preset.findData("Precise"))
    panel.preset.activated.emit(panel.preset.currentIndex())
    chat = window.session.controller.chat
    assert chat.preset == "Precise" and chat.sampling.temperature == 0.2
    panel.boxes["top_k"].setValue(7)
    assert chat.sampling.top_k == 7 and chat.sampling.temperature == 0.2 and chat.preset is None
    qtbot.mouseClick(panel.resets["temperature"], Qt.MouseButton.LeftButton)
    assert chat.sampling.temperature is None
    assert panel.boxes["temperature"].value() == window.session.settings.temperature
    window.session.controller.new_chat()
    assert chat.system_prompt == "Be brief."  # though it was typed a moment ago
    assert panel.prompt.toPlainText() == ""
    assert window.session.controller.chat.sampling.is_empty
    open_chat(window, qtbot, "one")
    assert panel.prompt.toPlainText() == "Be brief." and panel.boxes["top_k"].value() == 7
    qtbot.mouseClick(panel.prompt_reset, Qt.MouseButton.LeftButton)
    assert chat.system_prompt is None and panel.prompt.toPlainText() == ""
    qtbot.keyClick(panel.prompt, Qt.Key.Key_Escape)
    assert not panel.isVisible() and page.composer.edit.hasFocus()


def test_own_values_are_kept_as_a_preset(window: MainWindow, qtbot: QtBot) -> None:
    page = window.chat
    qtbot.mouseClick(page.header.options_button, Qt.MouseButton.LeftButton)
    panel = page._options.panel
    assert panel is not None
    panel.boxes["temperature"].setValue(1.5)
    panel._keep("  Wild  ")
    assert panel.preset.currentText() == "Wild" and panel.drop.isVisible()
    window.session.controller.new_chat()
    panel.preset.activated.emit(panel.preset.findData("Wild"))
    assert window.session.controller.chat.sampling.temperature == 1.5
    qtbot.mouseClick(panel.drop, Qt.MouseButton.LeftButton)
    assert panel.preset.findData("Wild") == -1
    assert window.session.controller.chat.sampling.temperature == 1.5
    panel._keep("precise")
    assert any("another name" in notice for notice in page.notices())


def test_drafted_text_is_shown_on_demand_with_a_legend(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words " * 30, drafts=((4, 3),), drafters=("map-k",)))
    ready(window, qtbot)
    say(window, qtbot, "go")
    page = window.chat
    assert not page.legend.isVisible()
    qtbot.mouseClick(page.header.drafts_button, Qt.MouseButton.LeftButton)
    assert page.legend.isVisible() and "map-k" in page.legend.names
    assert SettingsFile().load().show_drafts
    names, y = page.legend.names, page.composer.y()
    say(window, qtbot, "more")
    assert (page.legend.names, page.composer.y()) == (names, y)
    qtbot.mouseClick(page.header.drafts_button, Qt.MouseButton.LeftButton)
    assert not page.legend.isVisible()


def test_everything_on_the_page_has_a_name_and_is_reached_with_tab(window: MainWindow, qtbot: QtBot) -> None:
    say(window, qtbot, "one")
    window.activateWindow()
    window.chat.composer.setFocus()
    seen: set[QWidget] = set()
    for _ in range(60):
        qtbot.keyClick(window, Qt.Key.Key_Tab)
        focused = window.focusWidget()
        if focused is not None:
            seen.add(focused)
            assert focused.accessibleName() or getattr(focused, "text", str)(), focused
    page = window.chat
    wanted = {
        page.sidebar.search,
        page.sidebar.more,
        page.sidebar.list,
        page.frame.handle,
        page.header.sidebar_button,
        page.header.title,
        page.header.drafts_button,
        page.header.options_button,
        page.composer.edit,
    }
    assert wanted <= seen, [widget.accessibleName() for widget in wanted - seen]


def test_a_text_file_dropped_on_the_page_is_quoted_and_a_model_is_left_to_the_window(
    window: MainWindow, tmp_path: Path
) -> None:
    page = window.chat
    (tmp_path / "a.txt").write_text("alpha")
    (tmp_path / "m.gguf").write_bytes(b"GGUF")

    def files(name: str) -> QMimeData:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(tmp_path / name))])
        return data

    text, model = files("a.txt"), files("m.gguf")
    assert page.composer.edit.canInsertFromMimeData(text)
    assert not page.composer.edit.canInsertFromMimeData(model)
    assert dropped(page, text, page.rect().center())
    assert page.composer.text() == "`a.txt`:\n\n```txt\nalpha\n```\n"
    with held_over(page, model, page.rect().center()):
        assert page.composer.text() == "`a.txt`:\n\n```txt\nalpha\n```\n"
    assert dropped(page, model, page.rect().center())
    wanted = window.session.controller.state.wanted
    assert wanted is not None and wanted.endswith("m.gguf")


@pytest.mark.parametrize(("width", "least"), [(420, 60), (900, 110), (1280, 200)])
def test_the_title_has_its_share_beside_a_long_name_of_a_model(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, width: int, least: int
) -> None:
    model = tmp_path / "A-model-with-quite-a-long-name-Instruct-2507.Q4_K_M.gguf"
    model.write_bytes(b"GGUF")
    window = make_window(model=str(model))
    ready(window, qtbot)
    window.resize(width, 700)
    header, picker = window.chat.header, window.chat.picker
    qtbot.waitUntil(lambda: header.title.width() >= least)
    assert picker.geometry().right() <= header.width() and picker.width() >= 60
    assert picker.minimumSizeHint().width() <= picker.width()


def test_a_message_that_does_not_fit_is_asked_in_a_new_chat(make_window: MakeWindow, qtbot: QtBot) -> None:
    script = FakeScript(replies=(FakeReply(text="word " * 60, tokens_per_second=5000),), n_ctx=110)
    window = make_window(script=script)
    ready(window, qtbot)
    say(window, qtbot, "first")
    say(window, qtbot, "and now something rather longer " * 8)
    card = window.chat.messages.problem_card()
    assert card is not None and "longer than the context" in card.what
    assert list(card.buttons) == ["ask_anew", "settings:engine", "dismiss"]
    full = window.session.controller.chat
    qtbot.mouseClick(card.buttons["ask_anew"], Qt.MouseButton.LeftButton)
    assert window.session.controller.chat is not full and full.draft == "" and texts(window) == []
    assert window.chat.composer.text().startswith("and now") and window.chat.composer.edit.hasFocus()
    assert window.chat.messages.problem_card() is None
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)
    assert len(texts(window)) == 2
