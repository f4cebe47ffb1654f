"""The plots of the Speed panel: a curve and bars. Only here is pyqtgraph known: it takes long to import.

Nothing in a plot can be dragged or zoomed: pointer and wheel belong to the panel it lies in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolTip, QVBoxLayout, QWidget

from ui.speed.scale import round_end
from ui.theme import Theme, numbers_font, small_font
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.layouts import nested

_BAR = 0.62  # of the room of one
_LEAST_ROWS = 3  # one more that speaks up should not move what is below


class Plot(QFrame):
    """A title, a value at its right, and the picture below, which says itself in ``description``.

    ``hovered`` carries the place (0 to ``ends``, in the plot's units) under the pointer, or None.
    """

    hovered = Signal(object, QPoint)

    def __init__(self, theme: Theme, title: str, help: str, height: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("plot")
        self.setToolTip(help)
        self.setAccessibleName(f"{title}. {help}")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self._title = ElidedLabel(title, self)
        self._value = QLabel(self)
        self._value.setProperty("role", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 4, 8, 4)
        column.setSpacing(4)
        row = nested(column, QHBoxLayout())
        row.addWidget(self._title, 1)
        row.addWidget(self._value)
        self.plot = pg.PlotWidget(self, background=None)
        self.plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.setFrameShape(QFrame.Shape.NoFrame)
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setMouseEnabled(False, False)
        self.plot.getPlotItem().getViewBox().setDefaultPadding(0)
        self._picture_px = height
        column.addWidget(self.plot)
        for child in (self._title, self._value):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def follow_theme(self) -> None:
        """To be called once everything that has a colour is there."""
        self._theme.changed.connect(self.recolour)
        self.recolour()

    @property
    def value(self) -> str:
        return self._value.text()

    def tell(self, value: str, description: str) -> None:
        if self._value.text() != value:
            self._value.setText(value)
        if self.accessibleDescription() != description:
            self.setAccessibleDescription(description)

    def recolour(self) -> None:
        self._title.setFont(small_font(self.font()))
        self._value.setFont(numbers_font(self.font()))
        font = QFont(numbers_font(self.font()))
        font.setPixelSize(max(1, font.pixelSize() - 1))
        self.measure(QFontMetrics(font))
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            axis.setPen(self._theme.colour("line"))
            axis.setTextPen(self._theme.colour("muted"))
            axis.setTickFont(font)
            axis.setStyle(tickLength=0, tickAlpha=0, tickTextOffset=4)

    def measure(self, metrics: QFontMetrics) -> None:
        """The numbers at the axes are in letters of this size now."""
        self.plot.getAxis("left").setWidth(metrics.horizontalAdvance("100 %") + 8)
        self.plot.getAxis("bottom").setHeight(metrics.height() + 4)
        self.plot.setFixedHeight(self._picture_px + 2 * metrics.height())
        # The first and the last number of an axis stand half beside it.
        beside = metrics.horizontalAdvance("10,000") // 2 + 1
        self.plot.getPlotItem().setContentsMargins(0, metrics.height() // 2, beside, 0)
        for side in ("left", "bottom"):
            self.plot.getAxis(side).setStyle(hideOverlappingLabels=beside)

    # ---- pointer

    def place_at(self, point: QPoint) -> QPointF | None:
        """In the plot's units; None beside it."""
        view = self.plot.getPlotItem().getViewBox()
        scene = self.plot.mapToScene(self.plot.mapFrom(self, point))
        if not view.sceneBoundingRect().contains(scene):
            return None
        place: QPointF = view.mapSceneToView(scene)
        return place

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        self.hovered.emit(self.place_at(at), self.mapToGlobal(at))

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None, QPoint())
        super().leaveEvent(event)

    def say(self, words: str, at: QPoint) -> None:
        QToolTip.showText(at, words, self)


class CurvePlot(Plot):
    """A curve over the tokens of the answer; gaps where there is no value.

    ``asked_along`` carries a step: an arrow key moves the mark from point to point.
    """

    asked_along = Signal(int)

    def __init__(
        self,
        theme: Theme,
        title: str,
        help: str,
        parent: QWidget,
        *,
        least: float,
        most: float | None = None,
        ticks: Callable[[float], str],
        with_axis: bool = False,
    ) -> None:
        """The y axis ends at ``most``, or at a round number that grows and is ``least`` or more."""
        self._least, self._most, self._ticks = least, most, ticks
        self._ends = (0.0, 0.0)
        self._with_axis = with_axis
        super().__init__(theme, title, help, 72, parent)
        self.plot.getAxis("bottom").setStyle(showValues=with_axis)
        self.curve = self.plot.plot(connect="finite", antialias=True)
        self.mark = pg.InfiniteLine(angle=90, movable=False)
        self.mark.setVisible(False)
        self.plot.addItem(self.mark, ignoreBounds=True)
        self.follow_theme()

    def recolour(self) -> None:
        super().recolour()
        self.curve.setPen(pg.mkPen(self._theme.colour("accent"), width=1.5))
        self.mark.setPen(pg.mkPen(self._theme.colour("muted"), width=1))

    def measure(self, metrics: QFontMetrics) -> None:
        super().measure(metrics)
        if not self._with_axis:
            below = metrics.height() // 2  # of the lowest number
            self.plot.getAxis("bottom").setHeight(below)
            self.plot.setFixedHeight(self._picture_px + metrics.height() + below)

    def show_values(self, ends: Sequence[int], values: Sequence[float | None]) -> None:
        """``values`` of the points that end at these tokens of the answer."""
        y = np.array([np.nan if value is None else value for value in values], dtype=float)
        self.curve.setData(np.array(ends, dtype=float), y)
        highest = float(np.nanmax(y)) if np.isfinite(y).any() else 0.0
        top = self._most if self._most is not None else round_end(highest, self._least)
        wanted = (round_end(float(ends[-1]) if ends else 0.0, 40.0), top)
        if wanted != self._ends:
            self._ends = wanted
            self.plot.setRange(xRange=(0, wanted[0]), yRange=(0, wanted[1] * 1.04), padding=0)
            self.plot.getAxis("left").setTicks([[(v, self._ticks(v)) for v in (0, top / 2, top)]])
            steps = [wanted[0] * i / 2 for i in range(3)]
            self.plot.getAxis("bottom").setTicks([[(x, f"{x:,.0f}") for x in steps]])

    def show_mark(self, tokens: float | None) -> None:
        self.mark.setVisible(tokens is not None)
        if tokens is not None:
            self.mark.setValue(tokens)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.asked_along.emit(step)


