"""A control that holds a file or none: its name on a button, and a way to be without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from app.declaration import Declared
from ui.bidi import visible

_CHOOSE = "Choose a file…"


class FileChoice(QWidget):
    """``chosen`` carries the path as text, or None."""

    chosen = Signal(object)

    def __init__(
        self,
        words: Declared,
        path: str | None,
        dialog: Callable[[QWidget], QFileDialog],
        width: int,
        parent: QWidget | None = None,
    ) -> None:
        """``width`` of the button in pixels; ``dialog`` makes the one that asks for a file."""
        super().__init__(parent)
        self._words = words
        self._dialog = dialog
        self.button = QPushButton(self)
        self.button.setFixedWidth(width)
        self.button.setAccessibleName(f"{words.title}: choose a file")
        self.button.clicked.connect(self._ask)
        self.clear = QPushButton("None", self)
        self.clear.setAccessibleName(f"{words.title}: none")
        self.clear.clicked.connect(lambda: self.choose(None))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.clear)
        row.addWidget(self.button)
        self._show(path)

    def choose(self, path: str | None) -> None:
        self._show(path)
        self.chosen.emit(path)

    def _ask(self) -> None:
        dialog = self._dialog(self)
        dialog.fileSelected.connect(self.choose)
        dialog.open()

    def _show(self, path: str | None) -> None:
        name = visible(Path(path).name) if path else _CHOOSE
        metrics = self.button.fontMetrics()
        text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, self.button.width() - 28)
        self.button.setText(text.replace("&", "&&"))
        self.button.setToolTip(visible(path) if path else self._words.help)
        self.clear.setVisible(path is not None)
