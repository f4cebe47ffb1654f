"""What this program is, what it runs on, and whose work it stands on."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from ui.bidi import visible
from ui.icons import app_icon
from ui.shell.program_facts import PARTS, ProgramFacts, version
from ui.theme import SPACE, SPACE_PAGE, SPACE_TIGHT, SPACE_WIDE
from ui.widgets.layouts import nested

_ICON_PX = 64
_SAID_MS = 2500


class About(QDialog):
    def __init__(self, facts: ProgramFacts, show_logs: Callable[[], object], parent: QWidget | None) -> None:
        super().__init__(parent)
        self._facts = facts
        self.setWindowTitle("About Slipstream")
        self.setAccessibleName("About Slipstream")
        self.setMinimumSize(440, 480)
        picture = QLabel(self)
        picture.setPixmap(app_icon().pixmap(_ICON_PX, _ICON_PX))
        title = QLabel("Slipstream", self)
        title.setProperty("role", "title")
        words = _words("Language models on your own machine, drafted ahead and checked word by word.", self)
        words.setProperty("role", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_PAGE, SPACE_PAGE, SPACE_PAGE, SPACE_WIDE)
        column.setSpacing(SPACE_WIDE)
        head = nested(column, QHBoxLayout())
        head.setSpacing(SPACE_WIDE)
        head.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        beside = nested(head, QVBoxLayout(), 1)
        beside.setSpacing(SPACE_TIGHT)
        beside.addStretch(1)
        beside.addWidget(title)
        beside.addWidget(words)
        beside.addStretch(1)
        self.rows = nested(column, QGridLayout())
        self.rows.setHorizontalSpacing(SPACE_PAGE)
        self.rows.setVerticalSpacing(SPACE)
        self.rows.setColumnStretch(1, 1)
        for name, value in facts.lines():
            self._row(self.rows, name, value)
        section = QLabel("Made with", self)
        section.setProperty("role", "section")
        self.copied = QPushButton("Copy diagnostic report", self)
        self.copied.setToolTip("Versions, settings, the model and the last log lines. No word of your chats.")
        self.copied.clicked.connect(self.copy_report)
        logs = QPushButton("Show logs", self)
        logs.clicked.connect(show_logs)
        close = QPushButton("Close", self)
        close.clicked.connect(self.close)
        close.setDefault(True)
        for button in (self.copied, logs):
            button.setAutoDefault(False)
        column.addWidget(section)
        column.addWidget(self._parts(), 1)
        column.addWidget(_words("Slipstream itself is under the Apache License 2.0.", self, "small"))
        below = nested(column, QHBoxLayout())
        below.setSpacing(SPACE)
        below.addWidget(self.copied)
        below.addWidget(logs)
        below.addStretch(1)
        below.addWidget(close)
        close.setFocus()
        self._said = QTimer(self)
        self._said.setSingleShot(True)
        self._said.setInterval(_SAID_MS)
        self._said.timeout.connect(lambda: self.copied.setText("Copy diagnostic report"))

    def copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self._facts.report())
        self.copied.setMinimumWidth(self.copied.width())
        self.copied.setText("Copied")
        self._said.start()

    def _parts(self) -> QScrollArea:
        inside = QWidget(self)
        inside.setObjectName("column")
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, SPACE, 0)
        grid.setHorizontalSpacing(SPACE_WIDE)
        grid.setVerticalSpacing(SPACE_TIGHT)
        grid.setColumnStretch(0, 1)
        for row, part in enumerate(PARTS):
            number = version(part.package) if part.package else ""
            for at, text in enumerate((f"{part.name} {number}".strip(), part.licence)):
                label = _words(text, inside)
                if at:
                    label.setWordWrap(False)
                    label.setProperty("role", "muted")
                grid.addWidget(label, row, at)
        grid.setRowStretch(len(PARTS), 1)
        area = QScrollArea(self)
        area.setAccessibleName("Parts and their licences")
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        return area

    def _row(self, grid: QGridLayout, name: str, value: str) -> None:
        at = grid.rowCount()
        label = QLabel(name, self)
        label.setProperty("role", "muted")
        words = _words(visible(value), self)
        words.setAccessibleName(f"{name}: {value}")
        grid.addWidget(label, at, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(words, at, 1)


def _words(text: str, parent: QWidget, role: str | None = None) -> QLabel:
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role is not None:
        label.setProperty("role", role)
    return label
