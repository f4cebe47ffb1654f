"""The strip: fields that do not move, and words for what is going on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.protocol import Chunk, DrafterReport, PrefillProgress
from app.settings import Settings
from drafting.silence import NO_OFFER, PAUSED, UNPAID, Silence
from tests.ui.test_live_numbers import chunk, report, started
from ui.engine_state import EngineState
from ui.speed.live_numbers import LiveNumbers
from ui.speed.status_strip import UNFIT, StatusStrip
from ui.theme import Theme

READY = EngineState(phase="ready", report=report(DrafterReport("cache")))


@pytest.fixture
def strip(theme: Theme, qtbot: QtBot) -> StatusStrip:
    strip = StatusStrip(theme)
    qtbot.addWidget(strip)
    strip.resize(900, 32)
    with qtbot.waitExposed(strip, timeout=60_000):
        strip.show()
    return strip


def test_nothing_moves_while_numbers_change(strip: StatusStrip, qtbot: QtBot) -> None:
    live = LiveNumbers()
    places = []
    for step in range(1, 60):
        live.chunk(chunk(step, 4, 4 if step % 2 else 0, step * 0.05))
        strip.show_numbers(live, Settings(), READY, writing=True)
        qtbot.wait(0)
        fields = (
            strip.speed,
            strip.spark,
            strip.speedup,
            strip.acceptance,
            strip.per_pass,
            strip.drafter,
            strip.words,
            strip.more,
        )
        places.append([field.geometry() for field in fields])
        assert strip.speed.fontMetrics().horizontalAdvance(strip.speed.text()) <= strip.speed.width()
    assert all(place == places[0] for place in places)


def test_the_prompt_that_is_read(strip: StatusStrip) -> None:
    live = LiveNumbers()
    live.started(started())
    live.prefilled(PrefillProgress(1, 512, 2048))
    strip.show_numbers(live, Settings(), READY, writing=True)
    assert strip.words.whole == "Reading the prompt 512 / 2,048"


def silent(silence: Silence, at: float) -> Chunk:
    return replace(chunk(1, at=at), silence=silence)


def test_who_drafts_and_why_nobody_does(strip: StatusStrip) -> None:
    live = LiveNumbers()
    live.started(started())
    for reason, words in (
        (NO_OFFER, "inactive: no drafter has an offer"),
        (Silence(UNPAID, "Twice as long."), "inactive: a draft would not pay"),
        (Silence(PAUSED, "map-k: 2 % were right."), "paused: low acceptance"),
    ):
        for step in range(50):
            live.chunk(silent(reason, step * 0.1))
        strip.show_numbers(live, Settings(), READY, writing=True)
        assert strip.words.whole == words
        assert strip.words.toolTip() == reason.detail
        assert strip.drafter.name is None
        live.started(started())
    live.chunk(chunk(3, 4, 2))
    strip.show_numbers(live, Settings(), READY, writing=True)
    assert strip.words.whole == ""
    assert strip.drafter.name == "cache"
    assert strip.drafter.accessibleName() == "Drafter cache"


def test_a_drafter_that_does_not_fit_is_named_so(strip: StatusStrip) -> None:
    live = LiveNumbers()
    live.chunk(chunk(1, 100, 0))
    strip.show_numbers(live, Settings(), READY, writing=True)
    assert strip.words.whole == UNFIT


def test_each_number_explains_itself(strip: StatusStrip) -> None:
    strip.show_numbers(LiveNumbers(), Settings(), READY, writing=False)
    fields = (strip.speed, strip.spark, strip.speedup, strip.acceptance, strip.per_pass, strip.drafter)
    for field in (*fields, strip.more):
        assert field.toolTip().count(".") == 1 and field.toolTip().endswith(".")


def test_a_narrow_strip_keeps_speed_acceptance_and_words(strip: StatusStrip, qtbot: QtBot) -> None:
    strip.resize(420, 32)
    strip.show_numbers(LiveNumbers(), Settings(drafting=False), READY, writing=False)
    assert strip.speed.isVisible() and strip.acceptance.isVisible()
    assert not strip.per_pass.isVisible()
    qtbot.waitUntil(lambda: strip.words.text() == "Drafting off in settings")


def test_the_speedup_and_the_bars_of_the_speed(strip: StatusStrip) -> None:
    live = LiveNumbers()
    live.started(started())
    strip.show_numbers(live, Settings(), READY, writing=True)
    assert (strip.speedup.text(), strip.spark.rates) == ("— plain", ())
    for step in range(11):
        live.chunk(replace(chunk(5, 4, 4, 3.0 + step * 0.25), speedup=1.0 + step / 10))
    strip.show_numbers(live, Settings(), READY, writing=True)
    assert strip.speedup.text() == "2.0x plain"
    assert strip.speedup.accessibleName() == f"2.0x plain. {strip.speedup.toolTip()}"
    # Half seconds of two passes each; the one that is running is no bar yet.
    assert strip.spark.rates == (10.0, 20.0, 20.0, 20.0, 20.0)
    assert "10 to 20 tokens per second" in strip.spark.accessibleName()


def test_larger_text_has_room(strip: StatusStrip, theme: Theme) -> None:
    widths = [field.width() for field in (strip.speed, strip.speedup, strip.drafter)]
    height = strip.height()
    theme.apply(Settings(theme="light", zoom=150))
    assert all(
        field.width() > width
        for field, width in zip((strip.speed, strip.speedup, strip.drafter), widths, strict=True)
    )
    strip.show_numbers(LiveNumbers(), Settings(), READY, writing=False)
    assert strip.speed.fontMetrics().height() + 8 <= strip.height() > height
