"""The command palette, used with keys alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from ui.shell.entries import Entry
from ui.shell.palette import Palette
from ui.theme import Theme


class Window(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.ran: list[str] = []
        self.edit = QLineEdit(self)
        self.palette_ = Palette(theme, self.entries, self)
        self.resize(800, 600)

    def entries(self) -> list[Entry]:
        names = ["New chat", "Settings", *(f"Trip to Lisbon {n}" for n in range(30)), "שלום עולם"]
        return [Entry("action", name, lambda name=name: self.ran.append(name), "Ctrl+N") for name in names]


@pytest.fixture
def window(theme: Theme, qtbot: QtBot) -> Iterator[Window]:
    window = Window(theme)
    qtbot.addWidget(window)
    with qtbot.waitActive(window, timeout=20_000):
        window.show()
        window.activateWindow()
    window.edit.setFocus()
    return window


def current(window: Window) -> str:
    return str(window.palette_.list.currentIndex().data())


def test_typed_moved_and_run(window: Window, qtbot: QtBot) -> None:
    window.palette_.open()
    edit = window.palette_.edit
    assert edit.hasFocus()
    qtbot.keyClicks(edit, "lisbon")
    assert current(window) == "Trip to Lisbon 0"
    qtbot.keyClick(edit, Qt.Key.Key_Down)
    qtbot.keyClick(edit, Qt.Key.Key_Down)
    assert current(window) == "Trip to Lisbon 2"
    assert edit.accessibleDescription() == "Trip to Lisbon 2, Action"
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert window.ran == ["Trip to Lisbon 2"]
    assert not window.palette_.isVisible()
    assert window.edit.hasFocus()


def test_the_list_goes_round_and_pages_stop_at_its_ends(window: Window, qtbot: QtBot) -> None:
    window.palette_.open()
    edit = window.palette_.edit
    qtbot.keyClick(edit, Qt.Key.Key_Up)
    assert current(window) == "שלום עולם"
    qtbot.keyClick(edit, Qt.Key.Key_Down)
    assert current(window) == "New chat"
    for _ in range(9):
        qtbot.keyClick(edit, Qt.Key.Key_PageDown)
    assert current(window) == "שלום עולם"


def test_escape_and_tab(window: Window, qtbot: QtBot) -> None:
    window.palette_.open()
    qtbot.keyClick(window.palette_.edit, Qt.Key.Key_Tab)
    assert window.palette_.edit.hasFocus()
    qtbot.keyClick(window.palette_.edit, Qt.Key.Key_Escape)
    assert not window.palette_.isVisible()
    assert window.edit.hasFocus()
    assert window.ran == []


def test_nothing_found_is_said_and_enter_does_nothing(window: Window, qtbot: QtBot) -> None:
    window.palette_.open()
    qtbot.keyClicks(window.palette_.edit, "zzz")
    assert window.palette_.nothing.isVisible()
    assert window.palette_.edit.accessibleDescription() == window.palette_.nothing.text()
    qtbot.keyClick(window.palette_.edit, Qt.Key.Key_Return)
    assert window.ran == []


def test_a_click_runs_and_one_beside_closes(window: Window, qtbot: QtBot) -> None:
    window.palette_.open()
    rows = window.palette_.list
    area = rows.visualRect(rows.model().index(1, 0))
    qtbot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    assert window.ran == ["Settings"]
    window.palette_.open()
    qtbot.mouseClick(window.palette_, Qt.MouseButton.LeftButton, pos=QPoint(5, 590))
    assert not window.palette_.isVisible()


@pytest.mark.parametrize("size", [(360, 360), (1920, 1080)])
def test_it_fits_into_any_window(window: Window, qtbot: QtBot, size: tuple[int, int]) -> None:
    window.palette_.open()
    window.resize(*size)
    box = window.palette_.edit.parentWidget()
    assert window.palette_.size() == window.size()
    assert window.rect().contains(box.geometry())
