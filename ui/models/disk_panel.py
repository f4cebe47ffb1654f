"""What the models take on the disk, and what of it can be cleaned up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from model_store.disk_use import DiskUse
from model_store.fit import shown_bytes
from ui.bidi import visible
from ui.session import Session
from ui.theme import Theme
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.layouts import clear, nested

if TYPE_CHECKING:
    from model_store.stop_signal import StopSignal
    from model_store.store import Store

_MOST = 12  # models that are named


class _Use(Struct, frozen=True):
    disk: DiskUse
    leftovers: int


class DiskPanel(QFrame):
    """``told``: the summary in words. It is read when the panel is asked to, in a thread."""

    told = Signal(str)
    noticed = Signal(str)

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("parameters")
        self.setAccessibleName("Disk use")
        self.words = _label(self)
        self.folder = ElidedLabel(parent=self, role="small")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addWidget(self.words)
        column.addWidget(self.folder)
        self._cells: list[QWidget] = []
        self._grid = nested(column, QGridLayout())
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(0, 1)
        self.clean = QPushButton("Clean up", self)
        self.clean.clicked.connect(self._clean_up)
        self.clean.hide()
        column.addWidget(self.clean, 0, Qt.AlignmentFlag.AlignLeft)

    def read(self) -> None:
        def count(store: Store, stop: StopSignal) -> _Use:
            return _Use(store.disk_use(), store.leftovers())

        self._session.models.ask(count, self._take)

    def _take(self, use: _Use) -> None:
        disk = use.disk
        free = f"{shown_bytes(disk.free)} free" if disk.free is not None else ""
        self.told.emit(
            " · ".join(words for words in (f"{shown_bytes(disk.models)} of models", free) if words)
        )
        lines = [f"Models take {shown_bytes(disk.models)}."]
        if disk.unfinished:
            lines.append(f"Unfinished downloads take {shown_bytes(disk.unfinished)}.")
        if disk.other:
            lines.append(f"Other files in the folder take {shown_bytes(disk.other)}.")
        if disk.free is not None:
            lines.append(f"{shown_bytes(disk.free)} are free on this disk.")
        self.words.setText(" ".join(lines))
        self.words.setAccessibleName(self.words.text())
        self.folder.say(visible(str(self._session.models_folder())), "The models folder")
        self.clean.setVisible(use.leftovers > 0)
        if use.leftovers:
            size = shown_bytes(use.leftovers)
            self.clean.setText(f"Clean up {size} of broken downloads")
            self.clean.setAccessibleName(self.clean.text())
            self.clean.setToolTip("Deletes parts of downloads that no program goes on with")
        self._list()

    def _list(self) -> None:
        clear(self._grid, self._cells)
        folder = self._session.models_folder()
        inside = [each for each in self._session.library.entries if each.path.is_relative_to(folder)]
        inside.sort(key=lambda entry: -entry.size_bytes)
        for row, entry in enumerate(inside[:_MOST]):
            self._add_row(row, ElidedLabel(visible(entry.name), self), entry.size_bytes)
        if len(inside) > _MOST:
            rest = sum(entry.size_bytes for entry in inside[_MOST:])
            self._add_row(_MOST, _label(self, f"{len(inside) - _MOST:,} more"), rest)

    def _add_row(self, row: int, name: QWidget, size_bytes: int) -> None:
        size = _label(self, shown_bytes(size_bytes))
        self._grid.addWidget(name, row, 0)
        self._grid.addWidget(size, row, 1, Qt.AlignmentFlag.AlignRight)
        self._cells += [name, size]

    def _clean_up(self) -> None:
        self.clean.setEnabled(False)
        self._session.models.order(
            lambda store, stop: store.clean_up(), self._cleaned, lambda problem: self._failed(problem.message)
        )

    def _cleaned(self, freed: int) -> None:
        self.clean.setEnabled(True)
        self.noticed.emit(f"{freed:,} bytes are free again.")
        self.read()

    def _failed(self, words: str) -> None:
        self.clean.setEnabled(True)
        self.noticed.emit(words)


def _label(parent: QWidget, text: str = "") -> QLabel:
    label = QLabel(text, parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setProperty("role", "muted")
    label.setWordWrap(not text)
    return label