class DrafterBars(Plot):
    """For each drafter what it drafted, an outline, and what of it was accepted, filled."""

    def __init__(self, theme: Theme, title: str, help: str, parent: QWidget) -> None:
        super().__init__(theme, title, help, 0, parent)
        self.drafted = pg.BarGraphItem(x0=[0], width=[0], y=[0], height=_BAR)
        self.accepted = pg.BarGraphItem(x0=[0], width=[0], y=[0], height=_BAR)
        self.plot.addItem(self.drafted)
        self.plot.addItem(self.accepted)
        self.plot.getPlotItem().invertY(True)
        self.names: tuple[str, ...] = ()
        self._end = 0.0
        self.follow_theme()

    def measure(self, metrics: QFontMetrics) -> None:
        super().measure(metrics)
        widest = max((metrics.horizontalAdvance(name) for name in self.names), default=0)
        self.plot.getAxis("left").setWidth(max(metrics.horizontalAdvance("100 %"), widest) + 8)
        rows = max(_LEAST_ROWS, len(self.names))
        self.plot.setFixedHeight(metrics.height() + 12 + max(24, metrics.height() + 8) * rows)

    def show_bars(
        self, names: Sequence[str], drafted: Sequence[int], accepted: Sequence[int], colours: Sequence[str]
    ) -> None:
        """The first is drawn at the top."""
        for item in (self.drafted, self.accepted):
            item.setVisible(bool(names))
        if not names:  # pyqtgraph needs a pen for the first
            self.names, self._end = (), 0.0
            self.plot.getAxis("left").setTicks([[]])
            return
        y = np.arange(len(names), dtype=float)
        pens = [pg.mkPen(colour, width=1) for colour in colours]
        brushes = [pg.mkBrush(colour) for colour in colours]
        x0 = np.zeros(len(names))
        self.drafted.setOpts(
            x0=x0, width=list(drafted), y=y, pens=pens, brushes=[pg.mkBrush(None)] * len(names)
        )
        self.accepted.setOpts(x0=x0, width=list(accepted), y=y, pens=pens, brushes=brushes)
        end = round_end(float(max(drafted)), 10.0)
        if (self.names, self._end) != (tuple(names), end):
            self.names, self._end = tuple(names), end
            axis = self.plot.getAxis("left")
            axis.setTicks([list(enumerate(names))])
            rows = max(_LEAST_ROWS, len(names))
            self.plot.setRange(xRange=(0, end * 1.02), yRange=(-0.5, rows - 0.5), padding=0)
            self.plot.getAxis("bottom").setTicks([[(x, f"{x:,.0f}") for x in (0, end / 2, end)]])
            self.recolour()


class PositionBars(Plot):
    """The share of accepted tokens at each place of a draft, counted from 1."""

    def __init__(self, theme: Theme, title: str, help: str, parent: QWidget) -> None:
        super().__init__(theme, title, help, 64, parent)
        self.bars = pg.BarGraphItem(x=[0], height=[0], width=_BAR)
        self.plot.addItem(self.bars)
        self.plot.getAxis("left").setTicks([[(0, "0 %"), (0.5, "50 %"), (1, "100 %")]])
        self._places = -1
        self.follow_theme()

    def recolour(self) -> None:
        super().recolour()
        colour = self._theme.colour("accent")
        self.bars.setOpts(brush=pg.mkBrush(colour), pen=pg.mkPen(colour, width=1))

    def show_shares(self, shares: Sequence[float]) -> None:
        places = np.arange(1, len(shares) + 1, dtype=float)
        self.bars.setOpts(x=places, height=list(shares), width=_BAR)
        if len(shares) != self._places:
            self._places = len(shares)
            self.plot.setRange(xRange=(0.5, max(4, len(shares)) + 0.5), yRange=(0, 1.04), padding=0)
            step = max(1, -(-len(shares) // 8))
            ticks = [(at, str(at)) for at in range(1, len(shares) + 1) if (at - 1) % step == 0]
            self.plot.getAxis("bottom").setTicks([ticks])
