"""The chat with the Speed panel beside it, which is made when it is first seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from app.chats.message import Message
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from ui.speed.speed_panel import SpeedPanel

USUAL_PX, LEAST_PX = 340, 280
_LEAST_MAIN_PX = 360


class SpeedSplit(QSplitter):
    """``main`` at the left, the panel at the right. Where there is no room for both, an open panel
    stands in for ``main``. ``open_changed`` carries whether it is open, ``main_resized`` what is left for
    ``main`` in pixels."""

    open_changed = Signal(bool)
    main_resized = Signal(int)

    def __init__(self, theme: Theme, session: Session, main: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._session = session
        self._main = main
        self._width = USUAL_PX
        self.panel: SpeedPanel | None = None
        self.setObjectName("speed")
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)
        self.addWidget(main)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self._dragged)

    @property
    def is_open(self) -> bool:
        return self.panel is not None and not self.panel.isHidden()

    def part_sizes(self) -> tuple[int, ...]:
        """The panel's width that a person chose, in pixels."""
        return (self._width,)

    def set_part_sizes(self, sizes: Sequence[int]) -> None:
        if len(sizes) == 1:
            self._width = max(LEAST_PX, sizes[0])
            self._arrange()

    def toggle(self) -> None:
        if self.is_open:
            self.close_panel()
        else:
            self.open_panel()

    def open_panel(self, message: Message | None = None) -> None:
        """Show the answer at hand, or the numbers of ``message``."""
        panel = self.panel or self._make()
        was_open = self.is_open
        panel.show()
        self._arrange()
        if message is not None:
            panel.show_message(message)
        else:
            panel.show_latest()
        if not was_open:
            self.open_changed.emit(True)

    def close_panel(self) -> None:
        if self.panel is None or not self.is_open:
            return
        self.panel.hide()
        self._arrange()
        self.open_changed.emit(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _make(self) -> SpeedPanel:
        # Here, because pyqtgraph takes a while and most sessions never need it.
        from ui.speed.speed_panel import SpeedPanel

        panel = self.panel = SpeedPanel(self._theme, self._session, self)
        panel.hide()
        panel.setMinimumWidth(LEAST_PX)
        panel.closed.connect(self.close_panel)
        self.addWidget(panel)
        self.setStretchFactor(1, 0)
        return panel

    def _arrange(self) -> None:
        both = self.width() >= LEAST_PX + _LEAST_MAIN_PX
        self._main.setVisible(both or not self.is_open)
        if self.is_open and both:
            beside = min(self._width, self.width() - _LEAST_MAIN_PX)
            self.setSizes([self.width() - beside - self.handleWidth(), beside])
        self._tell()

    def _tell(self) -> None:
        self.main_resized.emit(self.sizes()[0] if self._main.isVisible() else self.width())

    def _dragged(self, at: int) -> None:
        self._tell()
        if self.is_open and self._main.isVisible():
            self._width = self.sizes()[1]
