"""Nothing stays behind when pages, chats and windows come and go: a short run of tests.ui.leaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from tests.ui import leaks
from ui.theme import Theme


def test_what_is_opened_and_closed_leaves_nothing(
    qapp: QApplication, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert leaks.check(tmp_path, rounds=15, windows=2) == []
    theme.choose("dark")  # else it believes that its light one is still in force


def test_a_widget_and_a_timer_that_stay_are_named(qtbot: QtBot, qapp: QApplication) -> None:
    before = leaks.held()
    left = QLabel()
    timer = QTimer(qapp)
    timer.start(100_000)
    found = leaks.grown(before, leaks.held())
    assert any("QLabel" in text for text in found)
    assert any("timers" in text for text in found)
    timer.stop()
    for thing in (left, timer):
        assert isinstance(thing, QObject)
        thing.deleteLater()
