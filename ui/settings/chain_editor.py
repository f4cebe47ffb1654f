"""The chain: each drafter with a switch, its place in the order, and its parameters to fold out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from PySide6.QtCore import QPoint, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.protocol import DrafterName, DrafterReport
from app.settings import Settings
from app.speed_history import Figures
from drafting.parameters import LinkParameters
from ui.bidi import visible
from ui.settings.parameter_panel import ParameterPanel
from ui.speed import drafters
from ui.speed.numbers import percent
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton
from ui.widgets.switch import Switch

_INDENT = 36  # where the words begin
_KEYS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class ChainEditor(QWidget):
    """``changed`` tells of other links or another order, ``tuned`` of other parameters; ``moved``
    carries the row that has a new place."""

    changed = Signal()
    tuned = Signal()
    moved = Signal(QWidget)

    def __init__(self, theme: Theme, settings: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.rows: list[LinkRow] = []
        for name in settings.chain():
            row = LinkRow(theme, name, name in settings.links, settings.parameters.of(name), self)
            row.switch.toggled.connect(self.changed)
            row.panel.changed.connect(self.tuned)
            row.grip.stepped.connect(lambda by, row=row: self._move(row, self.rows.index(row) + by))
            row.grip.dragged.connect(lambda y, row=row: self._drag(row, y))
            self.rows.append(row)
            self._column.addWidget(row)

    @property
    def order(self) -> tuple[DrafterName, ...]:
        return tuple(row.name for row in self.rows)

    @property
    def links(self) -> tuple[DrafterName, ...]:
        """Those that are on, in order."""
        return tuple(row.name for row in self.rows if row.switch.isChecked())

    @property
    def parameters(self) -> LinkParameters:
        return msgspec.convert({row.name: row.panel.parameters for row in self.rows}, LinkParameters)

    def show_settings(self, settings: Settings) -> None:
        """Take order, switches and parameters from ``settings`` without telling of a change."""
        rows = {row.name: row for row in self.rows}
        self.rows = [rows[name] for name in settings.chain()]
        for place, row in enumerate(self.rows):
            self._column.insertWidget(place, row)
            row.show_link(row.name in settings.links, settings.parameters.of(row.name))
        _tab_in_order([widget for row in self.rows for widget in row.tab_stops()])

    def show_mode(self, manual: bool) -> None:
        """Order and parameters only matter where a person chooses them."""
        for row in self.rows:
            row.show_mode(manual)

    def show_reports(self, reports: Iterable[DrafterReport]) -> None:
        """Say at each drafter that cannot draft for the model in memory why that is so."""
        reasons = {report.name: report.reason for report in reports}
        for row in self.rows:
            row.show_reason(reasons.get(row.name))

    def show_figures(self, figures: Mapping[str, Figures]) -> None:
        """Say at each drafter how much of what it drafted was accepted so far."""
        for row in self.rows:
            row.show_figures(figures.get(row.name))

    def controls(self) -> dict[str, QWidget]:
        """All that can be changed, under names such as ``links.cache`` and ``parameters.cache.p_min``."""
        found: dict[str, QWidget] = {}
        for row in self.rows:
            found[f"order.{row.name}"] = row.grip
            found[f"links.{row.name}"] = row.switch
            for parameter, box in row.panel.boxes.items():
                found[f"parameters.{row.name}.{parameter}"] = box
        return found

    def recolour(self) -> None:
        for row in self.rows:
            row.recolour()

    def _drag(self, row: LinkRow, global_y: int) -> None:
        """Pass every row whose middle the pointer has passed."""
        y = global_y - self.mapToGlobal(QPoint()).y()
        others = [other for other in self.rows if other is not row]
        self._move(row, sum(other.geometry().center().y() < y for other in others))

    def _move(self, row: LinkRow, place: int) -> None:
        place = max(0, min(place, len(self.rows) - 1))
        if self.rows.index(row) == place:
            return
        self.rows.remove(row)
        self.rows.insert(place, row)
        self._column.removeWidget(row)
        self._column.insertWidget(place, row)
        self._column.activate()
        _tab_in_order([widget for each in self.rows for widget in each.tab_stops()])
        self.moved.emit(row)
        self.changed.emit()


class LinkRow(QFrame):
    """One drafter of the chain."""

    def __init__(
        self, theme: Theme, name: DrafterName, on: bool, parameters: msgspec.Struct, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setObjectName("row")
        self.name = name
        self._theme = theme
        self._look = drafters.look(name)
        self.grip = Grip(theme, name, self)
        self._label = QLabel(name, self)
        self._help = QLabel(self._look.help, self)
        self._help.setProperty("role", "small")
        self._help.setWordWrap(True)
        self._note = QLabel(self)
        self._note.setProperty("role", "small")
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._note.setWordWrap(True)
        self._note.hide()
        self._reason: str | None = None
        self.accepted = QLabel(self)
        self.accepted.setProperty("role", "small")
        self.fold = QuietButton(theme, "right", "", self)
        self.fold.setCheckable(True)
        self.fold.setAccessibleName(f"Parameters of {name}")
        self.fold.setToolTip(f"The parameters of {name}.")
        self.fold.toggled.connect(self._fold)
        self.switch = Switch(theme, self)
        self.switch.setChecked(on)
        self.switch.setAccessibleName(name)
        self.switch.setAccessibleDescription(self._look.help)
        self.switch.setToolTip(self._look.help)
        self._label.setBuddy(self.switch)
        self.panel = ParameterPanel(theme, name, parameters, self)
        self.panel.hide()
        self.panel.changed.connect(self._show_note)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(8)
        line = nested(column, QHBoxLayout())
        line.setSpacing(8)
        line.addWidget(self.grip)
        words = nested(line, QVBoxLayout(), 1)
        words.setSpacing(2)
        for label in (self._label, self._help, self._note):
            words.addWidget(label)
        line.addWidget(self.accepted)
        line.addWidget(self.fold)
        line.addWidget(self.switch)
        below = nested(column, QHBoxLayout())
        below.setContentsMargins(_INDENT, 0, 0, 0)
        below.addWidget(self.panel)
        self._manual = True
        self.recolour()
        self._show_note()

    def show_link(self, on: bool, parameters: msgspec.Struct) -> None:
        with QSignalBlocker(self.switch):
            self.switch.setChecked(on)
        self.switch.update()
        self.panel.show_parameters(parameters)
        self._show_note()

    def show_mode(self, manual: bool) -> None:
        self._manual = manual
        self.grip.setVisible(manual)
        self.fold.setVisible(manual)
        self.panel.setVisible(manual and self.fold.isChecked())
        self._show_note()

    def show_figures(self, figures: Figures | None) -> None:
        rate = figures.acceptance_rate if figures is not None else None
        if figures is None or rate is None:
            self.accepted.clear()
            self.accepted.setToolTip("")
            return
        self.accepted.setText(f"{percent(rate)} accepted")
        self.accepted.setToolTip(
            f"Of the {figures.drafted:,.0f} tokens that {self.name} has drafted for this model so far, "
            "so many were right."
        )
        self.accepted.setAccessibleDescription(self.accepted.toolTip())

    def show_reason(self, reason: str | None) -> None:
        self._reason = reason
        self._show_note()

    def tab_stops(self) -> list[QWidget]:
        return [self.grip, self.fold, self.switch, *self.panel.boxes.values(), self.panel.defaults]

    def recolour(self) -> None:
        self._label.setStyleSheet(f"color: {self._look.colour(self._theme.tokens.dark)}; font-weight: 600;")

    def _fold(self, shown: bool) -> None:
        self.fold.show_icon("down" if shown else "right")
        self.panel.setVisible(shown and self._manual)
        self._show_note()

    def _show_note(self) -> None:
        parts = [f"Cannot draft now: {visible(self._reason)}"] if self._reason else []
        if self._manual and not self.fold.isChecked() and (summary := self.panel.summary()):
            parts.append(summary)
        self._note.setText(" · ".join(parts))
        self._note.setVisible(bool(parts))


class Grip(QuietButton):
    """Moves a row: dragged by the pointer (``dragged``: its global y), or stepped by Up and Down."""

    stepped = Signal(int)
    dragged = Signal(int)

    def __init__(self, theme: Theme, name: str, parent: QWidget) -> None:
        super().__init__(theme, "grip", "", parent)
        self.setAccessibleName(f"Move {name}")
        self.setAccessibleDescription("Up and Down change the place in the order.")
        self.setToolTip(f"Drag {name}, or press Up or Down, to have it asked earlier or later.")
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = _KEYS.get(Qt.Key(event.key()))
        if by is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(by)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(round(event.globalPosition().y()))


def _tab_in_order(widgets: Sequence[QWidget]) -> None:
    for before, after in itertools.pairwise(widgets):
        QWidget.setTabOrder(before, after)
