"""The real window over the real pipe with the starter model."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.settings import Settings, SettingsFile
from model_store.starter import starter_path
from ui.chat.empty_chat import PROMPTS
from ui.main_window import MainWindow
from ui.theme import Theme

WAIT = 60_000


@pytest.fixture
def window(theme: Theme, qtbot: QtBot) -> Iterator[MainWindow]:
    assert starter_path() is not None, "make test installs the starter's carrier"
    settings = Settings(theme="light", temperature=0.0, max_tokens=120, draft_mode="manual")
    window = MainWindow(theme, SettingsFile(), settings, (sys.executable, "-m", "app.worker"))
    window.show()
    window.start()
    yield window
    window.close()
    window.deleteLater()


def test_chat_with_the_starter(window: MainWindow, qtbot: QtBot) -> None:
    assert "Loading" in window.chat.picker.text()
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)
    assert "SmolLM2" in window.chat.picker.text()
    counts: set[int] = set()
    window.session.numbers_changed.connect(lambda: counts.add(window.session.controller.numbers.tokens))
    name, prompt = PROMPTS[0]
    assert "Rename" in name
    window.chat.composer.set_text(prompt)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.controller.numbers.finished, timeout=WAIT)
    assert len(counts) > 2, "the numbers grow while it writes"
    qtbot.waitUntil(lambda: not window.session.controller.busy, timeout=WAIT)
    view = window.chat.messages.views()[-1]
    assert view.message.text.strip()
    assert view.message.stats is not None and view.message.stats.accepted > 0
    assert "tok/s" in view.footer.text() and "accepted" in view.footer.text()
    assert window.chat.strip.acceptance.text() != "— accepted"


def test_stop(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)
    window.chat.composer.set_text("Write a long story about a lighthouse.")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.controller.numbers.tokens > 2, timeout=WAIT)
    window.session.controller.stop()
    qtbot.waitUntil(lambda: not window.session.controller.busy, timeout=2000)
    assert window.session.controller.conversation.messages[-1].state == "stopped"
