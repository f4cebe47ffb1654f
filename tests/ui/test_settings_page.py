"""The settings page in its window, over the real pipe: what is changed there reaches the engine."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app import hub_token
from app.desktop_entry import has_menu
from app.settings import GROUPS, Settings, SettingsFile
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.conftest import MakeWindow
from tests.ui.test_window import WAIT, answered, last_text, ready, say
from ui.main_window import CHATS, SETTINGS, MainWindow
from ui.settings.setting_row import SettingRow
from ui.settings.settings_form import NEEDED
from ui.settings.settings_page import SettingsPage
from ui.settings.shortcut_list import ShortcutList
from ui.settings.special_editors import FontChoice, ModeChoice
from ui.theme import Theme
from ui.widgets.segments import Segments

TOLD = '{"sampling": {sampling}, "drafting": {drafting}, "options": {options}}'


def opened(window: MainWindow) -> SettingsPage:
    window.show_page(SETTINGS)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    return page


def told(window: MainWindow, qtbot: QtBot) -> dict[str, Any]:
    """What the worker hears with the next message."""
    window.show_page(CHATS)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    answer = window.session.controller.conversation.messages[-1]
    assert answer.state == "done", answer.problem
    heard: dict[str, Any] = json.loads(answer.text)
    return heard


def spin(page: SettingsPage, name: str) -> QSpinBox:
    box = page.form.controls[name]
    assert isinstance(box, QSpinBox)
    return box


def row(page: SettingsPage, name: str) -> SettingRow:
    return next(each for each in page.form.rows if name in (*each.names, each.words.name))


def shown_rows(page: SettingsPage) -> list[str]:
    return [row.words.name for row in page.form.rows if not row.isHidden()]


# ---- what reaches the engine


def test_sampling_and_the_chain_hold_from_the_next_message_on(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text=TOLD, tokens_per_second=5000))
    ready(window, qtbot)
    page = opened(window)
    report = window.session.controller.state.report
    temperature, top_p = page.form.controls["temperature"], page.form.controls["top_p"]
    assert isinstance(temperature, QDoubleSpinBox) and isinstance(top_p, QDoubleSpinBox)
    temperature.setValue(0.35)
    top_p.setValue(0.5)
    spin(page, "top_k").setValue(7)
    mode = page.form.controls["drafting"]
    assert isinstance(mode, ModeChoice)
    mode.buttons["manual"].click()
    next(each for each in page.form.chain.rows if each.name == "cache").switch.click()
    spin(page, "parameters.map-k.n").setValue(9)
    heard = told(window, qtbot)
    assert heard["sampling"]["temperature"] == 0.35
    assert (heard["sampling"]["top_k"], heard["sampling"]["top_p"]) == (7, 0.5)
    assert heard["drafting"]["mode"] == "manual"
    assert "cache" not in heard["drafting"]["links"] and "map-k" in heard["drafting"]["links"]
    assert heard["drafting"]["parameters"]["map-k"]["n"] == 9
    assert window.session.controller.state.report is report  # nothing was loaded again
    assert SettingsFile().load() == window.session.settings


def test_what_the_model_is_loaded_with_holds_from_the_next_answer_on(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(FakeReply(text=TOLD, tokens_per_second=5000))
    ready(window, qtbot)
    page = opened(window)
    first = window.session.controller.state.report
    assert first is not None and first.n_ctx == 4096
    assert not page.reload.isVisible()
    spin(page, "n_ctx").setValue(2048)
    spin(page, "n_batch").setValue(64)
    spin(page, "n_gpu_layers").setValue(0)
    kv, flash = page.form.controls["kv_type"], page.form.controls["flash_attention"]
    assert isinstance(kv, QComboBox) and isinstance(flash, Segments)
    kv.setCurrentIndex(kv.findData("q8_0"))
    flash.buttons["off"].click()
    assert row(page, "flash_attention").note.text() == NEEDED
    flash.buttons["on"].click()
    assert row(page, "flash_attention").note.isHidden()
    qtbot.waitUntil(page.reload.isVisible, timeout=WAIT)
    assert "before the next answer" in page.note.text()
    assert window.session.controller.state.report is first  # a person may go on changing
    heard = told(window, qtbot)
    assert {name: heard["options"][name] for name in ("n_ctx", "n_batch", "n_gpu_layers", "kv_type")} == {
        "n_ctx": 2048,
        "n_batch": 64,
        "n_gpu_layers": 0,
        "kv_type": "q8_0",
    }
    assert heard["options"]["flash_attention"] == "on"
    report = window.session.controller.state.report
    assert report is not None and report.n_ctx == 2048
    opened(window)
    assert not page.reload.isVisible()


def test_the_model_can_be_loaded_again_at_once(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text=TOLD))
    ready(window, qtbot)
    page = opened(window)
    spin(page, "n_ctx").setValue(1024)
    qtbot.waitUntil(page.reload.isVisible, timeout=WAIT)
    page.reload.click()
    ready(window, qtbot)
    report = window.session.controller.state.report
    assert report is not None and report.n_ctx == 1024
    assert not page.reload.isVisible()
    assert page.note.text() == "Changes hold from the next message on."


def test_a_change_taken_back_needs_no_reload(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    ready(window, qtbot)
    page = opened(window)
    spin(page, "n_ctx").setValue(1024)
    qtbot.waitUntil(page.reload.isVisible, timeout=WAIT)
    row(page, "n_ctx").reset.click()
    qtbot.waitUntil(lambda: not page.reload.isVisible(), timeout=WAIT)
    assert spin(page, "n_ctx").value() == 4096


def test_no_answer_is_interrupted_for_a_reload(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 400, tokens_per_second=200))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    qtbot.waitUntil(lambda: "word" in last_text(window), timeout=WAIT)
    page = opened(window)
    spin(page, "n_ctx").setValue(2048)
    qtbot.waitUntil(page.reload.isVisible, timeout=WAIT)
    page.reload.click()
    controller = window.session.controller
    assert controller.busy and controller.state.phase == "ready"
    assert "as soon as this answer has ended" in page.note.text()
    assert not page.reload.isVisible()
    assert not page.form.isHidden()
    answered(window, qtbot)
    assert controller.conversation.messages[-1].text == ("word " * 400)
    assert controller.conversation.messages[-1].state == "done"
    ready(window, qtbot)
    assert controller.state.report is not None and controller.state.report.n_ctx == 2048


def test_a_model_can_be_unloaded_and_the_next_message_loads_it(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="{prompt}!"))
    ready(window, qtbot)
    page = opened(window)
    engine = row(page, "memory")
    assert "toy: " in engine.explanation.text() and "4,096 tokens" in engine.explanation.text()
    buttons = {button.text(): button for button in engine.findChildren(QAbstractButton) if button.text()}
    buttons["Unload"].click()
    assert window.session.controller.state.phase == "no_model"
    assert "not in memory" in engine.explanation.text()
    assert window.chat.picker.text() == "toy (not in memory)"
    window.show_page(CHATS)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert last_text(window) == "hi!"
    assert window.session.controller.state.phase == "ready"
    opened(window)
    buttons["Load again"].click()
    assert window.session.controller.state.phase == "loading"
    ready(window, qtbot)


def test_loading_can_be_stopped(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(script=FakeScript(replies=(FakeReply(text="{prompt}!"),), load_s=30))
    page = opened(window)
    engine = row(page, "memory")
    stop = next(b for b in engine.findChildren(QAbstractButton) if b.text() == "Stop loading")
    stop.click()
    assert window.session.controller.state.phase == "no_model"
    assert not window.chat.load_bar.isVisible()


def test_a_model_that_nobody_asks_leaves_memory(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 40, tokens_per_second=100))
    window.session.idle.minute_ms = 40
    ready(window, qtbot)
    page = opened(window)
    assert row(page, "idle_minutes").words.least == spin(page, "idle_minutes").text() == "Always"
    spin(page, "idle_minutes").setValue(1)
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "no_model", timeout=WAIT)
    window.session.idle.minute_ms = 60_000
    window.show_page(CHATS)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert window.session.controller.state.phase == "ready"
    assert last_text(window).startswith("word")


def test_each_drafter_says_what_was_accepted_so_far(make_window: MakeWindow, qtbot: QtBot) -> None:
    """Over the pipe and through the history's file."""
    window = make_window(FakeReply(text="some words here and more", drafts=((4, 3),), drafters=("map-k",)))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    stats = window.session.controller.conversation.messages[-1].stats
    assert stats is not None and stats.drafted
    page = opened(window)
    chain = {row.name: row for row in page.form.chain.rows}
    share = f"{round(100 * stats.accepted / stats.drafted)} % accepted"
    qtbot.waitUntil(lambda: chain["map-k"].accepted.text() == share, timeout=WAIT)
    assert f"Of the {stats.drafted} tokens that map-k has drafted" in chain["map-k"].accepted.toolTip()
    assert chain["cache"].accepted.text() == ""


