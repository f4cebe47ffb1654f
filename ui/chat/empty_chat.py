"""What an empty chat offers: three prompts that show drafting well."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui import theme as measures
from ui.widgets.layouts import nested

PROMPTS: tuple[tuple[str, str], ...] = (
    (
        "Rename a variable in code",
        "Rename `rows` to `records` everywhere in this code and give back the whole code:\n\n"
        "```python\n"
        "def load(path):\n"
        "    rows = []\n"
        "    for line in open(path):\n"
        "        rows.append(line.strip().split(','))\n"
        "    if not rows:\n"
        "        raise ValueError('no rows in ' + path)\n"
        "    return rows\n\n\n"
        "def longest(rows):\n"
        "    return max(rows, key=len)\n"
        "```",
    ),
    (
        "Summarise a passage",
        "Summarise this passage in three sentences, in its own words where you can:\n\n"
        "The lighthouse on the northern cape was built in 1871 from local granite. For ninety years a "
        "keeper and his family lived beside it, carried oil up its 184 steps each evening, and wrote down "
        "the weather four times a day. In 1961 the lamp became electric and the last keeper left. His "
        "notebooks were found in the cellar in 2004 and are now the longest unbroken record of weather on "
        "that coast.",
    ),
    (
        "Write a JSON list",
        "Write a JSON list of eight fruits. Each entry has the fields name, colour, season and "
        "calories_per_100g.",
    ),
)


class EmptyChat(QWidget):
    """``chosen`` carries the text of a prompt."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout()
        column.setSpacing(8)
        title = QLabel("What shall we work on?", self)
        title.setProperty("role", "title")
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(title)
        words = QLabel("Prompts like these repeat what is there already, so drafts pay off.", self)
        words.setProperty("role", "muted")
        words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        words.setWordWrap(True)
        column.addWidget(words)
        column.addSpacing(12)
        self.buttons: list[QPushButton] = []
        for name, prompt in PROMPTS:
            button = QPushButton(name, self)
            button.setProperty("look", "prompt")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.clicked.connect(lambda _=False, prompt=prompt: self.chosen.emit(prompt))
            column.addWidget(button)
            self.buttons.append(button)
        self._column = column
        middle = QWidget(self)
        middle.setLayout(column)
        middle.setMaximumWidth(measures.MEASURE * 2 // 3)
        middle.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        inner = QWidget(self)
        inner.setObjectName("column")
        outer = QVBoxLayout(inner)
        outer.setContentsMargins(16, 16, 16, 16)
        outer.addStretch(2)
        row = nested(outer, QHBoxLayout())
        row.addStretch(1)
        row.addWidget(middle, 1000)
        row.addStretch(1)
        outer.addStretch(3)
        area = QScrollArea(self)  # a low window stays possible
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)

    def add_section(self, section: QWidget) -> None:
        """Something more to begin with, below the prompts."""
        self._column.addSpacing(12)
        self._column.addWidget(section)
