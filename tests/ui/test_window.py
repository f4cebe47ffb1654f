"""The real window over the real pipe, with the scripted fake engine."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.settings import SettingsFile
from app.speed_history import SpeedHistory
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.conftest import MakeWindow, settings_form
from ui.main_window import CHATS, MainWindow
from ui.rail import WIDTH
from ui.settings.special_editors import ModeChoice

WAIT = 15_000


def ready(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)


def say(window: MainWindow, qtbot: QtBot, text: str) -> None:
    qtbot.keyClicks(window.chat.composer.edit, text)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)


def answered(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.session.controller.busy, timeout=WAIT)


def last_text(window: MainWindow) -> str:
    return "\n".join(part.toPlainText() for part in window.chat.messages.views()[-1].body.parts())  # type: ignore[union-attr]


def test_types_sends_sees_text_and_numbers_change_and_stops(make_window: MakeWindow, qtbot: QtBot) -> None:
    reply = FakeReply(text="word " * 4000, tokens_per_second=150, drafts=((4, 3), (0, 0)))
    window = make_window(reply)
    ready(window, qtbot)
    say(window, qtbot, "hello there")
    assert window.chat.composer.text() == ""
    assert window.chat.messages.views()[0].message.text == "hello there"
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > 20, timeout=WAIT)
    first = (last_text(window), window.session.controller.numbers.tokens)
    qtbot.waitUntil(lambda: window.session.controller.numbers.speed is not None, timeout=WAIT)
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > first[1] + 40, timeout=WAIT)
    assert len(last_text(window)) > len(first[0])
    assert window.chat.strip.speed.text() != "— tok/s"
    assert window.chat.strip.acceptance.text() == "75 % accepted"
    assert window.chat.strip.per_pass.text() != "— per pass"
    qtbot.keyClicks(window.chat.composer.edit, "typed meanwhile")
    began = time.monotonic()
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Escape)
    answered(window, qtbot)
    assert time.monotonic() - began < 10  # the answer itself would take 20 s
    view = window.chat.messages.views()[-1]
    assert view.message.state == "stopped"
    assert view.message.text.startswith("word word")
    assert "75 % accepted" in view.footer.text()
    assert window.chat.composer.text() == "typed meanwhile"


def test_drafting_off_is_said_and_changes_the_numbers(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words here", drafts=((3, 3),)))
    ready(window, qtbot)
    mode = settings_form(window).controls["drafting"]
    assert isinstance(mode, ModeChoice)
    qtbot.mouseClick(mode.buttons["off"], Qt.MouseButton.LeftButton)
    assert window.chat.strip.words.whole == "Drafting off in settings"
    assert SettingsFile().load().drafting is False
    window.show_page(CHATS)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert window.chat.strip.acceptance.text() == "— accepted"
    assert "— accepted" in window.chat.messages.views()[-1].footer.text()


def test_kill_of_the_worker_keeps_the_answer_and_the_next_message_is_answered(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(FakeReply(text="partial answer " * 500, tokens_per_second=100))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    qtbot.waitUntil(lambda: "partial answer" in last_text(window), timeout=WAIT)
    pid = window.session.bridge.client.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    answered(window, qtbot)
    assert window.isVisible()
    view = window.chat.messages.views()[-1]
    assert view.message.text.startswith("partial answer")
    assert view.card is not None
    assert "stopped" in view.card.what and "memory" in view.card.what
    assert "retry" in view.card.buttons
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)
    assert window.session.bridge.client.pid not in (None, pid)
    say(window, qtbot, "again")
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > 3, timeout=WAIT)
    window.session.controller.stop()
    answered(window, qtbot)
    assert window.chat.messages.views()[-1].message.text.startswith("partial")


def test_three_deaths_offer_a_restart_with_drafting_off(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="x" * 400, crash="kill", at=1))
    ready(window, qtbot)
    for _ in range(3):
        qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)
        say(window, qtbot, "hi")
        answered(window, qtbot)
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "lost", timeout=WAIT)
    card = window.chat.messages.problem_card()
    assert card is not None
    qtbot.mouseClick(card.buttons["restart_plain"], Qt.MouseButton.LeftButton)
    ready(window, qtbot)
    assert not window.session.controller.settings.drafting
    assert window.chat.messages.problem_card() is None


def test_a_message_sent_while_loading_is_answered(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(script=FakeScript(replies=(FakeReply(text="{prompt}!"),), load_s=0.4))
    say(window, qtbot, "early")
    assert window.session.controller.state.phase == "loading"
    assert window.chat.load_bar.isVisible()
    answered(window, qtbot)
    assert last_text(window) == "early!"
    assert not window.chat.load_bar.isVisible()


def test_the_label_is_the_workers_word(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    assert window.chat.picker.text() == "Loading toy"
    ready(window, qtbot)
    report = window.session.controller.state.report
    assert report is not None
    assert window.chat.picker.text() == report.name


def test_a_load_that_fails_says_why_and_the_window_stays_usable(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(script=FakeScript(load_fail="This is not a GGUF file."))
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "failed", timeout=WAIT)
    card = window.chat.messages.problem_card()
    assert card is not None and "not a GGUF" in card.what
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert window.chat.messages.views()[-1].card is not None
    assert window.session.controller.conversation.messages[0].text == "hi"


def test_an_empty_message_is_hinted_at_and_nothing_is_lost(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    ready(window, qtbot)
    window.chat.composer.set_text("  \n ")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    assert window.chat.composer.text() == "  \n "
    assert window.chat.composer.hint.isVisible()
    assert not window.session.controller.conversation.messages


def test_new_chat_forgets_and_the_prompts_fill_the_composer(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="ok"))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert not window.session.controller.conversation.messages
    assert window.chat.pages.currentWidget() is window.chat.empty
    qtbot.mouseClick(window.chat.empty.buttons[0], Qt.MouseButton.LeftButton)
    assert "`rows`" in window.chat.composer.text()
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)
    messages = window.session.controller.conversation.messages
    assert [message.role for message in messages] == [
        "user",
        "assistant",
    ]


def test_up_in_an_empty_composer_edits_the_last_message(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="{prompt}"))
    ready(window, qtbot)
    say(window, qtbot, "one")
    answered(window, qtbot)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Up)
    assert window.chat.composer.text() == "one"
    qtbot.keyClicks(window.chat.composer.edit, " more")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)
    messages = window.session.controller.conversation.messages
    assert [message.text for message in messages] == [
        "one more",
        "one more",
    ]


def test_bytes_of_a_character_in_several_tokens_read_whole(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="👩‍💻漢字é שלום", tokens_per_second=1000))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert last_text(window) == "👩‍💻漢字é שלום"


def test_no_more_than_thirty_updates_a_second(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 1500, tokens_per_second=1500))
    ready(window, qtbot)
    batches: list[float] = []
    handle = window.session.controller.handle

    def counting(events: list[object]) -> None:
        batches.append(time.monotonic())
        handle(events)  # type: ignore[arg-type]

    window.session.controller.handle = counting  # type: ignore[method-assign, assignment]
    began = time.monotonic()
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert len(batches) <= 30 * (time.monotonic() - began) + 3
    assert len(batches) > 5


def test_every_control_has_a_name(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="```py\nx\n```\nhi"))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    form = settings_form(window)
    nameless = [
        button
        for button in window.findChildren(QPushButton)
        if not (button.accessibleName() or button.text())
    ]
    assert not nameless
    assert all(control.accessibleName() for control in form.controls.values())


@pytest.mark.parametrize("width", [420, 1400])
def test_messages_are_centred_and_never_wider_than_their_measure(
    make_window: MakeWindow, qtbot: QtBot, width: int
) -> None:
    window = make_window(FakeReply(text="word " * 300))
    ready(window, qtbot)
    window.resize(width, 700)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    qtbot.waitUntil(lambda: window.chat.messages.views()[-1].width() == min(760, width - WIDTH - 32))
    view = window.chat.messages.views()[-1]
    left = view.mapTo(window.chat.main, QPoint(0, 0)).x()
    assert abs(left - (window.chat.main.width() - view.width()) / 2) <= 1
    assert window.chat.composer.width() == view.width()


def test_closing_while_it_writes_leaves_no_worker(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="word " * 5000))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > 3, timeout=WAIT)
    began = time.monotonic()
    window.close()  # the session's fixture fails if a process or a thread is left
    assert time.monotonic() - began < 20


def test_focus_goes_round_with_tab(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    ready(window, qtbot)
    window.activateWindow()
    window.chat.composer.edit.setFocus()
    seen = set()
    for _ in range(40):
        QTest.keyClick(window, Qt.Key.Key_Tab)
        focused = window.focusWidget()
        if focused is not None:
            seen.add(focused)
    assert {window.chat.new_button, window.chat.picker, window.chat.composer.button} <= seen
    assert seen & set(window.rail.buttons.values())


def test_page_up_in_the_composer_scrolls_the_messages(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="a line\n\n" * 200, tokens_per_second=5000))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    assert window.chat.messages.following
    bar = window.chat.messages.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 1000 and bar.value() == bar.maximum())
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_PageUp)
    assert not window.chat.messages.following
    assert bar.value() < bar.maximum()


def test_answers_are_counted_for_the_history_of_speed(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words here", drafts=((3, 3), (2, 0))))
    ready(window, qtbot)
    for _ in range(2):
        say(window, qtbot, "hi")
        answered(window, qtbot)
    window.close()  # waits for what is still to be written
    rows = SpeedHistory(pytest.fail).read()
    assert [(row.target.name, row.kind, row.whole.ever.answers) for row in rows] == [("toy", "prose", 2)]
    stats = [v.message.stats for v in window.chat.messages.views() if v.message.role == "assistant"]
    assert rows[0].whole.ever.drafted == sum(s.drafted for s in stats if s is not None) > 0


def test_a_damaged_history_is_a_notice(make_window: MakeWindow, qtbot: QtBot, private_home: Path) -> None:
    (private_home / "data").mkdir(parents=True, exist_ok=True)
    (private_home / "data" / "speed.sqlite3").write_bytes(b"no database " * 1000)
    window = make_window(FakeReply(text="some words here"))
    ready(window, qtbot)
    say(window, qtbot, "hi")
    answered(window, qtbot)
    qtbot.waitUntil(lambda: any("damaged" in text for text in window.chat.notices()), timeout=WAIT)
    assert window.chat.messages.views()[-1].message.state == "done"
