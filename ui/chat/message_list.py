"""The scrolling column of messages: follows new text only while the reader is at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractSlider, QPushButton, QScrollArea, QWidget

from app.protocol import Piece
from ui import theme as measures
from ui.chat.conversation import Message
from ui.chat.message_view import MessageView
from ui.icons import icon
from ui.theme import Theme
from ui.widgets.cards import ProblemCard

_GAP = 24
_MARGIN = 16
_TOP = 20
# Older messages are built when the reader comes this near to them.
_NEAR_TOP = 800
_SLICE_S = 0.025
_KEPT = 40


class MessageList(QScrollArea):
    """Shows ``messages``, the newest first built. ``again`` asks for the last answer once more,
    ``acted`` carries what was chosen on the card at the end."""

    again = Signal()
    acted = Signal(str)
    following_changed = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._older: list[Message] = []
        self._views: list[MessageView] = []
        self._tops: list[int] = []
        self._card: ProblemCard | None = None
        self._following = True
        self._column = QWidget(self)
        self._column.setObjectName("column")
        self.setWidget(self._column)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Messages")
        self.jump = QPushButton("Jump to latest", self)
        self.jump.setProperty("look", "jump")
        self.jump.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.jump.hide()
        self.jump.clicked.connect(self.follow)
        bar = self.verticalScrollBar()
        bar.actionTriggered.connect(self._bar_moved)
        bar.valueChanged.connect(self._scrolled)
        bar.setSingleStep(24)
        self._older_timer = QTimer(self)
        self._older_timer.setSingleShot(True)
        self._older_timer.setInterval(0)
        self._older_timer.timeout.connect(self._build_older)
        theme.changed.connect(self._recolour)
        self._recolour()

    # ---- content

    def show_messages(self, messages: Sequence[Message]) -> None:
        """Replace everything; only what can be seen at the end is built at once."""
        for view in self._views:
            self._drop(view)
        self._views.clear()
        self._tops.clear()
        self.set_problem(None)
        self._older = list(messages)
        self._set_following(True)
        self._build_older(until_full=True)

    def views(self) -> tuple[MessageView, ...]:
        return tuple(self._views)

    def view_of(self, message: Message) -> MessageView | None:
        return next((view for view in reversed(self._views) if view.message is message), None)

    def add(self, message: Message) -> None:
        if message.role == "user":
            self._set_following(True)
        if self._following:
            self._put_away()
        if self._views:
            self._views[-1].set_last(False)
            self._lay_out(len(self._views) - 1)
        self._views.append(self._make(message))
        self._lay_out(len(self._views) - 1)

    def remove(self, message: Message) -> None:
        view = self.view_of(message)
        if view is None:
            self._older = [older for older in self._older if older is not message]
            return
        at = self._views.index(view)
        self._views.remove(view)
        self._drop(view)
        if self._views:
            self._views[-1].set_last(True)
        self._lay_out(max(0, at - 1))

    def grow(self, message: Message, pieces: Sequence[Piece]) -> None:
        view = self.view_of(message)
        if view is not None:
            view.add(pieces)
            self._lay_out(self._views.index(view, max(0, len(self._views) - 2)))

    def refresh(self, message: Message) -> None:
        view = self.view_of(message)
        if view is not None:
            view.refresh()
            self._lay_out(self._views.index(view))

    def set_problem(self, card: ProblemCard | None) -> None:
        """A card after the last message; None takes it away."""
        if self._card is not None:
            self._card.hide()
            self._card.deleteLater()
        self._card = card
        if card is not None:
            card.setParent(self._column)
            card.chosen.connect(self.acted)
            card.show()
            self._set_following(True)
        self._lay_out(len(self._views))

    def problem_card(self) -> ProblemCard | None:
        return self._card

    def _make(self, message: Message) -> MessageView:
        view = MessageView(self._theme, message, self._column)
        view.grown.connect(lambda: self._grown(view))
        view.selected.connect(self._stop_following)
        view.thoughts_toggled.connect(self._stop_following)
        view.again.connect(self.again)
        view.show()
        return view

    def _drop(self, view: MessageView) -> None:
        view.hide()
        view.setParent(None)
        view.deleteLater()

    def _grown(self, view: MessageView) -> None:
        if view in self._views:
            self._lay_out(self._views.index(view))

    def _recolour(self) -> None:
        self.jump.setIcon(icon("down", self._theme.tokens.text))
        for view in self._views:
            view.recolour()

    # ---- older messages on demand

    def _build_older(self, until_full: bool = False) -> None:
        """Build upwards from the oldest that is shown, for as long as a frame allows."""
        if not self._older:
            return
        bar = self.verticalScrollBar()
        end = time.monotonic() + _SLICE_S
        from_bottom = bar.maximum() - bar.value()
        added: list[MessageView] = []
        width = self._measure()
        height = 0
        wanted = self.viewport().height() + _NEAR_TOP - (0 if until_full else max(0, bar.value()))
        while self._older and (height < wanted or not self._views) and (not added or time.monotonic() < end):
            view = self._make(self._older.pop())
            view.set_last(not self._views and not added)
            height += view.fit(width) + _GAP
            added.insert(0, view)
            if until_full and not self._views and height >= wanted:
                break
        self._views[:0] = added
        self._tops.clear()
        self._lay_out(0)
        if not self._following:
            bar.setValue(bar.maximum() - from_bottom)
        self._maybe_older()

    def _put_away(self) -> None:
        """Give back the memory of messages far above, which can be built again."""
        spare = self._views[:-_KEPT]
        if spare:
            self._older += [view.message for view in spare]
            del self._views[: len(spare)]
            for view in spare:
                self._drop(view)
            self._tops.clear()
            self._lay_out(0)

    def _maybe_older(self) -> None:
        if self._older and self.verticalScrollBar().value() < _NEAR_TOP:
            self._older_timer.start()

    # ---- size

    def _measure(self) -> int:
        return max(120, min(measures.MEASURE, self.width() - 2 * _MARGIN))

    def _lay_out(self, first: int) -> None:
        """Place the views from ``first`` on; what is above does not move."""
        width = self._measure()
        x = max(_MARGIN, (self.width() - width) // 2)  # whether or not the bar takes room
        first = min(first, len(self._tops))
        del self._tops[first:]
        y = _TOP
        if first:
            y = self._tops[-1] + self._views[first - 1].height() + _GAP
        for view in self._views[first:]:
            height = view.fit(width)
            view.move(x, y)
            self._tops.append(y)
            y += height + _GAP
        if self._card is not None:
            height = self._card.fit(width)
            self._card.move(x, y)
            y += height + _GAP
        size = (self.viewport().width(), max(y, self.viewport().height()))
        if (self._column.width(), self._column.height()) != size:
            self._column.resize(*size)
        if self._following:
            self._to_end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._tops.clear()
        self._lay_out(0)
        self._maybe_older()
        size = self.jump.sizeHint()
        self.jump.setGeometry(
            (self.width() - size.width()) // 2,
            self.height() - size.height() - 12,
            size.width(),
            size.height(),
        )

    # ---- following

    @property
    def following(self) -> bool:
        return self._following

    def follow(self) -> None:
        """Go to the end and stay there while text comes."""
        self._set_following(True)
        self._to_end()

    def _to_end(self) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.following_changed.emit(following)
        self.jump.setVisible(not following)
        if not following:
            self.jump.raise_()

    def _stop_following(self) -> None:
        if self.verticalScrollBar().maximum() > 0:
            self._set_following(False)

    def _scrolled(self) -> None:
        self._maybe_older()

    def _bar_moved(self, action: int) -> None:
        """The reader moved the bar itself: down to the end follows again, up stops following."""
        bar = self.verticalScrollBar()
        if bar.sliderPosition() >= bar.maximum():
            self._set_following(True)
        elif bar.sliderPosition() < bar.value() or action == QAbstractSlider.SliderAction.SliderMove.value:
            self._stop_following()

    def wheelEvent(self, event: QWheelEvent) -> None:
        bar = self.verticalScrollBar()
        if event.angleDelta().y() > 0:
            self._stop_following()
        super().wheelEvent(event)
        if event.angleDelta().y() < 0 and bar.value() >= bar.maximum():
            self._set_following(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        action = {
            Qt.Key.Key_Up: QAbstractSlider.SliderAction.SliderSingleStepSub,
            Qt.Key.Key_PageUp: QAbstractSlider.SliderAction.SliderPageStepSub,
            Qt.Key.Key_Home: QAbstractSlider.SliderAction.SliderToMinimum,
            Qt.Key.Key_Down: QAbstractSlider.SliderAction.SliderSingleStepAdd,
            Qt.Key.Key_PageDown: QAbstractSlider.SliderAction.SliderPageStepAdd,
        }.get(Qt.Key(event.key()))
        if event.key() == Qt.Key.Key_End:
            self.follow()
        elif action is not None:
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home):
                self._stop_following()
            bar.triggerAction(action)
        else:
            super().keyPressEvent(event)
