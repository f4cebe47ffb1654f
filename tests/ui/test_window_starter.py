"""The real window over the real pipe with the starter model."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.settings import Settings, SettingsFile
from model_store.starter import starter_path
from ui.main_window import MainWindow
from ui.theme import Theme

WAIT = 60_000


@pytest.fixture
def window(theme: Theme, qtbot: QtBot) -> Iterator[MainWindow]:
    assert starter_path() is not None, "make test installs the starter's carrier"
    settings = Settings(theme="light", temperature=0.0, max_tokens=120)
    window = MainWindow(theme, SettingsFile(), settings, (sys.executable, "-m", "app.worker"))
    window.show()
    window.start()
    yield window
    window.close()
    window.deleteLater()


def test_chat_with_the_starter(window: MainWindow, qtbot: QtBot) -> None:
    assert "Loading" in window.picker.text()
    qtbot.waitUntil(lambda: window.controller.state.phase == "ready", timeout=WAIT)
    assert "SmolLM2" in window.picker.text()
    window.composer.set_text(
        "Repeat the following text exactly: the quick brown fox jumps over the lazy dog, the quick brown "
        "fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog."
    )
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.controller.numbers.tokens > 2, timeout=WAIT)
    assert window.controller.busy
    early = window.controller.numbers.tokens
    qtbot.waitUntil(lambda: window.controller.numbers.tokens > early, timeout=WAIT)
    qtbot.waitUntil(lambda: not window.controller.busy, timeout=WAIT)
    view = window.messages.views()[-1]
    assert view.message.text.strip()
    assert view.message.stats is not None and view.message.stats.accepted > 0
    assert "tok/s" in view.footer.text() and "accepted" in view.footer.text()
    assert window.strip.acceptance.text() != "— accepted"


def test_stop(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.controller.state.phase == "ready", timeout=WAIT)
    window.composer.set_text("Write a long story about a lighthouse.")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.controller.numbers.tokens > 2, timeout=WAIT)
    window.controller.stop()
    qtbot.waitUntil(lambda: not window.controller.busy, timeout=2000)
    assert window.controller.conversation.messages[-1].state == "stopped"
