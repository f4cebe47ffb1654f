"""A stack of lines to read once, some with something that can be done about it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.theme import Theme
from ui.widgets.cards import NoticeLine

_MOST = 3


class Notices(QWidget):
    """Each text once, the newest few, until they are dismissed. Takes no room while it is empty.
    ``chosen`` carries the action of a line, which then has had its time."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: list[NoticeLine] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self.hide()

    def add(self, text: str, action: str = "") -> None:
        if any(line.text == text for line in self._lines):
            return
        while len(self._lines) >= _MOST:
            self._drop(self._lines[0])
        line = NoticeLine(self._theme, text, action, self)
        line.dismissed.connect(lambda: self._drop(line))
        if line.button is not None:
            line.button.clicked.connect(lambda: self._choose(line))
        self._lines.append(line)
        self._column.addWidget(line)
        self.show()

    def texts(self) -> tuple[str, ...]:
        return tuple(line.text for line in self._lines)

    def lines(self) -> tuple[NoticeLine, ...]:
        return tuple(self._lines)

    def clear(self) -> None:
        for line in list(self._lines):
            self._drop(line)

    def _choose(self, line: NoticeLine) -> None:
        self._drop(line)
        self.chosen.emit(line.action)

    def _drop(self, line: NoticeLine) -> None:
        if line in self._lines:
            self._lines.remove(line)
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
            self.setVisible(bool(self._lines))
