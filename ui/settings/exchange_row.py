"""All settings at once: out of a file, into a file, and back to how they were at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from app.declaration import Declared
from app.settings import Settings
from app.settings_exchange import Imported, ImportProblem, exported, read_export, reset
from model_store.files import write_atomically
from ui.bidi import visible
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme

_FILE = "slipstream-settings.json"
_KINDS = "Settings (*.json)"
_MOST_NAMED = 4


class ExchangeRow(SettingRow):
    """``taken`` carries other settings, with a sentence about them; ``said`` a sentence alone."""

    taken = Signal(object, str)
    said = Signal(str)

    def __init__(self, theme: Theme, settings: Callable[[], Settings], parent: QWidget) -> None:
        words = Declared(
            "exchange",
            "Import, export, reset",
            "A file with all settings, for another machine. Chosen model and Hub token are not in it.",
            group="all",
        )
        super().__init__(theme, words, self._buttons, keywords="backup defaults json file", parent=parent)
        self._settings = settings

    def _buttons(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.buttons: dict[str, QPushButton] = {}
        for text, help, action in (
            ("Import…", "Take settings from a file.", self._ask_import),
            ("Export…", "Write all settings into a file.", self._ask_export),
            ("Reset all", "Give every setting its default; this can be undone.", self._reset),
        ):
            button = QPushButton(text, widget)
            button.setToolTip(help)
            button.setAccessibleDescription(help)
            button.clicked.connect(action)
            row.addWidget(button)
            self.buttons[text] = button
        return Editor(widget, lambda _: None)

    def _ask_import(self) -> None:
        dialog = QFileDialog(self, "Import settings", "", f"{_KINDS};;All files (*)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.read)
        dialog.open()

    def _ask_export(self) -> None:
        dialog = QFileDialog(self, "Export settings", _FILE, _KINDS)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.write)
        dialog.open()

    def read(self, path: str) -> None:
        try:
            imported = read_export(Path(path), self._settings())
        except ImportProblem as problem:
            self.said.emit(visible(str(problem)))
            return
        self.taken.emit(imported.settings, visible(_told(imported)))

    def write(self, path: str) -> None:
        try:
            write_atomically(Path(path), exported(self._settings()))
        except OSError as error:
            self.said.emit(f"The settings could not be written: {error.strerror or error}.")
            return
        self.said.emit(f"The settings were written to {visible(Path(path).name)}.")

    def _reset(self) -> None:
        self.taken.emit(reset(self._settings()), "All settings have their defaults.")


def _told(imported: Imported) -> str:
    changed = "1 setting was" if imported.changed == 1 else f"{imported.changed} settings were"
    text = f"{changed} changed by the import."
    if imported.ignored:
        named = [f"{name} ({why})" for name, why in list(imported.ignored.items())[:_MOST_NAMED]]
        more = len(imported.ignored) - len(named)
        text += f" Left out: {'; '.join(named)}{f'; and {more} more' if more else ''}."
    return text