# ---- each row


def test_a_row_offers_the_way_back_only_where_there_is_one(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False, theme="system")
    page = opened(window)
    assert not [row.words.name for row in page.form.rows if not row.reset.isHidden()]
    changes: dict[str, Any] = {
        "drafting": False,
        "order": ("mod", "cache"),
        "draft_model": "/m/d.gguf",
        "floor_auto": 0.5,
        "verification": "exact",
        "learn": False,
        "n_gpu_layers": 3,
        "kv_type": "f32",
        "temperature": 0.0,
        "system_prompt": "Be brief.",
        "zoom": 110,
        "offline": True,
        "shortcuts": {"new_chat": "Ctrl+T"},
    }
    for name, value in changes.items():
        window.session.apply(Settings(**{name: value}))
        assert [row.words.name for row in page.form.rows if not row.reset.isHidden()] == [
            row(page, name).words.name
        ]
        back = row(page, name).reset
        assert back.isVisibleTo(page.form.column)
        back.click()
        assert window.session.settings == Settings(), name
        assert back.isHidden()
    assert row(page, "max_draft").reset.toolTip() == "Back to the default: 48."
    assert row(page, "max_tokens").reset.toolTip() == "Back to the default: No limit."
    assert row(page, "floor_manual").reset.toolTip() == "Back to the default: 20 %."


