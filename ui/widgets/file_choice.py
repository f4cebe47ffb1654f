"""A control that holds a file or folder, or none: its name on a button, and a way to be without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.declaration import Declared
from ui.bidi import visible

_PAD = 28


class FileChoice(QWidget):
    """``chosen`` carries the path as text, or None."""

    chosen = Signal(object)

    def __init__(
        self,
        words: Declared,
        path: str | None,
        dialog: Callable[[QWidget], QFileDialog],
        parent: QWidget | None = None,
        *,
        nothing: str = "None",
    ) -> None:
        """``dialog`` makes the one that asks for it; ``nothing`` is the word for being without."""
        super().__init__(parent)
        self._words = words
        self._dialog = dialog
        self._path = path
        self._prompt = "Choose a folder…" if words.control == "folder" else "Choose a file…"
        self.button = QPushButton(self)
        self.button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.button.setAccessibleName(f"{words.title}: {self._prompt.removesuffix('…').lower()}")
        self.button.clicked.connect(self._ask)
        self.clear = QPushButton(nothing, self)
        self.clear.setAccessibleName(f"{words.title}: {nothing.lower()}")
        self.clear.clicked.connect(lambda: self.choose(None))
        self.setFocusProxy(self.button)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.clear)
        row.addWidget(self.button, 1)
        self.show_path(path)

    def choose(self, path: str | None) -> None:
        self.show_path(path)
        self.chosen.emit(path)

    def show_path(self, path: str | None) -> None:
        self._path = path
        self.button.setToolTip(visible(path) if path else self._words.help)
        self.clear.setVisible(path is not None)
        self._show_name()

    def _ask(self) -> None:
        dialog = self._dialog(self)
        dialog.fileSelected.connect(self.choose)
        dialog.open()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_name()

    def _show_name(self) -> None:
        metrics = self.button.fontMetrics()
        self.button.setMinimumWidth(metrics.horizontalAdvance(self._prompt) + _PAD + 1)
        name = visible(Path(self._path).name or self._path) if self._path else self._prompt
        room = max(self.button.width(), self.button.minimumWidth()) - _PAD
        text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        self.button.setText(text.replace("&", "&&"))
