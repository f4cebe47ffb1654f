"""The strip at the bottom: speed, speed-up, acceptance, tokens per pass, who drafts, or why nobody does."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.protocol import NEURAL
from app.settings import Settings
from ui.bidi import visible
from ui.engine_state import EngineState
from ui.speed import drafters, numbers
from ui.speed.live_numbers import LiveNumbers
from ui.speed.spark_line import SparkLine
from ui.theme import Theme, numbers_font
from ui.widgets.number_field import NumberField
from ui.widgets.quiet_button import QuietButton
from ui.widgets.restyle import restyle

_LEFT, _RIGHT, _SPACING = 16, 8, 16
UNFIT = "drafter does not fit"
UNFIT_HELP = "None of its many drafted tokens was accepted: this drafter costs time with this model."


def drafting_words(settings: Settings, state: EngineState) -> tuple[str, str]:
    """Why nothing is drafted, or who may draft, in words; with one sentence for hovering."""
    if not settings.drafting:
        return "Drafting off in settings", "Turn drafting on in the settings to see drafts."
    if not settings.links:
        return "All drafters off in settings", "Turn on a drafter in the settings to see drafts."
    reports = {report.name: report.reason for report in state.report.drafters} if state.report else {}
    off = {name: reason for name in settings.links if (reason := reports.get(name))}
    lines = [f"{name} off: {visible(reason)}" for name, reason in off.items()]
    if len(off) == len(settings.links):
        return "; ".join(lines), "No drafter can guess with this model."
    neural = [name for name in settings.links if name in NEURAL]
    if settings.draft_model and neural and all(name in off for name in neural):
        return lines[list(off).index(neural[0])], "The draft model is not in use; the others still draft."
    ready = ", ".join(name for name in settings.links if name not in off)
    return "", "\n".join([f"May draft: {ready}.", *lines])


def inactive(reason: str) -> str:
    """A reason of the engine for not drafting, as the strip says it."""
    return reason if reason.startswith("paused") else f"inactive: {reason}"


class StatusStrip(QFrame):
    """Fields of fixed width, so that nothing moves while numbers change. ``asked``: somebody wants to
    see more of them, or no more."""

    asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("strip")
        self.setAccessibleName("Speed of the answer")
        self._widest: dict[NumberField, str] = {}
        self.speed = self._field("8,888 tok/s", numbers.SPEED_HELP)
        self.spark = SparkLine(theme, self)
        self.speedup = self._field("88.8x plain", numbers.SPEEDUP_HELP)
        self.acceptance = self._field("100 % accepted", numbers.ACCEPTANCE_HELP)
        self.per_pass = self._field("88.8 per pass", numbers.PER_PASS_HELP)
        self.drafter = _DrafterMark(theme, self)
        self.words = _Elided(self)
        self.words.setProperty("role", "muted")
        self.words.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        self.more = QuietButton(theme, "left", "Speed", self)
        self.more.setToolTip("The course of the answer's speed, and what each drafter did for it.")
        self.more.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.more.clicked.connect(self.asked)
        self.show_open(False)
        row.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)
        row.setContentsMargins(_LEFT, 0, _RIGHT, 0)
        row.setSpacing(_SPACING)
        fields = (self.speed, self.spark, self.speedup, self.acceptance, self.per_pass, self.drafter)
        for field in fields:
            row.addWidget(field)
        row.addWidget(self.words, 1)
        row.addWidget(self.more)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self._measure)
        self._measure()

    def _field(self, widest: str, help: str) -> NumberField:
        field = NumberField(help, self)
        self._widest[field] = widest
        return field

    def _measure(self) -> None:
        """The theme has changed, and with it perhaps the size of the text."""
        font = numbers_font(self.font())
        metrics = QFontMetrics(font)
        for field, widest in self._widest.items():
            field.setFont(font)
            field.setFixedWidth(metrics.horizontalAdvance(widest) + 2)
        self.words.setFont(font)
        self.drafter.measure(font)
        self._least_words = metrics.horizontalAdvance("Drafting off in settings")
        self.setFixedHeight(max(32, metrics.height() + 12))
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.height())  # what has no room is hidden

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """A narrow window keeps speed and acceptance, and the words that say what is going on."""
        room = self.width() - _LEFT - _RIGHT - self._least_words - _SPACING - self.more.sizeHint().width()
        for field in (self.speed, self.acceptance, self.speedup, self.per_pass, self.drafter, self.spark):
            room -= field.sizeHint().width() if field is self.spark else field.minimumWidth()
            room -= _SPACING
            field.setVisible(room >= 0 or field in (self.speed, self.acceptance))
        self.more.setText("Speed" if self.per_pass.isVisibleTo(self) else "")

    def show_open(self, is_open: bool) -> None:
        """Whether what the strip leads to is there already."""
        self.more.show_icon("right" if is_open else "left")
        self.more.setAccessibleName("Hide the Speed panel" if is_open else "Show the Speed panel")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.asked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.asked.emit()
        else:
            super().keyPressEvent(event)

    def show_numbers(self, live: LiveNumbers, settings: Settings, state: EngineState, writing: bool) -> None:
        self.speed.set_text(f"{numbers.speed(live.speed)} tok/s")
        self.spark.show_rates(live.spark.rates)
        self.speedup.set_text(f"{numbers.times(live.speedup)} plain")
        self.acceptance.set_text(f"{numbers.percent(live.acceptance_rate)} accepted")
        self.per_pass.set_text(f"{numbers.per_pass(live.tokens_per_pass)} per pass")
        self.drafter.show_drafter(live.drafter)
        words, help = self._words(live, settings, state, writing)
        restyle(self.words, "role", "warning" if words == UNFIT else "muted")
        self.words.set_text(words)
        if self.words.toolTip() != help:
            self.words.setToolTip(help)

    def _words(
        self, live: LiveNumbers, settings: Settings, state: EngineState, writing: bool
    ) -> tuple[str, str]:
        if live.prefill is not None:
            done, total = live.prefill
            return (
                f"Reading the prompt {numbers.count(done)} / {numbers.count(total)}",
                "How many tokens of the chat the model has read before it can answer.",
            )
        if state.phase == "loading":
            return f"Loading {round(state.fraction * 100)} %", "How much of the model is in memory."
        if state.phase in ("failed", "lost"):
            return "No model in memory", visible(state.problem or "")
        if live.drafter_unfit:
            return UNFIT, UNFIT_HELP
        words, help = drafting_words(settings, state)
        if not words and writing and live.silence is not None:
            return inactive(live.silence.reason), visible(live.silence.detail)
        if not words and state.phase == "no_model":
            return "No model yet", "Choose a model in the header."
        return words or ("" if writing else "Ready"), help


class _DrafterMark(QWidget):
    """A dot in the drafter's colour and its name; as wide as the longest name."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.name: str | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setToolTip(numbers.DRAFTER_HELP)

    def measure(self, font: QFont) -> None:
        self.setFont(font)
        names = [look.name for look in drafters.looks()]
        self.setFixedWidth(max(QFontMetrics(font).horizontalAdvance(name) for name in names) + 18)
        self.update()

    def show_drafter(self, name: str | None) -> None:
        if name != self.name:
            self.name = name
            help = f" {drafters.look(name).help}" if name else ""
            self.setToolTip(numbers.DRAFTER_HELP + help)
            self.setAccessibleName(f"Drafter {name}" if name else "No drafter")
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.name is None:
            painter.setPen(self._theme.colour("muted"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, numbers.NOTHING)
            return
        look = drafters.look(self.name)
        colour = QColor(look.colour(self._theme.tokens.dark))
        painter.setBrush(colour)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QRectF(0, self.height() / 2 - 4, 8, 8))
        painter.setPen(colour)
        painter.drawText(self.rect().adjusted(14, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, visible(look.name))


class _Elided(QLabel):
    """One line that is cut with dots where there is no room."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._whole = ""
        self.setMinimumWidth(0)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    @property
    def whole(self) -> str:
        return self._whole

    def set_text(self, text: str) -> None:
        if text != self._whole:
            self._whole = text
            self.setAccessibleName(text)
            self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width()))