def test_changes_made_elsewhere_are_shown_and_typing_is_not_lost(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(start=False)
    page = opened(window)
    spin(page, "n_ctx").setValue(2048)  # not sent yet
    window.session.apply(
        Settings(temperature=0.2, drafting=False, links=("mod",), order=("mod", "cache"), theme="dark")
    )
    temperature, mode, theme = (page.form.controls[name] for name in ("temperature", "drafting", "theme"))
    assert (
        isinstance(temperature, QDoubleSpinBox) and isinstance(mode, Segments) and isinstance(theme, Segments)
    )
    assert (temperature.value(), mode.value, theme.value) == (0.2, "off", "dark")
    assert page.form.chain.links == ("mod",) and page.form.chain.order[:2] == ("mod", "cache")
    assert spin(page, "n_ctx").value() == 2048
    window.show_page(CHATS)
    assert window.session.settings.n_ctx == 2048
    assert window.session.settings.temperature == 0.2


def test_off_remembers_who_drafts(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False, draft_mode="manual")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=WAIT)
    mode = opened(window).form.controls["drafting"]
    assert isinstance(mode, ModeChoice)
    mode.buttons["off"].click()
    assert (window.session.settings.drafting, window.session.settings.draft_mode) == (False, "manual")
    mode.buttons["off"].setFocus()
    QTest.keyClick(mode.buttons["off"], Qt.Key.Key_Right)  # arrows go from word to word
    assert mode.buttons["auto"].isChecked()
    mode.buttons["manual"].click()
    assert window.session.settings.drafting_params().links


def test_appearance_holds_at_once(make_window: MakeWindow, qtbot: QtBot, theme: Theme) -> None:
    window = make_window(start=False)
    page = opened(window)
    density, font = page.form.controls["density"], page.form.controls["font_family"]
    assert isinstance(density, Segments) and isinstance(font, FontChoice)
    title = row(page, "theme").title
    before = (title.fontMetrics().height(), row(page, "theme").sizeHint().height())
    density.buttons["compact"].click()
    assert theme.measures.compact
    assert row(page, "theme").sizeHint().height() < before[1]
    spin(page, "zoom").setValue(200)
    qtbot.waitUntil(lambda: theme.measures.zoom == 200, timeout=WAIT)
    assert title.fontMetrics().height() > 1.5 * before[0]
    assert font.count() == 1  # families are read when they are asked for
    font.fill()
    assert font.count() > 1
    font.setCurrentIndex(1)
    assert QApplication.font().family() == font.currentData() == window.session.settings.font_family


