"""The line under drafted text: one pattern per drafter, drawn alike in answers and legends."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from ui.speed.drafters import Pattern

THICKNESS = 1.5
ROOM = 4.0  # what the tallest pattern takes below ``y``
_DOUBLE_GAP = 2.5
_WAVE = 2.5  # half a period
# In units of the pen's width, as Qt wants them.
_DASHES: dict[Pattern, list[float]] = {
    "dotted": [1.0, 1.4],
    "dashed": [3.4, 1.6],
    "dash-dot": [4.0, 1.4, 1.0, 1.4],
    "dash-dot-dot": [4.0, 1.4, 1.0, 1.4, 1.0, 1.4],
}


def draw_underline(
    painter: QPainter, left: float, right: float, y: float, pattern: Pattern, colour: QColor
) -> None:
    """A line in ``pattern`` from ``left`` to ``right`` at height ``y``, in painter units."""
    pen = QPen(colour, THICKNESS)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    if pattern in _DASHES:
        pen.setDashPattern(_DASHES[pattern])
    painter.setPen(pen)
    if pattern == "wave":
        painter.drawPolyline(_wave(left, right, y))
        return
    painter.drawLine(QPointF(left, y), QPointF(right, y))
    if pattern == "double":
        painter.drawLine(QPointF(left, y + _DOUBLE_GAP), QPointF(right, y + _DOUBLE_GAP))


def _wave(left: float, right: float, y: float) -> QPolygonF:
    # Crests lie on a grid, so that neighbouring runs of one drafter join.
    step = int(left // _WAVE)
    points = [QPointF(left, y + 1)]
    while (x := (step := step + 1) * _WAVE) < right:
        points.append(QPointF(x, y + (2 if step % 2 else 0)))
    points.append(QPointF(right, y + 1))
    return QPolygonF(points)
