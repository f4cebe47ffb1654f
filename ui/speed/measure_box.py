"""Try it: how fast this machine is with and without drafting, measured while a person looks on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.bench.measurement import Row, geometric_mean
from model_store.starter import starter_path
from ui.bidi import visible
from ui.session import Session
from ui.speed import numbers
from ui.speed.measurement import BENCH, Measurement
from ui.theme import Theme, numbers_font
from ui.widgets.layouts import clear, nested

PLAIN, DRAFTED = "off", "auto"
ABOUT = (
    "Writes short answers to fixed tasks with and without drafting. It takes about a minute, longer with a "
    "large model; the model leaves the chat meanwhile."
)
_HEADINGS = (
    ("Task", "What the model was asked to do."),
    ("Plain", "Tokens per second without drafting."),
    ("Drafted", "Tokens per second with drafting, automatic."),
    ("Speed-up", "How many times as fast drafting was on this task."),
    ("Accepted", numbers.ACCEPTANCE_HELP),
)


class MeasureBox(QFrame):
    def __init__(
        self,
        theme: Theme,
        session: Session,
        parent: QWidget | None = None,
        command: Sequence[str] = BENCH,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._put_aside = False  # the chat's model, for as long as this measures
        self.measurement = Measurement(command, self)
        self.measurement.progressed.connect(self._progressed)
        self.measurement.measured.connect(self._measured)
        self.measurement.failed.connect(self._failed)
        session.engine_changed.connect(self._engine_changed)
        self.setObjectName("measure")
        self._build()
        self._engine_changed()

    def _build(self) -> None:
        title = QLabel("Try it on this machine", self)
        title.setProperty("role", "panel_title")
        self.words = QLabel(ABOUT, self)
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setProperty("role", "muted")
        self.button = QPushButton("Measure", self)
        self.button.clicked.connect(self._clicked)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("How far the measurement is")
        self.bar.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        top = nested(column, QHBoxLayout())
        top.setSpacing(16)
        text = nested(top, QVBoxLayout(), 1)
        text.setSpacing(4)
        text.addWidget(title)
        text.addWidget(self.words)
        top.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        column.addWidget(self.bar)
        self._cells: list[QWidget] = []
        self._grid = nested(column, QGridLayout())
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(len(_HEADINGS), 1)

    # ---- measuring

    def _clicked(self) -> None:
        if self.measurement.running:
            self._stop("Stopped; nothing was measured.")
        else:
            self._start()

    def _start(self) -> None:
        model = self._model()
        if model is None:
            return
        controller = self._session.controller
        self._put_aside = controller.state.phase in ("ready", "loading")
        controller.unload()  # two copies in memory would slow each other down
        self._show_rows([])
        self.words.setText("Loading the model…")
        self.bar.setRange(0, 0)
        self.bar.show()
        settings = self._session.settings
        arguments = ["--model", model]
        if settings.draft_model is not None:
            arguments += ["--draft-model", settings.draft_model]
        if settings.n_threads:
            arguments += ["--threads", str(settings.n_threads)]
        self.measurement.start(arguments)
        self._name_button()

    def close_down(self) -> None:
        """The window closes."""
        self.measurement.stop(wait=True)

    def _stop(self, why: str) -> None:
        self.measurement.stop()
        self._ended(why)

    def _ended(self, words: str) -> None:
        self.words.setText(words)
        self.bar.hide()
        self._name_button()
        controller = self._session.controller
        if self._put_aside and controller.state.phase == "no_model":
            controller.reload()
        self._put_aside = False

    def _engine_changed(self) -> None:
        """Whoever sends a message wants the machine for it."""
        if self.measurement.running and self._session.controller.state.phase in ("loading", "ready"):
            self._put_aside = False
            self._stop("Stopped, because the model was needed; nothing was measured.")
        self._name_button()

    def _name_button(self) -> None:
        running, busy = self.measurement.running, self._writing()
        self.button.setText("Cancel" if running else "Measure")
        self.button.setEnabled(running or (not busy and self._model() is not None))
        help = ABOUT
        if busy:
            help = "An answer is being written; measure when it has ended."
        elif self._model() is None:
            help = "There is no model to measure yet."
        self.button.setToolTip(help)
        self.button.setAccessibleDescription(help)

    def _writing(self) -> bool:
        return bool(self._session.controller.busy_chats)

    def _model(self) -> str | None:
        path = self._session.controller.state.wanted or self._session.settings.model
        if path is not None and Path(path).is_file():
            return path
        starter = starter_path()
        return None if starter is None else str(starter)

    # ---- what it says

    def _progressed(self, done: int, total: int, name: str) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)
        self.words.setText(f"{done + 1} of {total}: {visible(name)}")

    def _failed(self, why: str) -> None:
        self._ended(f"Not measured: {visible(why)}")

    def _measured(self, rows: Sequence[Row]) -> None:
        self._show_rows(rows)
        speedup = geometric_mean(row.speedup for row in rows if row.mode == DRAFTED)
        tasks = sum(row.mode == DRAFTED for row in rows)
        words = "Nothing could be measured."
        if speedup is not None:
            name = visible(rows[0].model)
            words = f"{name}: {numbers.times(speedup)} plain with drafting, over {tasks} tasks."
        self._ended(words)

    def _show_rows(self, rows: Sequence[Row]) -> None:
        clear(self._grid, self._cells)
        if not rows:
            return
        for column, (heading, help) in enumerate(_HEADINGS):
            self._cell(0, column, heading, help, "small")
        plain = {row.workload: row for row in rows if row.mode == PLAIN}
        drafted = [row for row in rows if row.mode == DRAFTED]
        for line, row in enumerate(drafted, 1):
            before = plain.get(row.workload)
            cells = (
                visible(row.workload),
                numbers.speed(before.tokens_per_second if before else None),
                numbers.speed(row.tokens_per_second),
                numbers.times(row.speedup),
                numbers.percent(row.acceptance_rate),
            )
            for column, (text, (_, help)) in enumerate(zip(cells, _HEADINGS, strict=True)):
                self._cell(line, column, text, help, "")

    def _cell(self, line: int, column: int, text: str, help: str, role: str) -> None:
        label = QLabel(text, self)
        label.setFont(numbers_font(self.font()))
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setToolTip(help)
        label.setAccessibleName(f"{text}. {help}")
        if role:
            label.setProperty("role", role)
        side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
        self._grid.addWidget(label, line, column, side)
        self._cells.append(label)