# ---- search and groups


def test_a_search_leaves_what_has_all_words_and_marks_them(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False)
    page = opened(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=WAIT)
    everything = shown_rows(page)
    page.start_search()
    assert page.search.hasFocus()
    QTest.keyClicks(page.search, "TOKENS memory")
    assert shown_rows(page) == ["n_ctx", "n_batch"]
    assert page.form.found_groups() == ["engine"]
    assert [not page.groups.item(n).isHidden() for n in range(page.groups.count())].count(True) == 1
    assert row(page, "n_ctx").explanation.text().count("<span") == 2
    QTest.keyClick(page.search, Qt.Key.Key_Escape)
    assert shown_rows(page) == everything
    assert "<span" not in row(page, "n_ctx").explanation.text()
    QTest.keyClicks(page.search, "<b>zzz")
    assert shown_rows(page) == []
    assert page.nothing.isVisible() and "<b>zzz" in page.nothing.text()


@pytest.mark.parametrize(
    ("words", "name"),
    [("suffix", "links"), ("q8", "kv_type"), ("dark", "theme"), ("penalty frequency", "frequency_penalty"),
     ("hugging", "offline"), ("palette", "shortcuts"), ("sampling", "temperature"), ("backup", "exchange")],
)  # fmt: skip
def test_what_a_person_would_type_is_found(
    make_window: MakeWindow, qtbot: QtBot, words: str, name: str
) -> None:
    page = opened(make_window(start=False))
    page.search.setText(words)
    assert name in shown_rows(page)


def test_a_search_does_not_show_what_does_not_matter(make_window: MakeWindow, qtbot: QtBot) -> None:
    page = opened(make_window(start=False, draft_mode="manual"))
    page.search.setText("pauses a drafter")
    assert shown_rows(page) == ["floor_manual"]


def test_groups_lead_to_their_rows_and_follow_the_scrolling(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False)
    window.resize(1200, 700)
    page = opened(window)
    assert page.groups.isVisible()
    for number, group in enumerate(GROUPS):
        page.groups.setCurrentRow(number)
        section = page.form.sections[group.name]
        top = section.mapTo(page.form.area, QPoint()).y()
        bar = page.form.area.verticalScrollBar()
        assert abs(top) <= 4 or bar.value() == bar.maximum()
    page.form.area.verticalScrollBar().setValue(0)
    assert page.groups.currentRow() == 0
    window.resize(700, 700)
    assert not page.groups.isVisible()


# ---- import, export, reset


