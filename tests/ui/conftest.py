"""Fixtures of the window's tests: one theme, scripted engines, windows that are closed again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QEvent, SignalInstance
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import SignalBlocker

from app.settings import Settings, SettingsFile
from app.worker.fake_script import FakeReply, FakeScript
from tests.model_store.conftest import local_hub as local_hub  # a fixture for these tests too
from ui.main_window import SETTINGS, MainWindow
from ui.settings.settings_form import SettingsForm
from ui.settings.settings_page import SettingsPage
from ui.shell.garbage import GarbageCollector
from ui.theme import Theme

MakeWindow = Callable[..., MainWindow]
PATIENCE_MS = 120_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            # the offscreen platform has no window manager to ask, and no tray
            item.add_marker(
                pytest.mark.qt_log_ignore(r"^This plugin does not support |systemTrayWindowChanged")
            )


def settings_form(window: MainWindow) -> SettingsForm:
    """The settings as a person opens them."""
    window.show_page(SETTINGS)
    page = window.page(SETTINGS)
    assert isinstance(page, SettingsPage)
    return page.form


class PatientBot(QtBot):
    """Waits for a condition as long as a busy machine may need; one that comes earlier ends it earlier."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = 0) -> None:
        super().waitUntil(callback, timeout=max(timeout, PATIENCE_MS))

    def waitSignal(self, signal: SignalInstance, *, timeout: int = 0, **how: object) -> SignalBlocker:
        return super().waitSignal(signal, timeout=max(timeout, PATIENCE_MS), **how)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientBot(request)


@pytest.fixture(autouse=True)
def _garbage_goes_on_this_thread(qapp: QApplication) -> Iterator[None]:
    """As in the program itself."""
    garbage = GarbageCollector()
    garbage.start()
    yield
    garbage.stop()


@pytest.fixture(scope="session")
def _theme(qapp: QApplication) -> Theme:
    return Theme(qapp, "light")


@pytest.fixture
def theme(_theme: Theme) -> Iterator[Theme]:
    _theme.apply(Settings(theme="light"))
    yield _theme
    _theme.apply(Settings(theme="light"))


@pytest.fixture
def make_window(
    theme: Theme, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeWindow]:
    """Makes a window over the fake engine. ``model`` is a file that exists, so it is loaded."""
    monkeypatch.setattr("ui.session.starter_path", lambda: None)
    windows: list[MainWindow] = []
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")

    def make(
        *replies: FakeReply, start: bool = True, script: FakeScript | None = None, **settings: object
    ) -> MainWindow:
        path = tmp_path / f"script{len(windows)}.json"
        path.write_bytes(msgspec.json.encode(script or FakeScript(replies=replies or (FakeReply(),))))
        command = (sys.executable, "-m", "app.worker", "--fake", str(path))
        chosen = Settings(**{"model": str(model), "theme": "light", **settings})  # type: ignore[arg-type]
        window = MainWindow(theme, SettingsFile(), chosen, command)
        windows.append(window)
        window.show()
        if start:
            window.start()
        return window

    yield make
    for window in windows:
        window.close()
        window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
