"""No layout item ever reaches Python: on any page, in any dialog, whatever comes and goes on them."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

import ui
from tests.ui.conftest import MakeWindow
from tests.ui.layout_items import known_items
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED
from ui.widgets.layouts import clear, nested


def test_an_item_that_reached_python_is_found(qtbot: QtBot) -> None:
    gc.collect()
    before = known_items()
    widget = QWidget()
    qtbot.addWidget(widget)
    column = QVBoxLayout(widget)
    column.addWidget(QLabel("one"))
    row = QHBoxLayout()
    row.addWidget(QLabel("two"))
    assert known_items() == before
    column.addLayout(row)
    assert known_items() - before == Counter({"QWidgetItem": 1})


def test_a_filled_layout_is_refused(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    row = QHBoxLayout()
    row.addStretch(1)
    with pytest.raises(ValueError, match="filled"):
        nested(QVBoxLayout(widget), row)


def test_cleared_widgets_go_at_once(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    column = QVBoxLayout(widget)
    labels: list[QWidget] = [QLabel("one", widget), QLabel("two", widget)]
    for label in labels:
        column.addWidget(label)
    clear(column, labels)
    assert (column.count(), labels) == (0, [])
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert widget.findChildren(QLabel) == []


def test_no_page_makes_one(make_window: MakeWindow, qtbot: QtBot) -> None:
    gc.collect()
    before = known_items()
    window = make_window()
    for page in (SETTINGS, SPEED, MODELS, CHATS):
        window.show_page(page)
        QApplication.processEvents()
    for name in ("speed_panel", "about", "logs"):
        window.actions_[name].trigger()
        QApplication.processEvents()
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready")
    gc.collect()
    assert known_items() - before == Counter()


@pytest.mark.parametrize(
    "name", ["addLayout", "insertLayout", "itemAt", "itemAtPosition", "takeAt", "QWidgetItem"]
)
def test_only_one_file_names_what_makes_items(name: str) -> None:
    root = Path(ui.__file__).parent
    using = {path.name for path in root.rglob("*.py") if f"{name}(" in path.read_text("utf-8")}
    assert using <= {"layouts.py"}