def test_all_settings_go_out_and_come_back_and_a_reset_can_be_undone(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(start=False, temperature=0.1, draft_mode="manual", zoom=110)
    page = opened(window)
    given = window.session.settings
    file = tmp_path / "out.json"
    page.exchange.write(str(file))
    page.exchange.buttons["Reset all"].click()
    assert window.session.settings == Settings(model=given.model)
    assert page.undo.isVisible()
    page.undo.button.click()
    assert window.session.settings == given
    page.exchange.buttons["Reset all"].click()
    page.exchange.read(str(file))
    assert window.session.settings == given
    temperature = page.form.controls["temperature"]
    assert isinstance(temperature, QDoubleSpinBox) and temperature.value() == 0.1
    assert SettingsFile().load() == given


def test_an_import_tells_what_it_left_out(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window(start=False)
    page = opened(window)
    file = tmp_path / "odd.json"
    file.write_text('{"telepathy\u202e": 1, "temperature": 0.5, "n_ctx": "much"}', encoding="utf-8")
    page.exchange.read(str(file))
    assert window.session.settings.temperature == 0.5
    assert page.undo.text.startswith("1 setting was changed by the import. Left out: ")
    assert "n_ctx" in page.undo.text and "telepathy" in page.undo.text and "\u202e" not in page.undo.text
    file.write_text("nonsense")
    for _ in range(2):
        page.exchange.read(str(file))
        assert page.told is not None and "holds no settings" in page.told.text
    page.told.dismissed.emit()
    assert page.told is None
    page.exchange.write(str(tmp_path / "gone" / "x.json"))
    assert page.told is not None and "could not be written" in page.told.text


# ---- the token


def test_the_token_is_kept_and_never_shown(make_window: MakeWindow, qtbot: QtBot) -> None:
    page = opened(make_window(start=False))
    secret = "hf_abcdefghijklmnopqrstuv"
    assert not page.token.save.isEnabled() and page.token.forget.isHidden()
    QTest.keyClicks(page.token.field, secret)
    assert page.token.field.displayText() != secret
    page.token.save.click()
    assert hub_token.token_path().read_text() == secret
    assert page.token.field.text() == ""
    assert "••••stuv" in page.token.explanation.text() and secret not in page.token.explanation.text()
    assert secret.encode() not in b"".join(
        path.read_bytes()
        for path in hub_token.token_path().parent.rglob("*")
        if path.is_file() and path != hub_token.token_path()
    )
    page.token.field.setText("not a token")
    page.token.save.click()
    assert page.token.note.isVisibleTo(page.token) and "no token" in page.token.note.text()
    page.token.forget.click()
    assert not hub_token.token_path().exists()


def test_disk_use_is_counted(make_window: MakeWindow, qtbot: QtBot, private_home: Path) -> None:
    folder = private_home / "models"
    folder.mkdir(parents=True)
    (folder / "a.gguf").write_bytes(bytes(5_000_000))
    page = opened(make_window(start=False))
    qtbot.waitUntil(lambda: "Models 5 MB" in page.disk_use.explanation.text(), timeout=WAIT)
    assert "free" in page.disk_use.explanation.text()


# ---- keys


def keys(page: SettingsPage) -> ShortcutList:
    found = page.form.controls["shortcuts"]
    assert isinstance(found, ShortcutList)
    return found


def test_keys_can_be_changed_and_given_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False)
    page = opened(window)
    edit = keys(page).edits["new_chat"]
    QTest.keyClick(edit, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.session.settings.shortcuts == {"new_chat": "Ctrl+T"}, timeout=WAIT)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=WAIT)
    QTest.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert window.stack.currentWidget() is page  # they mean nothing any more
    QTest.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    assert window.stack.currentWidget() is window.chat
    opened(window)
    back = keys(page).defaults["new_chat"]
    assert not back.isHidden()
    back.click()
    assert window.session.settings.shortcuts == {}
    assert edit.keySequence().toString() == "Ctrl+N"


@pytest.mark.parametrize(
    ("key", "modifiers", "why"),
    [
        (Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier, "Command palette"),
        (Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, "needed for typing"),
    ],
)
def test_keys_that_cannot_be_had_change_nothing(
    make_window: MakeWindow, qtbot: QtBot, key: Qt.Key, modifiers: Qt.KeyboardModifier, why: str
) -> None:
    window = make_window(start=False)
    page = opened(window)
    edit = keys(page).edits["new_chat"]
    QTest.keyClick(edit, key, modifiers)
    qtbot.waitUntil(lambda: why in keys(page).note.text(), timeout=WAIT)
    assert edit.keySequence().toString() == "Ctrl+N"
    assert window.session.settings.shortcuts == {}


# ---- everybody can use it


