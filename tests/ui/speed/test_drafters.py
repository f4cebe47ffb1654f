"""One look for each drafter, told apart without colour."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.protocol import DRAFTERS, NEURAL
from ui.speed import drafters
from ui.speed.legend import Legend
from ui.speed.underline import draw_underline
from ui.theme import Theme


def test_families_differ_by_their_line_alone() -> None:
    ngrams = [name for name in DRAFTERS if name not in NEURAL]
    patterns = [drafters.look(name).pattern for name in ngrams]
    assert len(set(patterns)) == len(ngrams)
    neural = {drafters.look(name).pattern for name in NEURAL}
    assert len(neural) == 1 and not neural & set(patterns)


def test_each_line_is_drawn_differently(qapp: QApplication) -> None:
    """Seen without colour: where there is ink, over a word of four letters."""
    shapes: set[bytes] = set()
    names = [name for name in DRAFTERS if name not in NEURAL[1:]]
    for name in names:
        picture = QImage(28, 8, QImage.Format.Format_Grayscale8)
        picture.fill(Qt.GlobalColor.white)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw_underline(painter, 0, 28, 2, drafters.look(name).pattern, QColor(Qt.GlobalColor.black))
        painter.end()
        ink = bytes(picture.pixelColor(x, y).lightness() < 128 for y in range(8) for x in range(28))
        assert sum(ink) >= 8
        shapes.add(ink)
    assert len(shapes) == len(names)


def test_a_legend_wraps(theme: Theme, qtbot: QtBot) -> None:
    legend = Legend(theme)
    qtbot.addWidget(legend)
    legend.show_drafters(DRAFTERS)
    assert legend.names == DRAFTERS
    wide, narrow = legend.heightForWidth(2000), legend.heightForWidth(160)
    assert narrow > 3 * wide
    legend.resize(160, narrow)
    legend.show()
    assert all(mark.geometry().right() <= 160 and mark.geometry().bottom() <= narrow for mark in legend.marks)
    marks = list(legend.marks)
    legend.show_drafters(DRAFTERS)
    assert legend.marks == marks, "nothing changes where nothing changed"
    legend.show_drafters(())
    assert legend.marks == [] and legend.heightForWidth(160) == 0
