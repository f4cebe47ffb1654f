"""A page with something at its left: beside it where there is room, over it where there is not."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from ui.theme import Theme, scaled_px

LEAST_PX, MOST_PX, USUAL_PX = 200, 480, 264
_LEAST_MAIN_PX = 480  # narrower, and the side goes over the page; at the usual size of text
_LEAST_BESIDE_PX = 48  # of the page that can be seen beside a side over it
_HANDLE_PX = 8
_STEP_PX = 16


class SideFrame(QWidget):
    """``shown`` is the person's wish; a narrow window hides the side until it is asked for again."""

    shown_changed = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._side: QWidget | None = None
        self._main: QWidget | None = None
        self._wanted = True
        self._over = False  # shown over the page of a narrow window
        self._was_narrow: bool | None = None
        self._width = USUAL_PX
        self.handle = _Handle(theme, self)
        self.handle.moved.connect(self._drag)
        theme.changed.connect(self._fit)

    def set_widgets(self, side: QWidget, main: QWidget) -> None:
        self._side, self._main = side, main
        for widget in (main, side, self.handle):
            widget.setParent(self)
            widget.show()
            widget.raise_()
        self.setTabOrder(side, main)
        self._place()

    # ---- what is wanted

    @property
    def _least_main(self) -> int:
        return scaled_px(_LEAST_MAIN_PX, self._theme.measures.zoom)

    @property
    def narrow(self) -> bool:
        return self.width() < LEAST_PX + self._least_main

    @property
    def side_shown(self) -> bool:
        return self._over if self.narrow else self._wanted

    @property
    def side_over(self) -> bool:
        """It covers a part of the page just now."""
        return self.narrow and self._over

    @property
    def side_width(self) -> int:
        return self._width

    def set_side_width(self, width: int) -> None:
        self._width = max(LEAST_PX, min(MOST_PX, width))
        self._place()

    def show_side(self, shown: bool) -> None:
        if self.narrow:
            self._over = shown
        else:
            self._wanted = shown
        self._place()
        self.shown_changed.emit(self.side_shown)

    def part_sizes(self) -> tuple[int, ...]:
        """The side's width in pixels, and whether it is wanted, as 0 or 1."""
        return self._width, int(self._wanted)

    def set_part_sizes(self, sizes: Sequence[int]) -> None:
        """What ``part_sizes`` said at another time."""
        if len(sizes) == 2:
            self._wanted = bool(sizes[1])
            self.set_side_width(sizes[0])
            self.shown_changed.emit(self.side_shown)

    # ---- placing

    def _drag(self, by: int) -> None:
        self.set_side_width(self._fitting(self._fitting(self._width) + by))

    def _fitting(self, width: int) -> int:
        """The nearest to ``width`` that there is room for."""
        room = self.width() - (_LEAST_BESIDE_PX if self.narrow else self._least_main)
        return max(min(LEAST_PX, room), min(width, room))

    def _place(self) -> None:
        if self._side is None or self._main is None or self.width() < LEAST_PX:
            return
        shown = self.side_shown
        width = self._fitting(self._width) if shown else 0
        self._side.setVisible(shown)
        self.handle.setVisible(shown)
        if shown:
            self._side.setGeometry(0, 0, width, self.height())
            self.handle.setGeometry(width - _HANDLE_PX // 2, 0, _HANDLE_PX, self.height())
        left = 0 if self.narrow else width
        self._main.setGeometry(QRect(left, 0, self.width() - left, self.height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The width, or that of the text, is another now."""
        changed = self.narrow != self._was_narrow
        self._was_narrow = self.narrow
        if changed:
            self._over = False
        self._place()
        if changed:
            self.shown_changed.emit(self.side_shown)


class _Handle(QWidget):
    """The edge between the two, to be dragged or moved with the arrow keys."""

    moved = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._from: QPoint | None = None
        self.setCursor(Qt.CursorShape.SplitHCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Width of the sidebar")
        self.setToolTip("Drag to change the width")

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._from = event.globalPosition().toPoint()
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._from is not None:
            at = event.globalPosition().toPoint()
            left = self.x()
            self.moved.emit(at.x() - self._from.x())
            self._from += QPoint(self.x() - left, 0)  # what the limits did not allow is not made up for

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._from is not None:
            self._from = None
            self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -_STEP_PX, Qt.Key.Key_Right: _STEP_PX}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.moved.emit(step)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus() or self._from is not None:
            middle = self.width() // 2
            QPainter(self).fillRect(middle - 1, 0, 2, self.height(), self._theme.colour("accent"))
