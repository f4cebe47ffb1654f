"""One message in the list: who said it, thoughts folded away, the text, its numbers and actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.chats.message import Message
from app.protocol import Piece
from ui import theme as measures
from ui.chat.answer_body import AnswerBody
from ui.chat.branch_switcher import BranchSwitcher
from ui.chat.message_footer import CopyButton, MessageFooter, MoreButton
from ui.chat.thoughts import Thoughts
from ui.theme import Theme
from ui.widgets.cards import ProblemCard
from ui.widgets.quiet_button import QuietButton

if TYPE_CHECKING:
    from ui.chat.find_matches import Mark, Match

_GAP = 8
_PAD = 12
_PAD_ABOVE = 8
_PAD_BELOW = 8  # the last line's own room below makes it look like the one above
_STATES = {
    "waiting": "Waiting for the model…",
    "reading": "Reading the prompt…",
    "stopped": "Stopped",
    "interrupted": "Slipstream ended while this was being written",
}


class MessageView(QWidget):
    """``fit`` lays it out for a width. ``grown``: its height may have changed by itself. ``acted``
    carries what was asked for: regenerate, continue, edit or delete; ``switched`` the way to another
    version, -1 or 1."""

    grown = Signal()
    selected = Signal()
    acted = Signal(str)
    switched = Signal(int)
    thoughts_toggled = Signal()

    def __init__(self, theme: Theme, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._theme = theme
        self._is_user = message.role == "user"
        self.setAccessibleName("Your message" if self._is_user else "Answer")
        self._name = QLabel("You" if self._is_user else "Slipstream", self)
        self._name.setProperty("role", "name")
        self.switcher = BranchSwitcher(theme, self)
        self.switcher.asked.connect(self.switched)
        self._drafts_shown = False
        self.body = self._new_body()
        self._state = QLabel(self)
        self._state.setProperty("role", "small")
        self._state.hide()
        self.thoughts: Thoughts | None = None
        self.footer: MessageFooter | None = None
        self.tools: tuple[QuietButton, ...] = ()
        if self._is_user:
            self._add_tools()
        self.card: ProblemCard | None = None
        self._dismissed: str | None = None
        self._last = True
        self._head: tuple[int, int] | None = None  # width and height of the first line, as it is laid out
        self._finished = False
        self._mark: Mark | None = None
        if message.pieces:
            self.add(message.pieces)
        self.refresh()

    def _new_body(self) -> AnswerBody:
        body = AnswerBody(self._theme, self.font(), plain=self._is_user, parent=self)
        body.show_drafters(self._drafts_shown)
        body.grown.connect(self.grown)
        body.selected.connect(self.selected)
        return body

    def _add_tools(self) -> None:
        """What can be done with a question stands in the line of its name."""
        edit = QuietButton(self._theme, "edit", "", self)
        edit.setAccessibleName("Edit your message")
        edit.setToolTip("Edit; the message as it is now is kept as another version")
        edit.clicked.connect(lambda: self.acted.emit("edit"))
        copy = CopyButton(self._theme, "", "Copy your message", self)
        copy.clicked.connect(self._copy)
        more = MoreButton(self._theme, self)
        more.chosen.connect(self.acted)
        more.offer((("regenerate", "Answer again"), ("delete", "Delete from here on")))
        self.tools = (edit, copy, more)

    # ---- content

    def add(self, pieces: Sequence[Piece]) -> None:
        thoughts = [piece for piece in pieces if piece.reasoning]
        text = [piece for piece in pieces if not piece.reasoning]
        if thoughts and (self.thoughts is not None or any(piece.text.strip() for piece in thoughts)):
            if self.thoughts is None:
                self.thoughts = Thoughts(self._theme, self)
                self.thoughts.grown.connect(self.grown)
                self.thoughts.toggled.connect(self.thoughts_toggled)
                self.thoughts.show_drafters(self._drafts_shown)
                self.mark(self._mark)
                self.thoughts.show()
            self.thoughts.write(thoughts)
        self._write(text)

    def refresh(self) -> None:
        """The message's state, numbers or problem have changed."""
        message = self.message
        if message.in_progress and self._finished:
            self._begin_again()
        elif not message.in_progress:
            self.body.finish()
        self._finished = not message.in_progress
        words = _STATES.get(message.state, "")
        if message.cut_in_reasoning:
            words = "Cut while thinking"
        elif message.cut_by_length and not message.in_progress:
            words = "Ended at the longest allowed answer"
        elif message.edited and not words:
            words = "Edited"
        self._state.setText(words)
        self._state.setVisible(bool(words))
        if self.thoughts is not None:
            self.thoughts.set_state(message.in_progress and not self.body.parts(), message.cut_in_reasoning)
        self._refresh_footer()
        self._refresh_card()

    def _begin_again(self) -> None:
        """An answer that goes on: what was closed at its end is open again."""
        old, self.body = self.body, self._new_body()
        old.hide()
        old.deleteLater()
        self.mark(self._mark)
        self._write([piece for piece in self.message.pieces if not piece.reasoning])
        self.body.show()

    def _write(self, text: list[Piece]) -> None:
        if text and not self._is_user and not self.body.parts():
            text[0] = Piece(text[0].text.lstrip("\n"), text[0].drafter)
        self.body.write(text)

    def _refresh_footer(self) -> None:
        if self._is_user:
            return
        shown = not self.message.in_progress
        if shown:
            if self.footer is None:
                self.footer = MessageFooter(self._theme, self)
                self.footer.acted.connect(self._act)
            self.footer.show_message(self.message, self._last)
        if self.footer is not None:
            self.footer.setVisible(shown)

    def _refresh_card(self) -> None:
        problem = self.message.problem
        if problem is None or problem == self._dismissed:
            if self.card is not None:
                self.card.hide()
                self.card.deleteLater()
                self.card = None
            return
        if self.card is None:
            kept = "What was written so far is kept." if self.message.pieces else "Your message is kept."
            actions = ("continue", "retry") if self.message.can_continue else ("retry",)
            self.card = ProblemCard(self._theme, problem, kept, actions, self)
            self.card.chosen.connect(self._act)
            self.card.show()
        for name in ("continue", "retry"):
            if name in self.card.buttons:
                self.card.buttons[name].setVisible(self._last)

    def _act(self, action: str) -> None:
        match action:
            case "copy":
                self._copy()
            case "retry":
                self.acted.emit("regenerate")
            case "dismiss":
                self._dismissed = self.message.problem
                self._refresh_card()
                self.grown.emit()
            case _:
                self.acted.emit(action)

    def set_last(self, last: bool) -> None:
        """Only the last answer can go on."""
        if last != self._last:
            self._last = last
            self._refresh_footer()
            self._refresh_card()

    def set_place(self, index: int, count: int) -> None:
        """Which version of its turn it is, from 0, and how many there are."""
        self.switcher.show_place(index, count)
        self._head = None

    # ---- what was looked for

    def mark(self, mark: Mark | None) -> None:
        """Mark what was looked for, as far as ``mark`` is for this message."""
        self._mark = mark
        id = self.message.id
        if mark is None or not mark.is_for(id):
            self.body.mark(None)
            if self.thoughts is not None:
                self.thoughts.mark(None)
            return
        self.body.mark(mark.pattern, mark.current_in(id, False))
        if self.thoughts is not None:
            self.thoughts.mark(mark.pattern, mark.current_in(id, True))

    @property
    def building(self) -> bool:
        """Some of its text is still to come, without a call from outside."""
        unfolded = self.thoughts.body if self.thoughts is not None else None
        return self.body.building or (unfolded is not None and unfolded.building)

    def place_of_match(self, match: Match) -> QRect | None:
        """Where it begins, in here; None where it is not there, or not yet. Thoughts are unfolded."""
        if not match.thoughts:
            body = self.body
        elif self.thoughts is not None:
            body = self.thoughts.unfold()
        else:
            return None
        number = match.number
        if not self.building:  # what is shown may hold fewer, where an answer was made to do harm
            number = min(number, body.match_count() - 1)
        place = body.place_of_match(number)
        return None if place is None else place.translated(body.mapTo(self, body.rect().topLeft()))

    def match_below(self, y: int) -> int:
        """The number of the first match in what it says at or below ``y``."""
        return self.body.match_below(y - self.body.y())

    def show_drafts(self, shown: bool) -> None:
        """Underline what was drafted, by drafter."""
        self._drafts_shown = shown
        self.body.show_drafters(shown)
        if self.thoughts is not None:
            self.thoughts.show_drafters(shown)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.message.text)

    def recolour(self) -> None:
        self.body.recolour()
        if self.thoughts is not None:
            self.thoughts.recolour()
        if self.footer is not None:
            self.footer.resize_text()
        self.switcher.resize_text()
        self._head = None
        self.update()

    # ---- size

    def fit(self, width: int) -> int:
        pad = _PAD if self._is_user else 0
        inner = width - 2 * pad
        y = self._fit_head(pad, inner)
        if self.thoughts is not None:
            self.thoughts.move(pad, y)
            y += self.thoughts.fit(inner) + _GAP
        self.body.move(pad, y)
        body = self.body.fit(inner)
        y += body + (_GAP if body else 0)
        if not self._state.isHidden():
            height = self._state.sizeHint().height()
            self._state.setGeometry(pad, y, inner, height)
            y += height + _GAP
        if self.card is not None:
            self.card.move(pad, y)
            y += self.card.fit(inner) + _GAP
        if self.footer is not None and not self.footer.isHidden():
            self.footer.move(pad, y)
            y += self.footer.fit(inner) + _GAP
        height = y - _GAP + (_PAD_BELOW if self._is_user else 0)
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height

    def _fit_head(self, pad: int, inner: int) -> int:
        """The line of the name; returns where it ends. Text that comes does not change it."""
        if self._head is None or self._head[0] != inner:
            top = _PAD_ABOVE if self._is_user else 0
            name = self._name.sizeHint()
            row = max(name.height(), self.switcher.sizeHint().height())
            self._name.setGeometry(pad, top, min(inner, name.width()), row)
            self._fit_tools(pad + inner, top, row)
            self._head = (inner, top + row)
        return self._head[1]

    def _fit_tools(self, right: int, y: int, height: int) -> None:
        """In the line of the name, from the right."""
        right += 6  # the last icon ends where the text ends
        for tool in reversed(self.tools):
            width = tool.sizeHint().width()
            right -= width
            tool.setGeometry(right, y, width, height)
        if not self.switcher.isHidden():
            width = self.switcher.sizeHint().width()
            self.switcher.setGeometry(right - width - (4 if self.tools else 0), y, width, height)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._is_user:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("panel"))
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(area, measures.RADIUS, measures.RADIUS)
