"""What can be reached by keyboard has a name, and nothing that is written is cut off."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QKeySequenceEdit,
    QLabel,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.worker.fake_script import FakeReply
from tests.ui.conftest import MakeWindow
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED, MainWindow
from ui.widgets.elided_label import ElidedLabel

REPLY = FakeReply(
    text="Some words.\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", drafts=((4, 3), (0, 0))
)


def name(widget: QWidget) -> str:
    """What a screen reader says, or could read itself."""
    for words in ("accessibleName", "text", "title"):
        if hasattr(widget, words) and (said := getattr(widget, words)()):
            return str(said)
    return ""


def nameless(window: MainWindow) -> list[str]:
    return [
        f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        for widget in window.findChildren(QWidget)
        if widget.isVisible()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
        # the line to type in belongs to its box, which has a name
        and not isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox | QKeySequenceEdit)
        and not name(widget)
    ]


def cut_off(window: MainWindow) -> list[str]:
    found: list[str] = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or isinstance(widget, ElidedLabel):
            continue
        if isinstance(widget, QLabel) and widget.wordWrap():
            needed, there = widget.heightForWidth(widget.width()), widget.height()
        elif isinstance(widget, QLabel | QPushButton) and widget.text():
            needed, there = widget.sizeHint().width(), widget.width()
        else:
            continue
        if needed > there + 1:
            found.append(f"{widget.text()[:40]!r} needs {needed} px of {there}")
    return found


@pytest.mark.parametrize("zoom", [100, 150])
@pytest.mark.parametrize("size", [(1280, 800), (700, 600)])
def test_every_page(make_window: MakeWindow, qtbot: QtBot, zoom: int, size: tuple[int, int]) -> None:
    window = make_window(REPLY, offline=True, show_drafts=True)
    window.resize(*size)
    controller = window.session.controller
    qtbot.waitUntil(lambda: controller.state.phase == "ready", timeout=20_000)
    window.session.apply(replace(window.session.settings, zoom=zoom))
    window.chat.composer.set_text("hi")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not controller.busy, timeout=20_000)
    for page in (MODELS, SPEED, SETTINGS, CHATS):
        window.show_page(page)
        # Layouts are settled in turns of the event loop of their own.
        qtbot.waitUntil(lambda: not cut_off(window), timeout=20_000)
        assert nameless(window) == [], page
    window.chat.speed.open_panel()
    qtbot.waitUntil(lambda: not cut_off(window), timeout=20_000)
    assert nameless(window) == []


def test_what_is_wrong_is_found(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(start=False)
    label = QLabel("much too long for this", window)
    label.setGeometry(100, 100, 20, 20)
    label.show()
    button = QPushButton(window)
    button.show()
    assert len(cut_off(window)) == 1
    assert nameless(window) == ["QPushButton in MainWindow"]
