"""The window and what surrounds it: remembered, found, raised, hidden, and honest about crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.program_log import program_log
from app.run_marker import Run
from app.settings import SettingsFile
from app.worker.fake_script import FakeReply
from tests.ui.conftest import MakeWindow
from ui.icons import app_icon
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED, MainWindow
from ui.shell.about import About
from ui.shell.opening import Opening
from ui.shell.window_state import Area, WindowState, WindowStateFile

WAIT = 20_000


def ready(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)


def active(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitActive(window, timeout=WAIT):
        window.activateWindow()


def ask(window: MainWindow, qtbot: QtBot, text: str) -> None:
    window.chat.composer.set_text(text)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.session.controller.busy, timeout=WAIT)


def notices(window: MainWindow) -> str:
    return "\n".join(window.chat.notices())


# ---- remembered


def test_size_place_and_page_come_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    window.setGeometry(20, 30, 700, 500)
    window.show_page(MODELS)
    window.close()
    again = make_window(start=False)
    assert again.shown == MODELS
    assert (again.geometry().x(), again.geometry().y()) == (20, 30)
    assert (again.width(), again.height()) == (700, 500)


def test_a_place_that_no_screen_shows_is_corrected(make_window: MakeWindow, qtbot: QtBot) -> None:
    WindowStateFile().save(WindowState(area=Area(-5000, 9000, 600, 500), page="A page of another version"))
    window = make_window(start=False)
    assert window.shown == CHATS
    assert QGuiApplication.primaryScreen().availableGeometry().contains(window.geometry().center())


# ---- keys


def test_pages_have_keys_and_escape_leads_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    ready(window, qtbot)
    active(window, qtbot)
    for key, page in ((Qt.Key.Key_2, MODELS), (Qt.Key.Key_3, SPEED), (Qt.Key.Key_4, SETTINGS)):
        QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
        assert window.shown == page
    window.setFocus()
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert window.shown == CHATS


def test_larger_text_is_kept_in_the_settings_and_has_an_end(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    active(window, qtbot)
    QTest.keyClick(window, Qt.Key.Key_Equal, Qt.KeyboardModifier.ControlModifier)
    assert SettingsFile().load().zoom == 110
    assert QApplication.font().pixelSize() == 14
    for _ in range(20):
        QTest.keyClick(window, Qt.Key.Key_Equal, Qt.KeyboardModifier.ControlModifier)
    assert SettingsFile().load().zoom == 200
    QTest.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.font().pixelSize() == 13


def test_f6_reaches_every_part_of_the_chat_page(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words"))
    ready(window, qtbot)
    ask(window, qtbot, "hi")
    active(window, qtbot)
    seen: list[str] = []
    for _ in range(len(window.shell.regions.parts())):
        QTest.keyClick(window, Qt.Key.Key_F6)
        focused = window.focusWidget()
        part = next(p for p in window.shell.regions.parts() if p is focused or p.isAncestorOf(focused))
        seen.append(str(part.property("region")))
    assert {"Pages", "Chats", "Messages"} <= set(seen)
    assert len(seen) == len(set(seen))


def test_the_palette_finds_chats_pages_and_models(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words"))
    ready(window, qtbot)
    ask(window, qtbot, "A trip to Lisbon")
    window.session.controller.new_chat()
    assert not window.session.controller.conversation.messages
    active(window, qtbot)
    QTest.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = window.shell.palette
    assert palette.isVisible()
    qtbot.keyClicks(palette.edit, "lisb")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert window.session.controller.conversation.messages[0].text == "A trip to Lisbon"
    kinds = {entry.kind for entry in window.shell.entries()}
    assert {"action", "page", "chat"} <= kinds
    QTest.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(palette.edit, "settings")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert window.shown == SETTINGS


# ---- the desktop


def test_a_later_start_shows_its_chat_here(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeReply(text="some words"))
    ready(window, qtbot)
    ask(window, qtbot, "first")
    chat = window.session.controller.chat.id
    window.session.controller.new_chat()
    window.show_page(SETTINGS)
    window.hide()
    window.show_and_open(Opening(chat=chat))
    assert window.isVisible() and window.shown == CHATS
    assert window.session.controller.chat.id == chat
    window.show_and_open(Opening(chat=1))
    assert "not there any more" in notices(window)


def test_a_later_start_loads_its_model_here(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window()
    ready(window, qtbot)
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    window.show_and_open(Opening(model=str(other)))
    qtbot.waitUntil(
        lambda: (report := window.session.controller.state.report) is not None and report.name == "other",
        timeout=WAIT,
    )


def test_without_a_tray_closing_closes(make_window: MakeWindow, qtbot: QtBot) -> None:
    assert not QSystemTrayIcon.isSystemTrayAvailable()
    window = make_window(tray=True)
    window.shell.start()
    assert window.close()
    assert not window.isVisible()
    assert window.session.bridge.client.pid is None


def test_in_the_tray_the_window_is_hidden_and_comes_back(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    window = make_window(tray=True)
    ready(window, qtbot)
    window.shell.start()
    assert not window.close()
    assert not window.isVisible()
    assert window.session.bridge.client.pid is not None
    window.shell.tray.shown.emit()
    assert window.isVisible()
    window.close()
    window.quit()
    assert window.session.bridge.client.pid is None


# ---- what it says of itself


def test_about_names_engine_and_device(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    ready(window, qtbot)
    window.shell.show_about()
    about = next(widget for widget in window.findChildren(About) if widget.isVisible())
    lines = dict(window.shell.facts.lines())
    assert lines["Engine"] == "fake"
    assert lines["Model"].startswith("toy")
    about.copy_report()
    assert "Engine fake" in QGuiApplication.clipboard().text()
    about.close()


def test_the_report_holds_no_word_of_a_chat(make_window: MakeWindow, qtbot: QtBot) -> None:
    secret = "the treasure lies under the third oak behind the mill"
    window = make_window(FakeReply(text=f"So {secret}."), system_prompt=f"Never say that {secret}")
    ready(window, qtbot)
    ask(window, qtbot, secret)
    program_log().write_text(
        f"2026-01-01 10:00:00,000 ERROR app.worker.engine: failed at {secret}\n{secret}\n", encoding="utf-8"
    )
    window.shell.copy_report()
    text = QGuiApplication.clipboard().text()
    assert "system_prompt: set" in text and "[left out]" in text
    for part in ("treasure", "third oak", "the mill"):
        assert part not in text


def test_a_run_that_did_not_end_is_told_of(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    window.shell.tell_of_last_run(Run(1, time.time() - 60))
    assert "did not end properly" in notices(window)
    assert "Your chats and settings are kept." in notices(window)


# ---- the program as a whole


@pytest.fixture
def started(private_home: Path) -> Iterator[list[psutil.Popen]]:
    programs: list[psutil.Popen] = []
    yield programs
    for program in programs:
        if program.poll() is None:
            program.kill()
        program.communicate()


def start(started: list[psutil.Popen], *arguments: str) -> psutil.Popen:
    program = psutil.Popen(
        [sys.executable, "-m", "ui", *arguments],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    started.append(program)
    return program


def marker(home: Path) -> Path:
    return home / "data" / "running.json"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_second_start_ends_and_a_killed_one_is_noticed(
    started: list[psutil.Popen], private_home: Path, qtbot: QtBot
) -> None:
    first = start(started)
    qtbot.waitUntil(marker(private_home).exists, timeout=60_000)
    assert json.loads(marker(private_home).read_bytes())["pid"] == first.pid
    second = start(started)
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
    assert second.returncode == 0
    assert first.poll() is None
    first.kill()
    first.wait()
    assert marker(private_home).exists()
    third = start(started)
    qtbot.waitUntil(
        lambda: json.loads(marker(private_home).read_bytes() or b'{"pid": 0}')["pid"] == third.pid,
        timeout=60_000,
    )
    third.send_signal(signal.SIGTERM)
    qtbot.waitUntil(lambda: third.poll() is not None, timeout=60_000)
    assert third.returncode == 0
    assert not marker(private_home).exists()


def test_the_icon_of_the_program_can_be_drawn(qapp: QApplication) -> None:
    picture = app_icon().pixmap(64, 64).toImage()
    assert picture.pixelColor(32, 8).alpha() == 255
    assert picture.pixelColor(0, 0).alpha() == 0
