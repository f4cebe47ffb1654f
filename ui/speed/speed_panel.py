"""The panel beside the chat: how an answer's speed went, and what each drafter did for it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.chats.message import Message
from drafting.statistics import Statistics
from ui.bidi import visible
from ui.session import Session
from ui.shell.regions import mark_region
from ui.speed import answer_words, drafters, numbers
from ui.speed.answer_series import Point, index_at
from ui.speed.figure_grid import FigureGrid
from ui.speed.legend import Legend
from ui.speed.live_numbers import MOST_DRAWN
from ui.speed.plots import CurvePlot, DrafterBars, PositionBars
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.pace import Pace
from ui.widgets.quiet_button import QuietButton

REFRESH_MS = 100
EMPTY = "Send a message: how fast the answer is written, and who drafted it, is shown here."
NO_CURVES = "Curves are kept of the last few answers, for as long as the program runs."


class SpeedPanel(QFrame):
    """Follows the answer at hand; ``show_message`` shows an earlier one instead. Hidden, it hears and
    does nothing. ``closed``: somebody has seen enough."""

    closed = Signal()

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._live = session.controller.numbers
        self._message: Message | None = None  # an earlier answer that is looked at
        self._marked: Point | None = None
        self._pace = Pace(self._show_now, REFRESH_MS, self)
        self._listening = False
        self.setObjectName("speed_panel")
        mark_region(self, "Speed panel")
        self._build()
        theme.changed.connect(self._show_now)

    # ---- building

    def _build(self) -> None:
        title = QLabel("Speed", self)
        title.setProperty("role", "panel_title")
        self.close_button = QuietButton(self._theme, "close", "", self)
        self.close_button.setAccessibleName("Close the Speed panel")
        self.close_button.setToolTip("Close the Speed panel")
        self.close_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.close_button.clicked.connect(self.closed)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        top = nested(whole, QHBoxLayout())
        top.setContentsMargins(16, 8, 8, 8)
        top.addWidget(title, 1)
        top.addWidget(self.close_button)
        self.subject = _wrapping(self)
        self.subject.setProperty("role", "muted")
        self.latest = QPushButton("Show the latest answer", self)
        self.latest.clicked.connect(self.show_latest)
        self.figures = FigureGrid(self._theme, self)
        self._make_plots()
        self.no_curves = _wrapping(self)
        self.no_curves.setText(NO_CURVES)
        self.no_curves.setProperty("role", "muted")
        self.legend = Legend(self._theme, self)
        self.silences = _wrapping(self)
        self.silences.setProperty("role", "muted")
        body = QWidget(self)
        body.setObjectName("speed_body")
        column = QVBoxLayout(body)
        column.setContentsMargins(8, 0, 8, 16)
        column.setSpacing(8)
        for widget in (self.subject, self.latest, self.figures, self.no_curves):
            _add_inset(column, widget)
        for plot in (*self.curves, self.by_drafter):
            column.addWidget(plot)
        _add_inset(column, self.legend)
        column.addWidget(self.by_position)
        _add_inset(column, self.silences)
        column.addStretch(1)
        scroll = QScrollArea(self)
        scroll.setWidget(body)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        whole.addWidget(scroll, 1)

    def _make_plots(self) -> None:
        theme = self._theme
        self.speed = CurvePlot(
            theme, "Tokens per second", numbers.SPEED_CURVE_HELP, self, least=10.0, ticks=numbers.tick
        )
        self.acceptance = CurvePlot(
            theme,
            "Acceptance",
            numbers.ACCEPTANCE_CURVE_HELP,
            self,
            least=1.0,
            most=1.0,
            ticks=numbers.percent,
        )
        self.draft_length = CurvePlot(
            theme,
            "Draft length",
            numbers.LENGTH_CURVE_HELP,
            self,
            least=4.0,
            ticks=numbers.tick,
            with_axis=True,
        )
        self.curves = (self.speed, self.acceptance, self.draft_length)
        for curve in self.curves:
            curve.hovered.connect(lambda place, at, curve=curve: self._over_curve(curve, place, at))
            curve.asked_along.connect(lambda step, curve=curve: self._step(curve, step))
        self.by_drafter = DrafterBars(theme, "Drafted and accepted", numbers.BY_DRAFTER_HELP, self)
        self.by_drafter.hovered.connect(self._over_drafters)
        self.by_position = PositionBars(
            theme, "Acceptance by place in the draft", numbers.BY_POSITION_HELP, self
        )
        self.by_position.hovered.connect(self._over_positions)

    # ---- what is shown

    def show_message(self, message: Message) -> None:
        """An earlier answer, until the next one begins."""
        latest = self._session.controller.conversation.last("assistant")
        self._message = None if message is latest or message.stats is None else message
        self._mark(None)
        self._show_now()

    def show_latest(self) -> None:
        if self._message is not None:
            self._message = None
            self._mark(None)
        self._show_now()

    @property
    def stats(self) -> Statistics:
        if self._message is not None and self._message.stats is not None:
            return self._message.stats
        return self._live.stats

    @property
    def _points(self) -> Sequence[Point]:
        if self._message is None:
            return self._live.series.points
        return self._live.course(self.stats)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._listen(True)
        self._show_now()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._listen(False)
        self._pace.stop()
        self._message = None

    def _listen(self, wanted: bool) -> None:
        """Only while it is seen. Qt may hide what was never shown, and show what is."""
        if wanted == self._listening:
            return
        self._listening = wanted
        for signal, slot in (
            (self._session.numbers_changed, self._numbers_changed),
            (self._session.added, self._added),
            (self._session.replaced, self.show_latest),
        ):
            if wanted:
                signal.connect(slot)
            else:
                signal.disconnect(slot)

    def _added(self, message: Message) -> None:
        if message.in_progress:
            self.show_latest()

    def _numbers_changed(self) -> None:
        if self._message is None:
            self._pace.ask()

    def _show_now(self) -> None:
        if not self.isVisible():
            return
        stats, is_live = self.stats, self._message is None
        something = stats.target_passes > 0
        self.subject.setText(self._subject(something))
        self.latest.setVisible(not is_live)
        points = self._points
        self.no_curves.setVisible(something and not points)
        self.figures.setVisible(something)
        for curve in self.curves:
            curve.setVisible(bool(points))
        for widget in (self.by_drafter, self.by_position, self.legend):
            widget.setVisible(something)
        if not something:
            self.silences.setText("")
            return
        speed = self._live.speed if is_live else stats.tokens_per_second
        speedup = self._live.speedup if is_live else stats.speedup
        self.figures.show_figures(numbers.figures(stats, speed, speedup))
        self._show_curves()
        self._show_bars(stats)
        self.silences.setText("\n".join(answer_words.silence_words(stats)))

    def _subject(self, something: bool) -> str:
        if self._message is not None:
            text = " ".join(self._message.text.split())
            return f"An earlier answer: “{visible(text[:60])}{'…' if len(text) > 60 else ''}”"
        if not something:
            return EMPTY
        return "The last answer" if self._live.finished else "The answer that is being written"

    def _show_curves(self) -> None:
        points = self._points
        drawn = points if self._message is not None else self._live.series.thinned(MOST_DRAWN)
        ends = [point.end for point in drawn]
        for curve, value, shown in (
            (self.speed, _speed, numbers.speed),
            (self.acceptance, _acceptance, numbers.percent),
            (self.draft_length, _draft_length, numbers.per_pass),
        ):
            values = [value(point) for point in drawn]
            curve.show_values(ends, values)
            curve.tell(shown(values[-1] if values else None), answer_words.course_words(points, value, shown))

    def _show_bars(self, stats: Statistics) -> None:
        names = answer_words.who_drafted(stats)
        counts = [stats.by_drafter[name] for name in names]
        dark = self._theme.tokens.dark
        self.by_drafter.show_bars(
            [visible(name) for name in names],
            [c.drafted for c in counts],
            [c.accepted for c in counts],
            [drafters.look(name).colour(dark) for name in names],
        )
        total = f"{numbers.count(stats.accepted)} of {numbers.count(stats.drafted)}"
        self.by_drafter.tell(total, answer_words.drafters_words(stats))
        self.legend.show_drafters(names)
        places = answer_words.by_position(stats)
        self.by_position.show_shares([accepted / drafted for drafted, accepted in places])
        self.by_position.tell(numbers.percent(stats.acceptance_rate), answer_words.positions_words(stats))

    # ---- pointer and keys

    def _over_curve(self, curve: CurvePlot, place: QPointF | None, at: QPoint) -> None:
        points = self._points
        found = None if place is None else index_at(points, place.x())
        self._mark(None if found is None else points[found])
        if found is not None:
            curve.say(answer_words.pass_words(points[found]), at)

    def _step(self, curve: CurvePlot, step: int) -> None:
        points = self._points
        if not points:
            return
        at = len(points) - 1 if step < 0 else 0
        if self._marked is not None:
            at = max(0, min(len(points) - 1, (index_at(points, self._marked.end) or 0) + step))
        self._mark(points[at])
        curve.say(answer_words.pass_words(points[at]), curve.mapToGlobal(QPoint(16, curve.height())))

    def _mark(self, point: Point | None) -> None:
        self._marked = point
        for curve in self.curves:
            curve.show_mark(None if point is None else point.end)

    def _over_drafters(self, place: QPointF | None, at: QPoint) -> None:
        names = answer_words.who_drafted(self.stats)
        row = -1 if place is None else round(place.y())
        if 0 <= row < len(names):
            self.by_drafter.say(answer_words.drafter_words(names[row], self.stats), at)

    def _over_positions(self, place: QPointF | None, at: QPoint) -> None:
        places = answer_words.by_position(self.stats)
        column = 0 if place is None else round(place.x())
        if 1 <= column <= len(places):
            self.by_position.say(answer_words.position_words(column, *places[column - 1]), at)


def _speed(point: Point) -> float | None:
    return point.speed


def _acceptance(point: Point) -> float | None:
    return point.acceptance


def _draft_length(point: Point) -> float | None:
    return point.draft_length


def _wrapping(parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def _add_inset(column: QVBoxLayout, widget: QWidget) -> None:
    """As far in as what a plot shows."""
    row = nested(column, QHBoxLayout())
    row.setContentsMargins(8, 0, 8, 0)
    row.addWidget(widget)
