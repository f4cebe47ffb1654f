"""Notices, tray, guard, logs, regions and actions, each by itself."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSystemTrayIcon, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chats.message import AnswerState, Message
from app.program_log import program_log, worker_log
from app.protocol import Piece
from app.shortcuts import ACTIONS
from ui.shell.crash_guard import CrashGuard
from ui.shell.done_notice import DoneNotice
from ui.shell.log_viewer import LogViewer
from ui.shell.regions import Regions, mark_region
from ui.shell.tray import Tray
from ui.shell.window_actions import WindowActions

# ---- an answer that ended elsewhere


class Elsewhere:
    """A person who looks away, a clock that is set by hand, and what the desktop was told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.looking = False
        self.wanted = True
        self.told: list[tuple[str, str]] = []
        self.notice = DoneNotice(
            lambda title, text: self.told.append((title, text)),
            lambda: self.looking,
            lambda: self.wanted,
            lambda: self.now,
        )

    def answer(self, seconds: float, state: AnswerState = "done") -> None:
        message = Message(role="assistant", state="waiting", pieces=[Piece("a secret")])
        self.notice.heard(message)
        message.state = "writing"
        self.now += seconds / 2
        self.notice.heard(message)
        self.now += seconds / 2
        message.state = state
        self.notice.heard(message)
        self.notice.heard(message)


def test_a_long_answer_is_told_once_and_without_its_words() -> None:
    elsewhere = Elsewhere()
    elsewhere.answer(12)
    assert len(elsewhere.told) == 1
    assert "secret" not in "".join(elsewhere.told[0])
    elsewhere.answer(12, "failed")
    assert len(elsewhere.told) == 2


@pytest.mark.parametrize("why", ["short", "looking", "unwanted", "stopped", "old"])
def test_what_is_not_told(why: str) -> None:
    elsewhere = Elsewhere()
    elsewhere.looking = why == "looking"
    elsewhere.wanted = why != "unwanted"
    if why == "old":  # of a chat that was only opened
        elsewhere.notice.heard(Message(role="assistant", state="done"))
    else:
        elsewhere.answer(5 if why == "short" else 60, "stopped" if why == "stopped" else "done")
    assert elsewhere.told == []


# ---- the tray


def test_without_a_tray_the_window_is_never_hidden(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: False))
    window = QWidget()
    qtbot.addWidget(window)
    tray = Tray(window)
    tray.want(True)
    assert not tray.keeps
    assert not tray.say("a", "b")
    tray.close()


def test_a_tray_that_goes_away_brings_the_window_back(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [True]
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: there[0]))
    monkeypatch.setattr("ui.shell.tray._LOOK_MS", 10)
    window = QWidget()
    qtbot.addWidget(window)
    tray = Tray(window)
    assert not tray.keeps
    tray.want(True)
    assert tray.keeps
    tray.watch(hidden=True)
    there[0] = False
    with qtbot.waitSignal(tray.shown, timeout=20_000):
        pass
    assert not tray.keeps
    tray.want(False)
    tray.close()


# ---- what nobody caught


def test_an_error_that_nobody_caught_is_told_once_for_each_place(qtbot: QtBot) -> None:
    guard = CrashGuard()
    heard: list[str] = []
    guard.failed.connect(heard.append)

    def fail(text: str) -> None:
        raise KeyError(text)

    for text in ("a secret", "another"):
        try:
            fail(text)
        except KeyError as error:
            guard.caught(type(error), error, error.__traceback__)
    assert len(heard) == 1
    assert "KeyError" in heard[0] and "secret" not in heard[0]


