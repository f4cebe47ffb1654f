"""Whether a model fits into memory, as a sign and a word; the numbers are told on hover."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from model_store.fit import Verdict
from ui.icons import icon
from ui.models.card_view import Mark
from ui.models.words import FIT_WORDS
from ui.theme import Theme, small_font

ICONS: dict[Verdict, str] = {"fits": "check", "tight": "alert", "too_large": "close"}
ROLES: dict[Verdict, str] = {"fits": "muted", "tight": "warning", "too_large": "danger"}
_ICON, _GAP = 16, 4


class FitMark(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._mark: Mark | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._resize)
        self._resize()
        self.hide()

    @property
    def text(self) -> str:
        return FIT_WORDS[self._mark.verdict] if self._mark is not None else ""

    def show_mark(self, mark: Mark | None) -> None:
        if mark == self._mark:
            return
        self._mark = mark
        self.setVisible(mark is not None)
        self.setToolTip(mark.help if mark is not None else "")
        self.setAccessibleName(f"Memory: {self.text}" if mark is not None else "")
        self.setAccessibleDescription(mark.help if mark is not None else "")
        self._resize()

    def sizeHint(self) -> QSize:
        if self._mark is None:
            return QSize(0, _ICON)
        metrics = self.fontMetrics()
        return QSize(_ICON + _GAP + metrics.horizontalAdvance(self.text), max(_ICON, metrics.height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._mark is None:
            return
        colour = str(getattr(self._theme.tokens, ROLES[self._mark.verdict]))
        painter = QPainter(self)
        area = QRect(0, (self.height() - _ICON) // 2, _ICON, _ICON)
        icon(ICONS[self._mark.verdict], colour).paint(painter, area)
        painter.setPen(QColor(colour))
        painter.drawText(
            self.rect().adjusted(_ICON + _GAP, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, self.text
        )

    def _resize(self) -> None:
        self.setFont(small_font())
        self.updateGeometry()
        self.update()
