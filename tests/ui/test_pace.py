"""What is asked for often is done now and then, and the last wish is met."""

from __future__ import annotations

import time
from itertools import pairwise

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from ui.widgets.pace import Pace


def test_at_once_then_now_and_then_and_the_last_is_met(qtbot: QtBot) -> None:
    owner = QObject()
    asked = 0
    done: list[tuple[float, int]] = []
    pace = Pace(lambda: done.append((time.monotonic(), asked)), 100, owner)
    asked = 1
    pace.ask()
    assert [wish for _, wish in done] == [1]
    for asked in range(2, 60):  # noqa: B007
        pace.ask()
        qtbot.wait(5)
    qtbot.waitUntil(lambda: done[-1][1] == 59)
    gaps = [after - before for (before, _), (after, _) in pairwise(done)]
    assert gaps and all(gap >= 0.09 for gap in gaps)
    qtbot.waitUntil(lambda: not pace.waiting)
    count = len(done)
    qtbot.wait(250)
    assert len(done) == count  # nobody asked


def test_now_is_now_and_stop_forgets(qtbot: QtBot) -> None:
    owner = QObject()
    done: list[int] = []
    pace = Pace(lambda: done.append(1), 50, owner)
    pace.now()
    pace.now()
    assert len(done) == 2
    pace.ask()
    pace.stop()
    qtbot.wait(200)
    assert (len(done), pace.waiting) == (2, False)
