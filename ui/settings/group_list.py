"""The groups of the settings, beside them where there is room."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QWidget

from app.settings import Group
from ui.theme import Theme

_PAD = 48


class GroupList(QListWidget):
    """``chosen`` carries the name of a group."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, groups: Sequence[Group], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("groups")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Groups of settings")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._names = [group.name for group in groups]
        for group in groups:
            self.addItem(QListWidgetItem(group.title))
        self.setCurrentRow(0)
        self.currentRowChanged.connect(lambda row: self.chosen.emit(self._names[row]))
        self.itemClicked.connect(lambda item: self.chosen.emit(self._names[self.row(item)]))
        theme.changed.connect(self._resize)
        self._resize()

    def show_group(self, name: str) -> None:
        with QSignalBlocker(self):
            self.setCurrentRow(self._names.index(name))

    def show_found(self, names: Sequence[str]) -> None:
        """Only these groups have anything to show."""
        for row, name in enumerate(self._names):
            self.item(row).setHidden(name not in names)

    def _resize(self) -> None:
        self.setFixedWidth(self.sizeHintForColumn(0) + _PAD)