def stretched(text: str) -> str:
    """As German would be: words half as long again, and more of them."""
    return text + " " + "".join(reversed(text))[: len(text) * 6 // 10]


def too_small(widget: QWidget) -> bool:
    if isinstance(widget, QLabel):
        if widget.wordWrap():
            return widget.height() < widget.heightForWidth(widget.width()) - 1
        return widget.width() < widget.sizeHint().width() - 1
    return widget.width() < widget.sizeHint().width() - 1 or widget.height() < widget.sizeHint().height() - 1


@pytest.mark.parametrize("zoom", [100, 150])
@pytest.mark.parametrize("width", [560, 900, 1400])
def test_words_half_as_long_again_are_not_cut(
    make_window: MakeWindow, qtbot: QtBot, width: int, zoom: int
) -> None:
    window = make_window(start=False, draft_mode="manual", zoom=zoom)
    window.resize(width, 800)
    page = opened(window)
    page.form.chain.rows[0].fold.click()
    for row in page.form.rows:
        row.show_words(stretched(row.words.title), stretched(row.words.help))
    for label in page.findChildren(QLabel):
        if label.textFormat() != Qt.TextFormat.RichText:
            label.setText(stretched(label.text()))
    for button in page.findChildren(QAbstractButton):
        if button.text() and button.property("look") != "segment":
            button.setText(stretched(button.text())[: len(button.text()) * 16 // 10])
    page.form.column.layout().activate()
    words = [*page.findChildren(QLabel), *page.findChildren(QAbstractButton)]

    def cut() -> list[str]:
        return [w.text() for w in words if w.isVisibleTo(page) and w.width() and w.text() and too_small(w)]

    for _ in range(3):  # a line that got narrower is known only with the next turn to need more height
        QApplication.processEvents()
    assert page.form.column.width() <= page.form.area.viewport().width()
    assert not cut()
    outside = [
        w.text() or w.accessibleName()
        for w in words
        if w.isVisibleTo(page.form.column)
        and page.form.column.isAncestorOf(w)
        and w.mapTo(page.form.column, QPoint(w.width(), 0)).x() > page.form.column.width()
    ]
    assert not outside


def test_the_smallest_window_shows_every_control_whole(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False, draft_mode="manual", draft_model="/m/a-file-with-a-long-name.gguf")
    window.resize(window.minimumSize())
    page = opened(window)
    assert window.width() <= 400
    qtbot.waitUntil(lambda: page.form.column.width() <= page.form.area.viewport().width(), timeout=WAIT)
    assert page.form.area.horizontalScrollBar().maximum() == 0


def test_tab_goes_from_top_to_bottom_through_every_row(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False, draft_mode="manual")
    window.resize(1200, 800)
    page = opened(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=WAIT)
    page.search.setFocus()
    visited: list[QWidget] = []
    while (focused := QApplication.focusWidget()) is not page.exchange.buttons["Reset all"]:
        assert focused is not None
        visited.append(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        assert len(visited) < 200
    inside = [w for w in visited if page.form.column.isAncestorOf(w)]
    tops = [w.mapTo(page.form.column, QPoint(0, w.height() // 2)).y() for w in inside]
    assert all(after > before - 20 for before, after in itertools.pairwise(tops))
    reached = {row.words.name for row in page.form.rows if any(row.isAncestorOf(w) for w in inside)}
    shown = {row.words.name for row in page.form.rows if not row.isHidden()}
    # What is switched off now takes no focus.
    assert shown - reached <= {"memory", "chat_templates", "disk_use", "exchange"}


def test_every_control_says_what_it_is(make_window: MakeWindow, qtbot: QtBot) -> None:
    page = opened(make_window(start=False))
    for row in page.form.rows:
        assert row.title.buddy() is row.control, row.words.name
        assert row.control.accessibleName() == row.words.title
        assert row.control.accessibleDescription()
        assert row.reset.accessibleName() == f"{row.words.title}: back to the default"
    for button in page.findChildren(QAbstractButton):
        if button.isVisibleTo(page) and not isinstance(button.parent(), QLineEdit):
            assert button.accessibleName() or button.text()
    assert page.search.accessibleName() and page.groups.accessibleName()


@pytest.mark.skipif(not has_menu(), reason="no menu entries here")
def test_the_menu_entry_is_added_and_removed(
    make_window: MakeWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    page = opened(make_window())
    entry = page.menu_entry
    assert not entry.add.isHidden() and entry.remove.isHidden()
    entry.add.click()
    assert (tmp_path / "share" / "applications" / "slipstream.desktop").is_file()
    assert entry.add.isHidden() and not entry.remove.isHidden() and "It is there." in entry.explanation.text()
    entry.remove.click()
    assert not list(tmp_path.rglob("slipstream.desktop")) and not entry.add.isHidden()
    (tmp_path / "share" / "applications").rmdir()
    (tmp_path / "share" / "applications").write_text("in the way")
    entry.add.click()
    assert "could not be changed" in entry.note.text()
