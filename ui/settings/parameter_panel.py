"""The parameters of one drafter: a box for each, and back to the defaults."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QWidget

from app.declaration import declarations
from ui.theme import Theme
from ui.widgets.number_box import NumberBox, number_box
from ui.widgets.quiet_button import QuietButton

_BOX_WIDTH = 96


class ParameterPanel(QFrame):
    """``changed`` is sent with every complete value; ``parameters`` are always valid together."""

    changed = Signal()

    def __init__(self, theme: Theme, drafter: str, parameters: Struct, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("parameters")
        self.parameters = parameters
        self.boxes: dict[str, NumberBox] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 8, 12, 8)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(0, 1)
        for row, words in enumerate(declarations(type(parameters)).values()):
            label = QLabel(words.title, self)
            label.setToolTip(words.help)
            label.setWordWrap(True)
            box = number_box(words, getattr(parameters, words.name), self)
            box.setToolTip(words.help)
            box.setAccessibleName(f"{drafter}: {words.title}")
            box.setAccessibleDescription(words.help)
            box.valueChanged.connect(lambda value, name=words.name: self._change(name, value))
            label.setBuddy(box)
            grid.addWidget(label, row, 0)
            grid.addWidget(box, row, 1)
            self.boxes[words.name] = box
        self.defaults = QuietButton(theme, "again", "Defaults", self)
        self.defaults.setAccessibleName(f"{drafter}: back to the defaults")
        self.defaults.setToolTip(f"Give {drafter} its default parameters again.")
        self.defaults.clicked.connect(self._reset)
        grid.addWidget(self.defaults, grid.rowCount(), 1, Qt.AlignmentFlag.AlignRight)
        theme.changed.connect(self._resize)
        self._theme = theme
        self._resize()
        self._show_state()

    def _resize(self) -> None:
        for box in self.boxes.values():
            box.setFixedWidth(max(_BOX_WIDTH * self._theme.measures.zoom // 100, box.sizeHint().width()))

    def show_parameters(self, parameters: Struct) -> None:
        self.parameters = parameters
        self._show_state()

    def summary(self) -> str:
        """What differs from the defaults: "n 8, m 24"."""
        default, mine = asdict(type(self.parameters)()), asdict(self.parameters)
        return ", ".join(f"{name} {value:g}" for name, value in mine.items() if value != default[name])

    def _change(self, name: str, value: float) -> None:
        try:
            self.parameters = replace(self.parameters, **{name: value})
        except ValueError:  # a smallest above its largest: the other follows
            other = name[:-3] + ("max" if name.endswith("min") else "min")
            self.parameters = replace(self.parameters, **{name: value, other: value})
        self._show_state()
        self.changed.emit()

    def _reset(self) -> None:
        self.parameters = type(self.parameters)()
        self._show_state()
        self.changed.emit()

    def _show_state(self) -> None:
        for name, box in self.boxes.items():
            with QSignalBlocker(box):
                box.setValue(getattr(self.parameters, name))
        self.defaults.setEnabled(bool(self.summary()))
