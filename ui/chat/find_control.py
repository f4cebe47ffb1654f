"""Finding a text in the chat that is shown: what is typed, which match is shown, what is marked."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chats.message import Message
from ui.chat.message_list import MessageList, Place
from ui.session import Session
from ui.shell.regions import mark_region
from ui.theme import Theme
from ui.widgets.pace import READABLE_MS, Pace

if TYPE_CHECKING:
    from ui.chat.find_bar import FindBar
    from ui.chat.find_matches import FoundMatches, Match

_SLICE_S = 0.012


class FindControl(QObject):
    """Nothing is built before it is first used, and nothing listens while the bar is closed."""

    closed = Signal()

    def __init__(
        self, theme: Theme, session: Session, messages: MessageList, column: QVBoxLayout, parent: QWidget
    ) -> None:
        """The bar comes to the top of ``column``, which holds the messages."""
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._messages = messages
        self._column = column
        self._side = 0
        self.bar: FindBar | None = None
        self._shown = False
        self._matches: FoundMatches | None = None
        self._current: Match | None = None
        self._start: tuple[int, int] | None = None  # from where the first match is looked for
        self._aim: Match | None = None  # is gone to once its text is built
        self._pace = Pace(self._count, READABLE_MS, self)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._count)
        messages.built.connect(self._go_on)
        messages.left_place.connect(self._forget_aim)

    @property
    def shown(self) -> bool:
        return self._shown

    def fit(self, side: int) -> None:
        self._side = side
        if self.bar is not None:
            self.bar.fit(side)

    # ---- what a person does

    def open(self) -> None:
        """Show the bar, with what was looked for last, or let another text be typed."""
        if not self._shown:
            self._show(True)
        assert self.bar is not None
        self.bar.field.setFocus()
        self.bar.field.selectAll()

    def close(self) -> None:
        if self._shown:
            self._show(False)
            self.closed.emit()

    def next(self) -> None:
        self._step(1)

    def previous(self) -> None:
        self._step(-1)

    def mark(self, message: int, pattern: re.Pattern[str] | None) -> None:
        """Mark what a search over all chats found in one message, and show where it is."""
        from ui.chat.find_matches import Mark, Match

        self._show(False)
        if pattern is not None:
            self._aim = Match(message, False, 0)
            self._messages.mark(Mark(pattern, message, self._aim))
            self._go_on()

    def chat_replaced(self) -> None:
        """Other messages are about to be shown."""
        self._aim = self._current = None
        if self._shown:
            self._mark()
            self._timer.start()  # once they are there
        else:
            self._messages.mark(None)

    # ---- the bar

    def _show(self, shown: bool) -> None:
        if shown == self._shown:
            return
        self._shown = shown
        if self.bar is None:
            self._build()
        assert self.bar is not None
        scroll = self._messages.verticalScrollBar()
        value = scroll.value()
        self.bar.setVisible(shown)
        self._column.activate()
        if not self._messages.following:  # what is read stays where it is on the screen
            scroll.setValue(value + (self.bar.height() if shown else -self.bar.height()))
        session = self._session
        if shown:
            from ui.chat.find_matches import FoundMatches

            self._matches = FoundMatches()
            session.grew.connect(self._pace.ask)
            session.changed.connect(self._message_changed)
            session.added.connect(self._pace.ask)
            session.removed.connect(self._pace.ask)
            self._look_for(self.bar.field.text(), go=False)
        else:
            session.grew.disconnect(self._pace.ask)
            session.changed.disconnect(self._message_changed)
            session.added.disconnect(self._pace.ask)
            session.removed.disconnect(self._pace.ask)
            self._pace.stop()
            self._timer.stop()
            self._matches = self._current = self._start = self._aim = None
            self._messages.mark(None)
            self._messages.resume_following()

    def _build(self) -> None:
        from ui.chat.find_bar import FindBar

        self.bar = FindBar(self._theme)
        self.bar.hide()
        self.bar.fit(self._side)
        self._column.insertWidget(0, self.bar)
        self.bar.typed.connect(self._typed)
        self.bar.stepped.connect(self._step)
        self.bar.closed.connect(self.close)
        mark_region(self.bar, "Find in this chat")

    # ---- matches

    def _typed(self, text: str) -> None:
        if self._shown:
            self._look_for(text, go=True)

    def _look_for(self, text: str, *, go: bool) -> None:
        """Count and mark, and ``go`` to the match that is nearest to the reader."""
        from ui.chat.find_matches import pattern_of

        assert self._matches is not None
        place = self._place() if go else None
        self._matches.look_for(pattern_of(text))
        self._current = self._aim = None
        self._mark()
        self._start = None if place is None else self._match_at(place)
        self._count()

    def _place(self) -> Place | None:
        """Of the match that was gone to last, else of what is read."""
        if self._current is not None:
            view = self._messages.view_with(self._current.message)
            at = view.place_of_match(self._current) if view is not None else None
            return Place(self._current.message, 0 if at is None else at.y())
        return self._messages.top()

    def _match_at(self, place: Place) -> tuple[int, int]:
        """The message there, and the first match in what it says that does not stand above."""
        view = self._messages.view_with(place.message)
        return place.message, 0 if view is None else view.match_below(place.offset)

    def _step(self, step: int) -> None:
        if not self._shown:
            self.open()
            return
        matches = self._matches
        assert matches is not None
        if not matches.total:
            return
        number = matches.number_of(self._current) if self._current is not None else None
        if number is not None:
            number = (number + step) % matches.total
        elif (place := self._messages.top()) is not None:
            number = matches.from_here(*self._match_at(place))
        if number is not None:
            self._start = None
            self._go(matches.at(number))

    def _message_changed(self, message: Message) -> None:
        if self._matches is not None:
            self._matches.forget(message.id)
            self._pace.ask()

    def _count(self) -> None:
        if self._matches is None:
            return
        end = time.monotonic() + _SLICE_S
        complete = self._matches.count(self._messages.messages(), lambda: time.monotonic() > end)
        if complete:
            self._timer.stop()
        else:
            self._timer.start()
        if self._start is not None:
            number = self._matches.from_here(*self._start)
            if number is not None:
                self._start = None
                self._go(self._matches.at(number))
            elif complete:
                self._start = None
        self._say()

    def _say(self) -> None:
        assert self.bar is not None
        matches = self._matches
        if matches is None or matches.pattern is None:
            self.bar.show_count("", found=False)
            return
        total = matches.total
        number = matches.number_of(self._current) if self._current is not None else None
        if not matches.complete:
            words = "Looking…"
        elif not total:
            words = "Nothing found"
        elif number is None:
            words = f"{total} found"
        else:
            words = f"{number + 1} of {total}"
        self.bar.show_count(words, found=bool(total))

    def _mark(self) -> None:
        from ui.chat.find_matches import Mark

        pattern = self._matches.pattern if self._matches is not None else None
        self._messages.mark(None if pattern is None else Mark(pattern, None, self._current))

    # ---- going there

    def _go(self, match: Match) -> None:
        self._current = self._aim = match
        self._mark()
        if self._messages.view_with(match.message) is None:
            self._messages.go_to(Place(match.message, 0))
        self._go_on()
        self._say()

    def _go_on(self) -> None:
        """To the match that is gone to, if its text is built by now."""
        if (match := self._aim) is None:
            return
        view = self._messages.view_with(match.message)
        place = view.place_of_match(match) if view is not None else None
        if place is not None:
            self._aim = None
            self._messages.reveal(Place(match.message, place.y()), place.height())
        elif view is None or not view.building:
            self._aim = None

    def _forget_aim(self) -> None:
        """The reader went elsewhere."""
        self._aim = None
