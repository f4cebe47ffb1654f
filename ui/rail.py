"""The rail at the left edge: one button for each page."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from ui.icons import icon
from ui.theme import Theme

WIDTH = 56
_ICON_PX = 20


class Rail(QFrame):
    """``chosen`` carries the name of a page."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("rail")
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Pages")
        self.buttons: dict[str, QToolButton] = {}
        self._icons: dict[str, str] = {}
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(8, 8, 8, 8)
        self._column.setSpacing(4)
        self._column.addStretch(1)
        self._above = 0
        theme.changed.connect(self._colour)

    def add(self, name: str, icon_name: str, *, below: bool = False) -> None:
        """A button for the page ``name``; ``below`` puts it at the bottom."""
        button = QToolButton(self)
        button.setProperty("look", "rail")
        button.setCheckable(True)
        button.setIconSize(QSize(_ICON_PX, _ICON_PX))
        button.setFixedSize(WIDTH - 16, WIDTH - 16)
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        button.setToolTip(name)
        button.setAccessibleName(name)
        button.clicked.connect(lambda: self.chosen.emit(name))
        self._group.addButton(button)
        self.buttons[name] = button
        self._icons[name] = icon_name
        if below:
            self._column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        else:
            self._column.insertWidget(self._above, button, 0, Qt.AlignmentFlag.AlignHCenter)
            self._above += 1
        self._colour()

    def set_help(self, name: str, help: str) -> None:
        """What is said when the pointer rests on the button of the page ``name``."""
        self.buttons[name].setToolTip(help)

    def show_page(self, name: str) -> None:
        self.buttons[name].setChecked(True)
        self._colour()

    def _colour(self) -> None:
        tokens = self._theme.tokens
        for name, button in self.buttons.items():
            colour = tokens.accent if button.isChecked() else tokens.muted
            button.setIcon(icon(self._icons[name], colour, _ICON_PX))
