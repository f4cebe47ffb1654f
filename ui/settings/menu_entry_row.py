"""Slipstream in the desktop's menu, where a desktop has one."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.declaration import Declared
from app.desktop_entry import EntryState, entry_state, install_entry, remove_entry
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme

_WORDS = Declared(
    "menu_entry", "Entry in the desktop's menu", "Start Slipstream from the menu or a dock.", group="window"
)
_NOW: dict[EntryState, str] = {
    "none": "It is not there yet.",
    "ours": "It is there.",
    "other": "The one that is there starts a Slipstream in another place.",
}
_ADD: dict[EntryState, str] = {"none": "Add", "ours": "Add", "other": "Renew"}


class MenuEntryRow(SettingRow):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(
            theme, _WORDS, self._buttons, keywords="launcher icon desktop file dock", parent=parent
        )
        self.show_state()

    def show_state(self, problem: str = "") -> None:
        """What is there now; it may have been changed outside."""
        try:
            state = entry_state()
        except OSError as error:
            state, problem = "none", problem or _why(error)
        self.explain(f"{_WORDS.help} {_NOW[state]}")
        self.add.setText(_ADD[state])
        self.add.setVisible(state != "ours")
        self.remove.setVisible(state != "none")
        self.show_note(problem)

    def _buttons(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        self.add, self.remove = QPushButton(widget), QPushButton("Remove", widget)
        self.add.setAccessibleDescription("Put Slipstream into the desktop's menu.")
        self.remove.setAccessibleDescription("Take Slipstream out of the desktop's menu.")
        self.add.clicked.connect(self._add)
        self.remove.clicked.connect(self._remove)
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.remove)
        row.addWidget(self.add)
        return Editor(widget, lambda _: None)

    def _add(self) -> None:
        try:
            install_entry()
        except OSError as error:
            self.show_state(_why(error))
        else:
            self.show_state()
            self.remove.setFocus()  # the button that was pressed is gone

    def _remove(self) -> None:
        try:
            remove_entry()
        except OSError as error:
            self.show_state(_why(error))
        else:
            self.show_state()
            self.add.setFocus()


def _why(error: OSError) -> str:
    return f"The menu entry could not be changed: {error.strerror or error}."
