"""A scrolled area that stays at its end while that grows, until its reader goes elsewhere."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractSlider, QPushButton, QScrollArea, QWidget

from ui.icons import icon
from ui.theme import Theme

_KEYS = {
    Qt.Key.Key_Up: QAbstractSlider.SliderAction.SliderSingleStepSub,
    Qt.Key.Key_PageUp: QAbstractSlider.SliderAction.SliderPageStepSub,
    Qt.Key.Key_Home: QAbstractSlider.SliderAction.SliderToMinimum,
    Qt.Key.Key_Down: QAbstractSlider.SliderAction.SliderSingleStepAdd,
    Qt.Key.Key_PageDown: QAbstractSlider.SliderAction.SliderPageStepAdd,
}


class FollowingArea(QScrollArea):
    """Moving up stops following, the end resumes it; meanwhile a button leads there."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._following = True
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.jump = QPushButton("Jump to latest", self)
        self.jump.setProperty("look", "jump")
        self.jump.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.jump.hide()
        self.jump.clicked.connect(self.follow)
        bar = self.verticalScrollBar()
        bar.actionTriggered.connect(self._bar_moved)
        bar.setSingleStep(24)
        theme.changed.connect(self._recolour_jump)
        self._recolour_jump()

    @property
    def following(self) -> bool:
        return self._following

    def follow(self) -> None:
        """Go to the end and stay there while text comes."""
        self.set_following(True)
        self.to_end()

    # ---- for what is shown in it

    def has_more_below(self) -> bool:
        """The end that can be scrolled to is not the end of all."""
        return False

    def has_more_above(self) -> bool:
        return False

    def reader_moved(self) -> None:
        """Called before a person's own move takes effect."""

    def to_end(self) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def set_following(self, following: bool) -> None:
        self._following = following
        self.jump.setVisible(not following)
        if not following:
            self.jump.raise_()

    def stop_following(self) -> None:
        """Unless there is nowhere to go."""
        if self.verticalScrollBar().maximum() > 0 or self.has_more_above():
            self.set_following(False)

    # ---- what a reader does

    def _bar_moved(self, action: int) -> None:
        """The reader moved the bar itself: down to the end follows again, up stops following."""
        self.reader_moved()
        bar = self.verticalScrollBar()
        if bar.sliderPosition() >= bar.maximum() and not self.has_more_below():
            self.set_following(True)
        elif bar.sliderPosition() < bar.value() or action == QAbstractSlider.SliderAction.SliderMove.value:
            self.stop_following()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # the window makes the text larger or smaller
            return
        self.reader_moved()
        bar = self.verticalScrollBar()
        if event.angleDelta().y() > 0:
            self.stop_following()
        super().wheelEvent(event)
        if event.angleDelta().y() < 0 and bar.value() >= bar.maximum() and not self.has_more_below():
            self.set_following(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        action = _KEYS.get(Qt.Key(event.key()))
        if event.key() == Qt.Key.Key_End:
            self.follow()
        elif action is not None:
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home):
                self.stop_following()
            self.verticalScrollBar().triggerAction(action)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self.jump.sizeHint()
        self.jump.setGeometry(
            (self.width() - size.width()) // 2,
            self.height() - size.height() - 12,
            size.width(),
            size.height(),
        )

    def _recolour_jump(self) -> None:
        self.jump.setIcon(icon("down", self._theme.tokens.text))
