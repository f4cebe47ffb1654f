"""How often the window takes the engine's events: often, but never so that it gets in the engine's way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.engine_client import Event
from app.protocol import Log
from tests.ui.conftest import MakeWindow
from ui.engine_bridge import EngineBridge


class Busy:
    """Takes so many seconds of the processor for each batch."""

    def __init__(self, seconds: float) -> None:
        self.batches: list[list[Event]] = []
        self.began: list[float] = []
        self._seconds = seconds

    def __call__(self, events: list[Event]) -> None:
        self.began.append(time.monotonic())
        self.batches.append(events)
        end = time.thread_time() + self._seconds
        while time.thread_time() < end:
            pass


@pytest.fixture(params=[False, True], ids=["cores to spare", "sparing"])
def busy(request: pytest.FixtureRequest, qtbot: QtBot) -> Iterator[tuple[Busy, EngineBridge]]:
    taker = Busy(0.005)
    bridge = EngineBridge(taker)
    bridge.sparing = request.param
    yield taker, bridge
    bridge.close()


def test_events_come_in_order_and_no_more_often_than_they_may(
    busy: tuple[Busy, EngineBridge], qtbot: QtBot
) -> None:
    taker, bridge = busy
    least = 0.23 if bridge.sparing else 0.035
    sent = 0

    def said() -> list[str]:
        return [event.text for batch in taker.batches for event in batch if isinstance(event, Log)]

    while len(taker.batches) < 5:
        bridge._receive(Log("info", str(sent)))
        sent += 1
        qtbot.wait(5)
    qtbot.waitUntil(lambda: len(said()) == sent)
    assert said() == [str(n) for n in range(sent)]
    gaps = [b - a for a, b in zip(taker.began, taker.began[1:], strict=False)]
    assert all(gap >= least for gap in gaps[1:]), gaps


def test_the_first_after_a_pause_comes_at_once(busy: tuple[Busy, EngineBridge], qtbot: QtBot) -> None:
    taker, bridge = busy
    for number in (1, 2):
        bridge._receive(Log("info", "x"))
        qtbot.waitUntil(lambda n=number: len(taker.batches) == n)
        qtbot.wait(400)  # nothing happens for a while
    assert [len(batch) for batch in taker.batches] == [1, 1]


@pytest.mark.parametrize("spare", [False, True])
def test_the_window_is_sparing_where_the_engine_needs_every_core(
    spare: bool, make_window: MakeWindow, qtbot: QtBot
) -> None:
    threads = 1 if spare else os.cpu_count() or 1
    window = make_window(n_threads=threads)
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    assert window.session.bridge.sparing == (threads >= (os.cpu_count() or 1))
