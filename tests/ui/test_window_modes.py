"""Modes of drafting in the window, over the real pipe: what is paused, off or changed is said, and holds."""

from __future__ import annotations

from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from app.worker.fake_script import FakeReply
from drafting.statistics import Statistics
from tests.ui.conftest import MakeWindow, settings_form
from tests.ui.test_window import WAIT, answered, ready, say
from ui.main_window import CHATS, MainWindow

WORDS = "word " * 400


def ask(window: MainWindow, qtbot: QtBot) -> None:
    ready(window, qtbot)
    say(window, qtbot, "hi")


def finished(window: MainWindow, qtbot: QtBot) -> Statistics:
    answered(window, qtbot)
    stats = window.session.controller.conversation.messages[-1].stats
    assert stats is not None
    return stats


def test_a_drafter_that_is_seldom_right_is_paused_and_comes_back(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    """B01: the person is told once, the strip says why nothing is drafted, and for how long."""
    wrong, right = ((8, 0),) * 12, ((4, 4),) * 500
    reply = FakeReply(text=WORDS * 3, tokens_per_second=150, drafts=wrong + right, drafters=("map-k",))
    window = make_window(reply, draft_mode="manual")
    ask(window, qtbot)
    qtbot.waitUntil(lambda: window.chat.strip.words.whole == "paused: low acceptance", timeout=WAIT)
    assert "map-k: 0 % of about " in window.chat.strip.words.toolTip()
    assert window.chat.strip.drafter.name is None
    told = [text for text in window.chat.notices() if "paused" in text]
    assert len(told) == 1 and told[0].startswith("map-k is paused: low acceptance (0 % of about ")
    qtbot.waitUntil(lambda: window.chat.strip.words.whole == "", timeout=WAIT)
    qtbot.waitUntil(lambda: window.chat.strip.drafter.name == "map-k", timeout=WAIT)
    window.session.controller.stop()
    stats = finished(window, qtbot)
    assert stats.undrafted["paused: low acceptance"] >= 16
    assert [text for text in window.chat.notices() if "paused" in text] == told


def test_when_no_link_drafts_the_strip_says_inactive_and_why(make_window: MakeWindow, qtbot: QtBot) -> None:
    """A18."""
    reply = FakeReply(text=WORDS, tokens_per_second=150, drafters=("mod",), link_fail="boom")
    window = make_window(reply, draft_mode="manual")
    ask(window, qtbot)
    qtbot.waitUntil(lambda: window.chat.strip.words.whole == "inactive: all drafters are off", timeout=WAIT)
    assert window.chat.strip.words.toolTip() == "mod: RuntimeError: boom."
    assert window.chat.notices() == ("Drafting with mod is off: RuntimeError: boom",)
    window.session.controller.stop()
    answered(window, qtbot)


def test_words_and_fields_of_the_strip_stay_where_they_are(make_window: MakeWindow, qtbot: QtBot) -> None:
    reply = FakeReply(text=WORDS, tokens_per_second=150, drafts=((0, 0),) * 19 + ((3, 0),))
    window = make_window(reply, draft_mode="manual")
    ask(window, qtbot)
    words: list[str] = []
    places = set()

    def look() -> bool:
        if not words or words[-1] != window.chat.strip.words.whole:
            words.append(window.chat.strip.words.whole)
        strip = window.chat.strip
        places.add(
            tuple(f.geometry().x() for f in (strip.speed, strip.acceptance, strip.drafter, strip.words))
        )
        return not window.session.controller.busy

    qtbot.waitUntil(look, timeout=WAIT)
    streaming = [text for text in words if text not in ("Ready",) and "prompt" not in text]
    assert [text for text in streaming if text] == ["inactive: no drafter has an offer"]
    assert len(places) == 1


def test_the_longest_draft_holds_from_the_next_answer_on_without_a_reload(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    reply = FakeReply(text=WORDS, tokens_per_second=2000, drafts=((8, 8),), drafters=("map-k",))
    window = make_window(reply, draft_mode="manual")
    ask(window, qtbot)
    first = finished(window, qtbot)
    assert len(first.by_drafter["map-k"].drafted_at) == 8
    report = window.session.controller.state.report
    box = settings_form(window).controls["max_draft"]
    assert isinstance(box, QSpinBox)
    box.setValue(2)
    window.show_page(CHATS)
    assert window.session.controller.state.report is report
    ask(window, qtbot)
    assert len(finished(window, qtbot).by_drafter["map-k"].drafted_at) == 2
    assert window.session.controller.state.report is report


def test_the_settings_know_the_model_in_memory(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    dialog = settings_form(window)
    draft = next(row for row in dialog.chain.rows if row.name == "draft")
    qtbot.waitUntil(lambda: draft._note.text() == "Cannot draft now: no draft model chosen", timeout=WAIT)
