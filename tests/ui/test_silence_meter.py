"""The reason for not drafting: words that stay while a text streams."""

from __future__ import annotations

import itertools

from drafting.silence import NO_OFFER, PAUSED, UNPAID, Silence
from ui.speed.silence_meter import SilenceMeter

PAUSE = Silence(PAUSED, "map-k: 2 %.")


def feed(
    meter: SilenceMeter, *passes: tuple[Silence | None, int], times: int, start: float
) -> list[str | None]:
    """So many passes in turn, twenty a second; what was shown after each."""
    shown = []
    for step in range(times):
        silence, accepted = passes[step % len(passes)]
        meter.add(silence, accepted, start + step / 20)
        shown.append(meter.shown.reason if meter.shown else None)
    return shown


def test_a_reason_is_shown_once_it_has_lasted() -> None:
    shown = feed(SilenceMeter(), (NO_OFFER, 0), times=40, start=7.0)
    assert shown == [None] * 20 + [NO_OFFER.reason] * 20


def test_drafting_now_and_then_is_drafting() -> None:
    meter = SilenceMeter()
    assert set(feed(meter, (NO_OFFER, 0), (NO_OFFER, 0), (None, 3), times=100, start=0.0)) == {None}
    assert feed(meter, (NO_OFFER, 0), times=60, start=5.0)[-1] == NO_OFFER.reason
    assert feed(meter, (None, 3), times=60, start=8.0)[-1] is None


def test_a_probe_in_vain_is_not() -> None:
    passes = [(PAUSE, 0)] * 15 + [(None, 0)]
    assert set(feed(SilenceMeter(), *passes, times=200, start=0.0)[21:]) == {PAUSED}


def test_drafts_that_fail_are_drafts() -> None:
    assert set(feed(SilenceMeter(), (None, 0), times=60, start=0.0)) == {None}


def test_reasons_that_take_turns_do_not_make_the_words_jump() -> None:
    meter = SilenceMeter()
    unpaid = Silence(UNPAID, "1.7")
    shown = feed(meter, (NO_OFFER, 0), (unpaid, 0), (NO_OFFER, 0), times=60, start=0.0)
    assert set(shown[20:]) == {NO_OFFER.reason}
    shown = feed(meter, (NO_OFFER, 0), (unpaid, 0), (unpaid, 0), times=100, start=3.0)
    assert set(shown) == {NO_OFFER.reason}
    shown = feed(meter, (unpaid, 0), times=60, start=8.0)
    assert shown[-1] == UNPAID
    changes = sum(a != b for a, b in itertools.pairwise(shown))
    assert changes == 1


def test_the_figures_are_those_of_now() -> None:
    meter = SilenceMeter()
    for step in range(60):
        meter.add(Silence(UNPAID, f"{step} %"), 0, step / 20)
    assert meter.shown is not None and int(meter.shown.detail.split()[0]) >= 39


def test_a_new_answer_starts_without_words() -> None:
    meter = SilenceMeter()
    feed(meter, (PAUSE, 0), times=40, start=0.0)
    meter.clear()
    assert meter.shown is None
    assert feed(meter, (PAUSE, 0), times=10, start=0.0)[-1] is None
