"""The speed page: what drafting brought so far, by model pair and kind of text, and who drafted it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.engine_client import Event
from app.protocol import Done
from app.speed_history import KindHistory, SpeedHistoryError
from ui.session import Session
from ui.speed import numbers
from ui.speed.history_rows import SPAN_HELP, HistoryRow, Span, history_rows
from ui.speed.history_table import HistoryTable
from ui.speed.measure_box import MeasureBox
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.segments import Segments

EMPTY = (
    "Answers in this program are counted here: how fast they were, by model and kind of text, and which "
    "drafter helped. Only numbers are kept, no word of a chat. Send a message to see the first."
)


class SpeedPage(QWidget):
    """Read anew when it is shown and when an answer ends, on the history's own thread."""

    _read = Signal(object)  # Future[list[KindHistory]]
    _forgotten = Signal(object)  # Future[int]

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._histories: list[KindHistory] = []
        self._build()
        # From the history's thread to this one.
        self._read.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._forgotten.connect(self._forgot, Qt.ConnectionType.QueuedConnection)
        session.events.connect(self._engine_said)
        self.table.itemSelectionChanged.connect(self._name_forget)

    # ---- building

    def _build(self) -> None:
        title = QLabel("Speed", self)
        title.setProperty("role", "title")
        self.span = Segments((("lately", "Lately"), ("ever", "Ever")), "lately", self)
        self.span.explain("Which answers count", SPAN_HELP["lately"])
        for span, help in SPAN_HELP.items():
            self.span.buttons[span].setToolTip(help)
        self.span.chosen.connect(self._show_rows)
        self.forget = QPushButton("Forget…", self)
        self.forget.clicked.connect(self._ask)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 16, 24, 16)
        column.setSpacing(12)
        top = nested(column, QHBoxLayout())
        top.setSpacing(8)
        top.addWidget(title)
        top.addStretch(1)
        top.addWidget(self.span)
        top.addWidget(self.forget)
        self.question = _Question(self)
        self.question.answered.connect(self._forget)
        self.measure = MeasureBox(self._theme, self._session, self)
        self.table = HistoryTable(self._theme, self)
        self.empty = QLabel(EMPTY, self)
        self.empty.setWordWrap(True)
        self.empty.setProperty("role", "muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.body = QStackedWidget(self)
        self.body.addWidget(self.empty)
        self.body.addWidget(self.table)
        column.addWidget(self.question)
        column.addWidget(self.body, 1)
        column.addWidget(self.measure)
        self._show_rows()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.measure.close_down()
        super().closeEvent(event)

    # ---- reading

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        self._session.history.read().add_done_callback(self._read.emit)

    def _engine_said(self, events: Iterable[Event]) -> None:
        if self.isVisible() and any(isinstance(event, Done) for event in events):
            self.refresh()

    def _take(self, future: Future[list[KindHistory]]) -> None:
        if future.cancelled():
            return
        try:
            self._histories = future.result()
        except SpeedHistoryError as error:
            self.empty.setText(f"The speed history cannot be read: {error}.")
            self._histories = []
        else:
            self.empty.setText(EMPTY)
        self._show_rows()

    @property
    def rows(self) -> list[HistoryRow]:
        span: Span = "ever" if self.span.value == "ever" else "lately"
        return history_rows(self._histories, span)

    def _show_rows(self) -> None:
        self.table.show_rows(self.rows)
        self.body.setCurrentWidget(self.table if self._histories else self.empty)
        for widget in (self.span, self.forget):
            widget.setVisible(bool(self._histories))
        if not self._histories:
            self.question.hide()
        self._name_forget()

    # ---- forgetting

    def _name_forget(self) -> None:
        chosen = self.table.target is not None
        help = "Drop the figures of the chosen model." if chosen else "Drop the figures of all models."
        self.forget.setToolTip(help)
        self.forget.setAccessibleDescription(help)

    def _ask(self) -> None:
        target = self.table.target
        rows = [row for row in self.rows if target in (None, row.target)]
        if not rows:
            return
        answers = round(sum(row.answers for row in rows))
        count = f"{numbers.count(answers)} {'answer' if answers == 1 else 'answers'}"
        whose = "all models" if target is None else rows[0].name
        self.question.ask(
            f"Forget how fast {count} of {whose} {'was' if answers == 1 else 'were'}? The chats stay.",
            target,
        )

    def _forget(self, target: str | None) -> None:
        targets = None if target is None else [target]
        self._session.history.forget(targets).add_done_callback(self._forgotten.emit)

    def _forgot(self, future: Future[int]) -> None:
        if future.cancelled():
            return
        try:
            future.result()
        except SpeedHistoryError as error:
            self._session.noticed.emit(f"The figures could not be dropped: {error}.")
        self.refresh()


class _Question(QFrame):
    """Asks before figures are dropped. ``answered`` carries the model's key, None for all of them."""

    answered = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._target: str | None = None
        self.words = QLabel(self)
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.yes = QPushButton("Forget", self)
        self.no = QPushButton("Keep", self)
        self.yes.clicked.connect(self._yes)
        self.no.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(8)
        row.addWidget(self.words, 1)
        row.addWidget(self.yes)
        row.addWidget(self.no)
        self.hide()

    def ask(self, words: str, target: str | None) -> None:
        self._target = target
        self.words.setText(words)
        self.show()
        self.no.setFocus()

    def _yes(self) -> None:
        self.hide()
        self.answered.emit(self._target)
