"""The scrolling column of messages: follows new text only while the reader is at its end."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chats.message import Message
from app.protocol import Piece
from ui import theme as measures
from ui.chat.following_area import FollowingArea
from ui.theme import Theme
from ui.widgets.cards import ProblemCard

if TYPE_CHECKING:
    from ui.chat.find_matches import Mark
    from ui.chat.message_view import MessageView

_GAP = 24
_MARGIN = 16
_TOP = 20
# Messages above and below are built when the reader comes this near to them.
_NEAR = 800
_SLICE_S = 0.025
_KEPT = 40
_SEEN = 24  # what was found has so much room above and below
_IDLE_MS = 2000  # after the start, when nobody waits for anything


class Place(Struct, frozen=True):
    """Where a reader is: a message by its id, and by how many pixels its top is above that of the
    view."""

    message: int
    offset: int


def _load_early() -> None:
    """What the first message and the first formula need; the window itself stands without."""
    from ui.chat import latex_text, message_view  # noqa: F401

    latex_text.load()


def _only_version(message: Message) -> tuple[int, int]:
    return 0, 1


class MessageList(FollowingArea):
    """Shows messages, of which only those near the reader are built. ``message_acted`` carries a
    Message and what was asked for it, ``switched`` one and the way to another version of it;
    ``acted`` what was chosen on the card at the end."""

    message_acted = Signal(object, str)
    switched = Signal(object, int)
    acted = Signal(str)
    built = Signal()  # some of what is near the reader, by itself
    left_place = Signal()  # the reader went elsewhere

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._versions: Callable[[Message], tuple[int, int]] = _only_version
        self._older: list[Message] = []
        self._views: list[MessageView] = []
        self._newer: list[Message] = []  # the next one last
        self._tops: list[int] = []
        self._card: ProblemCard | None = None
        self._awaited: Place | None = None  # what was opened, while text near it is still being built
        self._follows_at_end = True  # where what was opened is at the end as well
        self._mark: Mark | None = None
        self._drafts_shown = False
        self._still = False
        self._column = QWidget(self)
        self._column.setObjectName("messages")
        self.setWidget(self._column)
        self.setAccessibleName("Messages")
        self.verticalScrollBar().valueChanged.connect(self._maybe_build)
        QTimer.singleShot(_IDLE_MS, self, _load_early)
        self._gone: list[MessageView] = []
        self._sweep_timer = QTimer(self)
        self._sweep_timer.setInterval(0)
        self._sweep_timer.timeout.connect(self._sweep)
        self._build_timer = QTimer(self)
        self._build_timer.setSingleShot(True)
        self._build_timer.setInterval(0)
        self._build_timer.timeout.connect(self._build_near)
        theme.changed.connect(self._recolour)

    # ---- content

    def set_versions(self, versions: Callable[[Message], tuple[int, int]]) -> None:
        """``versions`` says which version of its turn a message is, from 0, and how many there are."""
        self._versions = versions

    def show_messages(self, messages: Sequence[Message], place: Place | None = None) -> None:
        """Replace all messages; only what can be seen is built at once: at ``place``, or at the end."""
        if self._still:
            return
        for view in self._views:
            self._drop(view)
        self._views.clear()
        self._tops.clear()
        self._older, self._newer = list(messages), []
        self._awaited = None
        self._follows_at_end = True
        at = None
        if place is not None:
            at = next((i for i, message in enumerate(messages) if message.id == place.message), None)
        if at is None or place is None:
            self.set_following(True)
            self._build_older(until_full=True)
            return
        self.set_following(False)
        self._older, self._newer = list(messages[:at]), list(reversed(messages[at:]))
        self._awaited = place
        self._build_newer(until_full=True)
        self._build_older(until_full=True, least=-place.offset)
        self._maybe_build()
        self._hold_place()

    def _hold_place(self) -> None:
        """What was opened stays where it is until all that is near it is built."""
        if (place := self._awaited) is None:
            return
        if not (self._build_timer.isActive() or any(view.building for view in self._views)):
            self._awaited = None
        self._lay_out(len(self._views))
        self._show_place(place)
        bar = self.verticalScrollBar()
        at_end = not self._newer and bar.value() >= bar.maximum()
        if self._awaited is None and at_end and self._follows_at_end:
            self.set_following(True)

    def _show_place(self, place: Place) -> None:
        for view, top in zip(self._views, self._tops, strict=True):
            if view.message.id == place.message:
                offset = place.offset
                if self._awaited is None and view is not self._views[-1]:
                    offset = min(offset, view.height())  # it was higher when its text was narrower
                self.verticalScrollBar().setValue(top + offset)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """What is added, removed or replaced meanwhile is not built: everything is shown anew after it."""
        self._still = True
        try:
            yield
        finally:
            self._still = False

    def place(self) -> Place | None:
        """Where the reader is; None at the end."""
        return None if self.following else self.top()

    def top(self) -> Place | None:
        """What stands at the top of what is seen; None: nothing. Between two messages it is the lower."""
        if not self._views:
            return None
        value = self.verticalScrollBar().value()
        index = max(0, bisect.bisect_right(self._tops, value) - 1)
        below = value - self._tops[index] >= self._views[index].height()
        if below and index + 1 < len(self._views):
            index += 1
        return Place(self._views[index].message.id, value - self._tops[index])

    def go_to(self, place: Place) -> None:
        """Show it and stay there, whatever is written below."""
        if all(view.message.id != place.message for view in self._views):
            self.show_messages(self.messages(), place)
        self._follows_at_end = False
        self.set_following(False)
        self._awaited = place
        self._maybe_build()
        self._hold_place()

    def reveal(self, place: Place, height: int) -> None:
        """Go to what stands at ``place``, ``height`` pixels high, if it cannot be seen; then it has room
        above. New text is not followed any more."""
        bar = self.verticalScrollBar()
        top = self._top_of(place.message)
        room = self.viewport().height()
        above = None if top is None else top + place.offset - bar.value()
        if above is not None and _SEEN <= above <= room - height - _SEEN:
            self.stop_following()
        else:
            self.go_to(Place(place.message, place.offset - room // 3))

    def resume_following(self) -> None:
        """If the reader is at the end."""
        bar = self.verticalScrollBar()
        if not self._newer and bar.value() >= bar.maximum():
            self.set_following(True)

    def _top_of(self, message: int) -> int | None:
        views = zip(self._views, self._tops, strict=True)
        return next((top for view, top in views if view.message.id == message), None)

    def views(self) -> tuple[MessageView, ...]:
        return tuple(self._views)

    def view_with(self, id: int) -> MessageView | None:
        """Of the message with this id, if it is built."""
        return next((view for view in self._views if view.message.id == id), None)

    def view_of(self, message: Message) -> MessageView | None:
        return next((view for view in reversed(self._views) if view.message is message), None)

    def add(self, message: Message) -> None:
        """At the end. One's own message is gone to; others only when the reader is there."""
        if self._still:
            return
        if message.role == "user" and self._newer:
            self._go_to_end()
        elif message.role == "user":
            self.set_following(True)
        if self._newer:
            self._newer.insert(0, message)
            return
        if self.following:
            self._put_away_above()
        if self._views:
            self._views[-1].set_last(False)
            self._lay_out(len(self._views) - 1)
        self._views.append(self._make(message, last=True))
        self._lay_out(len(self._views) - 1)

    def remove(self, message: Message) -> None:
        if self._still:
            return
        view = self.view_of(message)
        if view is None:
            self._older = [other for other in self._older if other is not message]
            self._newer = [other for other in self._newer if other is not message]
            return
        at = self._views.index(view)
        self._views.remove(view)
        self._drop(view)
        if self._views and not self._newer:
            self._views[-1].set_last(True)
        self._lay_out(max(0, at - 1))
        self._maybe_build()

    def grow(self, message: Message, pieces: Sequence[Piece]) -> None:
        view = self.view_of(message)
        if view is not None:
            view.add(pieces)
            self._lay_out(self._views.index(view, max(0, len(self._views) - 2)))

    def refresh(self, message: Message) -> None:
        view = self.view_of(message)
        if view is not None:
            view.set_place(*self._versions(message))
            view.refresh()
            self._lay_out(self._views.index(view))

    def show_drafts(self, shown: bool) -> None:
        """Underline what was drafted, by drafter."""
        if shown != self._drafts_shown:
            self._drafts_shown = shown
            for view in self._views:
                view.show_drafts(shown)
            self._lay_out(0)

    def mark(self, mark: Mark | None) -> None:
        """Mark what was looked for, in what is built and in what will be; None takes the marks away."""
        if mark is None and self._mark is None:
            return
        self._mark = mark
        for view in self._views:
            view.mark(mark)

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
            if self._newer:
                self._go_to_end()
            self.set_following(True)
        self._lay_out(len(self._views))

    def problem_card(self) -> ProblemCard | None:
        return self._card

    def _make(self, message: Message, last: bool = False) -> MessageView:
        from ui.chat.message_view import MessageView  # and with it what reads Markdown and code

        view = MessageView(self._theme, message, self._column)
        view.set_last(last)
        view.set_place(*self._versions(message))
        view.show_drafts(self._drafts_shown)
        if self._mark is not None:
            view.mark(self._mark)
        view.grown.connect(lambda: self._grown(view))
        view.selected.connect(self.stop_following)
        view.thoughts_toggled.connect(self.stop_following)
        view.acted.connect(lambda action: self.message_acted.emit(message, action))
        view.switched.connect(lambda step: self.switched.emit(message, step))
        view.show()
        return view

    def _drop(self, view: MessageView) -> None:
        """Out of sight now; a long answer's parts take a while to go, so each has a turn for itself."""
        view.hide()
        self._gone.append(view)
        self._sweep_timer.start()

    def _sweep(self) -> None:
        if self._gone:
            self._gone.pop().deleteLater()
        else:
            self._sweep_timer.stop()

    def _grown(self, view: MessageView) -> None:
        if view not in self._views:
            return
        index = self._views.index(view)
        bar = self.verticalScrollBar()
        before = view.height()
        above = not self.following and self._tops[index] + before <= bar.value()
        self._lay_out(index)
        if self._awaited is not None:
            self._hold_place()
        elif above:  # what is read stays where it is
            bar.setValue(bar.value() + view.height() - before)
        self.built.emit()

    def _recolour(self) -> None:
        """The theme's colours are others now, or its text has another size."""
        place = self.place()
        for view in self._views:
            view.recolour()
        # Buttons learn of another size of text only after this.
        QTimer.singleShot(0, self, lambda: self._lay_out_all(place))

    # ---- messages above and below on demand

    def _build_near(self) -> None:
        if self._newer and self._room_below() < _NEAR:
            self._build_newer()
        elif self._older:
            self._build_older()
        self._hold_place()

    def _build_older(self, until_full: bool = False, least: int = 0) -> None:
        """Build upwards from the oldest that is shown, for as long as a frame allows, but ``least``
        pixels at least."""
        if not self._older:
            return
        bar = self.verticalScrollBar()
        end = time.monotonic() + _SLICE_S
        from_bottom = self._height() - bar.value()
        added: list[MessageView] = []
        width = self._measure()
        height = 0
        at_end = not self._views and not self._newer
        wanted = self.viewport().height() + _NEAR - (0 if at_end else max(0, bar.value()))
        while self._older and (height < wanted or not self._views):
            if added and height >= least and time.monotonic() > end:
                break
            view = self._make(self._older.pop(), last=at_end and not added)
            height += view.fit(width) + _GAP
            added.insert(0, view)
            if until_full and at_end and height >= wanted:
                break
        self._views[:0] = added
        self._tops.clear()
        self._lay_out(0)
        if not self.following:
            bar.setValue(self._height() - from_bottom)
        self._put_away_below()
        self._maybe_build()

    def _build_newer(self, until_full: bool = False) -> None:
        """Build downwards from the newest that is shown, for as long as a frame allows."""
        end = time.monotonic() + _SLICE_S
        width = self._measure()
        first = len(self._views)
        height = 0
        wanted = self.viewport().height() + _NEAR
        if not until_full:
            wanted -= self._room_below()
        while self._newer and height < wanted and (height == 0 or time.monotonic() < end):
            view = self._make_next()
            height += view.fit(width) + _GAP
            self._views.append(view)
        self._lay_out(first)
        self._put_away_above()
        self._maybe_build()

    def _make_next(self) -> MessageView:
        message = self._newer.pop()
        return self._make(message, last=not self._newer)

    def _room_below(self) -> int:
        """How far the reader is above the end of what is built."""
        bar = self.verticalScrollBar()
        return bar.maximum() - bar.value()

    def _height(self) -> int:
        return self._column.height()

    def _put_away_above(self) -> None:
        """Give back the memory of messages far above, which can be built again."""
        spare = len(self._views) - _KEPT
        if not self.following:
            far = self.verticalScrollBar().value() - 3 * _NEAR
            spare = min(spare, bisect.bisect_left(self._tops, far) - 1)
        if spare <= 0:
            return
        bar = self.verticalScrollBar()
        from_bottom = self._height() - bar.value()
        gone, self._views = self._views[:spare], self._views[spare:]
        self._older += [view.message for view in gone]
        for view in gone:
            self._drop(view)
        self._tops.clear()
        self._lay_out(0)
        if not self.following:
            bar.setValue(self._height() - from_bottom)

    def _put_away_below(self) -> None:
        """The same for messages far below, while the reader goes up."""
        if self.following or len(self._views) <= _KEPT:
            return
        far = self.verticalScrollBar().value() + self.viewport().height() + 3 * _NEAR
        keep = max(_KEPT, bisect.bisect_right(self._tops, far))
        gone = self._views[keep:]
        if any(view.message.in_progress for view in gone) or not gone:
            return
        del self._views[keep:]
        self._newer += [view.message for view in reversed(gone)]
        for view in gone:
            self._drop(view)
        self._lay_out(keep)

    def _go_to_end(self) -> None:
        """Build the end anew instead of all that is between."""
        self.show_messages(self.messages())

    def messages(self) -> list[Message]:
        """All of them, built or not."""
        return [*self._older, *(view.message for view in self._views), *reversed(self._newer)]

    def _maybe_build(self) -> None:
        above = self._older and self.verticalScrollBar().value() < _NEAR
        if above or (self._newer and self._room_below() < _NEAR):
            self._build_timer.start()

    # ---- size

    def _measure(self) -> int:
        return max(120, min(measures.MEASURE, self.width() - 2 * _MARGIN))

    def _lay_out_all(self, place: Place | None) -> None:
        """Anew, with the reader at ``place``."""
        self._tops.clear()
        self._lay_out(0)
        if place is not None:
            self._show_place(place)

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
        if self._awaited is not None:  # room to scroll to it, though what is below is not there yet
            for view, top in zip(self._views, self._tops, strict=True):
                if view.message.id == self._awaited.message:
                    y = max(y, top + self._awaited.offset + self.viewport().height())
        size = (self.viewport().width(), max(y, self.viewport().height()))
        if (self._column.width(), self._column.height()) != size:
            self._column.resize(*size)
        if self.following:
            self.to_end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out_all(self.place() if event.size().width() != event.oldSize().width() else None)
        self._maybe_build()

    # ---- following

    def follow(self) -> None:
        """Go to the end and stay there while text comes."""
        if self._newer:
            self._go_to_end()
        super().follow()

    def has_more_below(self) -> bool:
        return bool(self._newer)

    def has_more_above(self) -> bool:
        return bool(self._older)

    def reader_moved(self) -> None:
        self._awaited = None
        self.left_place.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Home and self._older:
            messages = self.messages()
            self.show_messages(messages, Place(messages[0].id, -_TOP))
        else:
            super().keyPressEvent(event)
