"""The control for a setting, made from what its declaration says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QFileDialog, QPlainTextEdit, QWidget

from app.declaration import Declared
from ui.models.model_picker import file_dialog, gguf_dialog
from ui.speed.numbers import percent
from ui.theme import Theme
from ui.widgets.file_choice import FileChoice
from ui.widgets.number_box import ShareBox, number_box
from ui.widgets.segments import Segments
from ui.widgets.switch import Switch

_MOST_SEGMENTS, _MOST_SEGMENT_LETTERS = 3, 18
_TEXT_LINES = 4


class Editor(NamedTuple):
    """``show`` puts a value into the control without telling of a change. ``below``: it needs the whole
    width."""

    control: QWidget
    show: Callable[[Any], None]
    below: bool = False


Changed = Callable[[Any, bool], None]
"""Takes the new value, and whether more of it may follow at once, as while a person types."""


class ChoiceBox(QComboBox):
    """The wheel scrolls the page."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def show_data(self, data: object) -> None:
        with QSignalBlocker(self):
            self.setCurrentIndex(max(0, self.findData(data)))


def make_editor(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    """``folder`` is where dialogs for files begin. Raises KeyError for a control of another kind."""
    return _MAKERS[words.control](theme, words, value, changed, folder, parent)


def shown_value(words: Declared, value: Any) -> str:
    """A value as its control shows it, for words about the default; "" where that says nothing."""
    match words.control:
        case "switch":
            return "on" if value else "off"
        case "share":
            return words.least if words.least and value == words.minimum else percent(value)
        case "whole" | "decimal":
            if words.least and value == words.minimum:
                return words.least
            number = str(value) if words.is_name else f"{value:,}" if words.is_whole else f"{value:.2f}"
            return f"{number} {words.unit}".rstrip()
        case "choice":
            return dict(words.choices).get(value, "")
        case _:
            return ""


def _switch(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    box = Switch(theme, parent)
    box.setChecked(value)
    box.toggled.connect(lambda checked: changed(checked, False))

    def show(value: bool) -> None:
        with QSignalBlocker(box):
            box.setChecked(value)
        box.update()

    return Editor(box, show)


def _number(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    box = number_box(words, value, parent)
    box.valueChanged.connect(lambda number: changed(number, True))

    def show(value: float) -> None:
        with QSignalBlocker(box):
            box.setValue(value)  # type: ignore[arg-type]

    return Editor(box, show)


def _share(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    box = ShareBox(words, value, parent)
    box.valueChanged.connect(lambda _: changed(box.share, True))

    def show(value: float) -> None:
        with QSignalBlocker(box):
            box.show_share(value)

    return Editor(box, show)


def _choice(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    letters = sum(len(label) for _, label in words.choices)
    if len(words.choices) <= _MOST_SEGMENTS and letters <= _MOST_SEGMENT_LETTERS:
        segments = Segments(words.choices, value, parent)
        segments.chosen.connect(lambda chosen: changed(chosen, False))
        return Editor(segments, segments.show_value)
    box = ChoiceBox(parent)
    for data, label in words.choices:
        box.addItem(label, data)
    box.show_data(value)
    box.currentIndexChanged.connect(lambda: changed(box.currentData(), False))
    return Editor(box, box.show_data)


def _text(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    edit = QPlainTextEdit(parent)
    edit.setPlainText(value)
    edit.setTabChangesFocus(True)

    def resize() -> None:
        edit.setFixedHeight(edit.fontMetrics().lineSpacing() * _TEXT_LINES + 16)

    def show(value: str) -> None:
        if edit.toPlainText() != value:
            with QSignalBlocker(edit):
                edit.setPlainText(value)

    resize()
    edit.textChanged.connect(lambda: changed(edit.toPlainText(), True))
    return Editor(edit, show, below=True)


def _file(
    theme: Theme, words: Declared, value: Any, changed: Changed, folder: Path, parent: QWidget
) -> Editor:
    def dialog(parent: QWidget) -> QFileDialog:
        if words.control == "folder":
            found = file_dialog(parent, words.title, folder)
            found.setFileMode(QFileDialog.FileMode.Directory)
            found.setOption(QFileDialog.Option.ShowDirsOnly)
            return found
        if words.name == "draft_model":
            return gguf_dialog(parent, words.title, folder)
        return file_dialog(parent, words.title, folder)

    nothing = "Usual" if words.control == "folder" else "None"
    choice = FileChoice(words, value, dialog, parent, nothing=nothing)
    choice.chosen.connect(lambda path: changed(path, False))
    return Editor(choice, choice.show_path)


_MAKERS = {
    "switch": _switch,
    "whole": _number,
    "decimal": _number,
    "share": _share,
    "choice": _choice,
    "text": _text,
    "file": _file,
    "folder": _file,
}
