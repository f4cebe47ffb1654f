"""The real window over the real pipe with the starter model."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.settings import Settings, SettingsFile
from model_store.starter import starter_path
from ui.chat.empty_chat import PROMPTS
from ui.main_window import SETTINGS, MainWindow
from ui.settings.settings_page import SettingsPage
from ui.theme import Theme
from ui.widgets.segments import Segments

WAIT = 60_000


@pytest.fixture
def window(theme: Theme, qtbot: QtBot) -> Iterator[MainWindow]:
    assert starter_path() is not None, "make test installs the starter's carrier"
    settings = Settings(theme="light", temperature=0.0, max_tokens=240, draft_mode="manual", n_threads=1)
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
    name, prompt = PROMPTS[2]
    assert "JSON" in name
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


def test_settings_of_the_engine_are_those_of_the_model_in_memory(window: MainWindow, qtbot: QtBot) -> None:
    """A cache of 8 bits takes about half of one of 16, and a message brings the model back."""
    controller = window.session.controller
    qtbot.waitUntil(lambda: controller.state.phase == "ready", timeout=WAIT)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage) and controller.state.report is not None
    before = controller.state.report.kv_bytes
    kv, flash, context = (page.form.controls[name] for name in ("kv_type", "flash_attention", "n_ctx"))
    assert isinstance(kv, QComboBox) and isinstance(flash, Segments) and isinstance(context, QSpinBox)
    kv.setCurrentIndex(kv.findData("q8_0"))
    flash.buttons["off"].click()
    assert controller.needs_reload
    page.reload.click()
    qtbot.waitUntil(lambda: controller.state.phase == "ready", timeout=WAIT)
    assert controller.state.report is not None
    assert 0.5 < controller.state.report.kv_bytes / before < 0.6
    context.setValue(1024)
    controller.unload()
    qtbot.waitUntil(lambda: window.session.settings.n_ctx == 1024, timeout=WAIT)
    window.session.apply(replace(window.session.settings, max_tokens=4))
    assert controller.send("Hello")
    qtbot.waitUntil(lambda: not controller.busy, timeout=WAIT)
    assert controller.conversation.messages[-1].text.strip()
    assert controller.state.report is not None and controller.state.report.n_ctx == 1024