def test_an_error_in_a_thread_reaches_the_window(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = CrashGuard()
    monkeypatch.setattr(threading, "excepthook", guard._in_thread)

    def fail() -> None:
        raise ValueError("in a thread")

    with qtbot.waitSignal(guard.failed, timeout=20_000):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()


_FAILING = """
import sys
from PySide6.QtCore import QCoreApplication, QTimer, qWarning
from app.program_log import start_logging
from ui.shell.crash_guard import CrashGuard
application = QCoreApplication([])
start_logging()
guard = CrashGuard()
guard.install()
guard.failed.connect(lambda text: QTimer.singleShot(0, application.quit))
def fail():
    qWarning("from Qt")
    raise RuntimeError("in a slot")
QTimer.singleShot(0, fail)
QTimer.singleShot(30000, lambda: sys.exit(3))
status = application.exec()
guard.uninstall()
sys.exit(status)
"""


def test_an_error_in_a_slot_goes_to_the_log_and_the_program_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", _FAILING], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    text = program_log().read_text(encoding="utf-8")
    assert "WARNING qt: from Qt" in text
    assert "ERROR ui.shell.crash_guard: something was not caught" in text
    assert "RuntimeError: in a slot" in text


# ---- logs


def test_the_log_is_shown_followed_and_copied(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.shell.log_viewer._FOLLOW_MS", 20)
    worker_log().write_text("first line\n", encoding="utf-8")
    viewer = LogViewer()
    qtbot.addWidget(viewer)
    viewer.show()
    assert viewer.text.toPlainText() == "first line"
    with worker_log().open("a", encoding="utf-8") as file:
        file.write("second line\n")
    qtbot.waitUntil(lambda: viewer.text.toPlainText() == "first line\nsecond line", timeout=20_000)
    viewer.copy()
    assert QGuiApplication.clipboard().text() == "first line\nsecond line"
    viewer.choice.setCurrentIndex(1)
    assert viewer.nothing.isVisible() and not viewer.text.isVisible()
    program_log().write_text("of the program\n", encoding="utf-8")
    qtbot.waitUntil(lambda: viewer.text.toPlainText() == "of the program", timeout=20_000)
    viewer.close()
    assert not viewer._timer.isActive()


# ---- parts of the window


def test_f6_goes_round_the_parts_and_remembers_where_one_was(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    row = QHBoxLayout(window)
    edits: dict[str, list[QLineEdit]] = {}
    for name in ("left", "middle", "right"):
        part = QWidget()
        mark_region(part, name)
        column = QVBoxLayout(part)
        edits[name] = [QLineEdit(), QLineEdit()]
        for edit in edits[name]:
            column.addWidget(edit)
        row.addWidget(part)
    empty = QWidget()
    empty.setMinimumWidth(20)
    mark_region(empty, "nothing to focus")
    row.addWidget(empty)
    with qtbot.waitActive(window, timeout=20_000):
        window.show()
        window.activateWindow()
    regions = Regions(window)
    edits["left"][1].setFocus()
    regions.move()
    assert edits["middle"][0].hasFocus()
    regions.move()
    regions.move()
    assert edits["left"][1].hasFocus()
    regions.move(backwards=True)
    assert edits["right"][0].hasFocus()
    edits["middle"][0].parentWidget().hide()
    regions.move(backwards=True)
    assert edits["left"][1].hasFocus()


def test_keys_are_those_of_the_settings(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    ran: list[str] = []
    names = [action.name for action in ACTIONS]
    actions = WindowActions(window, {name: lambda name=name: ran.append(name) for name in names})
    with qtbot.waitActive(window, timeout=20_000):
        window.show()
        window.activateWindow()
    actions.use_keys({})
    qtbot.keyClick(window, Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(window, Qt.Key.Key_F6)
    qtbot.keyClick(window, Qt.Key.Key_Equal, Qt.KeyboardModifier.ControlModifier)
    assert ran == ["settings", "next_region", "zoom_in"]
    actions.use_keys({"new_chat": "Ctrl+4", "settings": ""})
    ran.clear()
    qtbot.keyClick(window, Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert ran == ["new_chat"]


def test_no_two_actions_have_the_same_keys() -> None:
    keys = [action.keys.lower() for action in ACTIONS if action.keys]
    assert len(keys) == len(set(keys))


def test_the_desktop_file_names_what_there_is() -> None:
    root = Path(__file__).parents[3]
    text = (root / "packaging" / "slipstream.desktop").read_text(encoding="utf-8")
    assert "Exec=slipstream open %u" in text
    assert "x-scheme-handler/slipstream" in text
    assert (root / "assets" / "slipstream.svg").is_file()
