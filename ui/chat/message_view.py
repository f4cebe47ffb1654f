"""One message in the list: who said it, thoughts folded away, the text, its numbers and actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.protocol import Piece
from ui import theme as measures
from ui.chat.answer_body import AnswerBody
from ui.chat.conversation import Message
from ui.speed import numbers
from ui.theme import Theme, numbers_font
from ui.widgets.cards import ProblemCard
from ui.widgets.quiet_button import QuietButton

_GAP = 8
_PAD = 12
_PAD_BELOW = 8  # the last line's own room below makes it look like the one above
_COPIED_MS = 1500


class MessageView(QWidget):
    """``fit`` lays it out for a width. ``grown``: its height may have changed by itself."""

    grown = Signal()
    selected = Signal()
    again = Signal()
    thoughts_toggled = Signal()

    def __init__(self, theme: Theme, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._theme = theme
        self._is_user = message.role == "user"
        self.setAccessibleName("Your message" if self._is_user else "Answer")
        self._name = QLabel("You" if self._is_user else "Slipstream", self)
        self._name.setProperty("role", "name")
        self.body = AnswerBody(theme, self.font(), plain=self._is_user, parent=self)
        self.body.grown.connect(self.grown)
        self.body.selected.connect(self.selected)
        self._state = QLabel(self)
        self._state.setProperty("role", "small")
        self._state.hide()
        self.thoughts: Thoughts | None = None
        self.footer = Footer(theme, self)
        self.footer.again.connect(self.again)
        self.footer.copy.connect(self._copy)
        self.footer.hide()
        self.card: ProblemCard | None = None
        self._dismissed = False
        self._last = True
        if message.pieces:
            self.add(message.pieces)
        self.refresh()

    # ---- content

    def add(self, pieces: Sequence[Piece]) -> None:
        thoughts = [piece for piece in pieces if piece.reasoning]
        text = [piece for piece in pieces if not piece.reasoning]
        if thoughts and (self.thoughts is not None or any(piece.text.strip() for piece in thoughts)):
            if self.thoughts is None:
                self.thoughts = Thoughts(self._theme, self)
                self.thoughts.grown.connect(self.grown)
                self.thoughts.toggled.connect(self.thoughts_toggled)
                self.thoughts.show()
            self.thoughts.write(thoughts)
        if text and not self._is_user and not self.body.parts():
            text[0] = Piece(text[0].text.lstrip("\n"), text[0].drafter)
        self.body.write(text)

    def refresh(self) -> None:
        """The message's state, numbers or problem have changed."""
        message = self.message
        if not message.in_progress:
            self.body.finish()
        words = {"waiting": "Waiting for the model…", "reading": "Reading the prompt…"}.get(message.state, "")
        if message.state == "stopped":
            words = "Stopped"
        if message.cut_in_reasoning:
            words = "Cut while thinking"
        elif message.cut_by_length and not message.in_progress:
            words = "Ended at the longest allowed answer"
        self._state.setText(words)
        self._state.setVisible(bool(words))
        if self.thoughts is not None:
            self.thoughts.set_state(message.in_progress and not self.body.parts(), message.cut_in_reasoning)
        show_footer = not self._is_user and not message.in_progress
        self.footer.setVisible(show_footer)
        if show_footer:
            self.footer.show_message(message)
        self._refresh_card()

    def _refresh_card(self) -> None:
        problem = None if self._dismissed else self.message.problem
        if problem is None and self.card is not None:
            self.card.hide()
            self.card.deleteLater()
            self.card = None
        elif problem is not None and self.card is None:
            kept = "What was written so far is kept." if self.message.pieces else "Your message is kept."
            self.card = ProblemCard(self._theme, problem, kept, ("retry",), self)
            self.card.chosen.connect(self._act)
            self.card.buttons["retry"].setVisible(self._last)
            self.card.show()

    def _act(self, action: str) -> None:
        if action == "retry":
            self.again.emit()
            return
        self._dismissed = True
        self._refresh_card()
        self.grown.emit()

    def set_last(self, last: bool) -> None:
        """Only the last answer can be given again."""
        self._last = last
        self.footer.again_button.setVisible(last)
        if self.card is not None:
            self.card.buttons["retry"].setVisible(last)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.message.text)

    def recolour(self) -> None:
        self.body.recolour()
        if self.thoughts is not None:
            self.thoughts.recolour()
        self.update()

    # ---- size

    def fit(self, width: int) -> int:
        pad = _PAD if self._is_user else 0
        inner = width - 2 * pad
        y = pad
        name = self._name.sizeHint().height()
        self._name.setGeometry(pad, y, inner, name)
        y += name + 4
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
        if not self.footer.isHidden():
            self.footer.move(pad, y)
            y += self.footer.fit(inner) + _GAP
        height = y - _GAP + (_PAD_BELOW if self._is_user else 0)
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._is_user:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("panel"))
        painter.drawRoundedRect(QRectF(self.rect()), measures.RADIUS, measures.RADIUS)


class Thoughts(QWidget):
    """What the model thought, folded away until somebody wants to read it."""

    grown = Signal()
    toggled = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._unread: list[Piece] = []
        self.body: AnswerBody | None = None
        self.button = QuietButton(theme, "right", "Thoughts", self)
        self.button.setCheckable(True)
        self.button.toggled.connect(self._toggle)
        self.set_state(False, False)
        self.recolour()

    def write(self, pieces: Sequence[Piece]) -> None:
        if self.body is None:  # nothing is laid out while nobody looks
            self._unread += pieces
        else:
            self.body.write(pieces)

    def set_state(self, thinking: bool, cut: bool) -> None:
        words = "Thinking…" if thinking else "Thoughts, cut" if cut else "Thoughts"
        self.button.setText(words)
        self.button.setAccessibleName(words)

    def _toggle(self, shown: bool) -> None:
        if shown and self.body is None:
            self.body = AnswerBody(self._theme, self.font(), parent=self)
            self.body.grown.connect(self.grown)
            self.body.write(self._unread)
            self._unread.clear()
        if self.body is not None:
            self.body.setVisible(shown)
        self.recolour()
        self.toggled.emit()
        self.grown.emit()

    def recolour(self) -> None:
        self.button.show_icon("down" if self.button.isChecked() else "right")
        if self.body is not None:
            self.body.recolour()
        self.update()

    def fit(self, width: int) -> int:
        size = self.button.sizeHint()
        self.button.setGeometry(-6, 0, size.width(), size.height())  # its icon meets the margin
        height = size.height()
        if self.body is not None and self.button.isChecked():
            self.body.move(_PAD, height + 4)
            height += 4 + self.body.fit(width - _PAD)
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.body is not None and self.button.isChecked():
            top = self.button.height() + 4
            QPainter(self).fillRect(0, top, 2, self.height() - top, self._theme.colour("line"))


class Footer(QWidget):
    """The numbers of an answer, each with its explanation, and what can be done with the answer."""

    again = Signal()
    copy = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._labels: list[QLabel] = []
        self.copy_button = QuietButton(theme, "copy", "Copy", self)
        self.copy_button.setAccessibleName("Copy the answer")
        self.copy_button.setToolTip("Copy the answer")
        self.copy_button.clicked.connect(self.copy)
        self.copy_button.clicked.connect(self._copied)
        self.again_button = QuietButton(theme, "again", "Regenerate", self)
        self.again_button.setAccessibleName("Answer again")
        self.again_button.setToolTip("Answer again")
        self.again_button.clicked.connect(self.again)

    def text(self) -> str:
        return "".join(label.text() for label in self._labels)

    def show_message(self, message: Message) -> None:
        for label in self._labels:
            label.deleteLater()
        self._labels.clear()
        self.copy_button.setVisible(bool(message.text))
        if message.stats is None:
            return
        for index, (text, help) in enumerate(numbers.footer(message.stats)):
            label = QLabel(f" · {text}" if index else text, self)
            label.setFont(numbers_font(self.font()))
            label.setProperty("role", "small")
            label.setToolTip(help)
            label.setAccessibleName(f"{text}. {help}")
            label.show()
            self._labels.append(label)

    def _copied(self) -> None:
        self.copy_button.show_icon("check")
        QTimer.singleShot(_COPIED_MS, self, lambda: self.copy_button.show_icon("copy"))

    def fit(self, width: int) -> int:
        buttons = [button for button in (self.copy_button, self.again_button) if not button.isHidden()]
        row = self.again_button.sizeHint().height()
        x = y = 0
        for label in self._labels:
            size = label.sizeHint()
            if x and x + size.width() > width:
                x, y = 0, y + row
            label.setGeometry(x, y, size.width(), row)
            x += size.width()
        needed = sum(button.sizeHint().width() + 4 for button in buttons) - 4
        if x and x + 12 + needed > width:
            x, y = -6, y + row
        elif x:
            x = width - needed
        else:
            x = -6
        if y == 0 and self._labels:
            x += 6  # the last word ends where the column ends
        for button in buttons:
            size = button.sizeHint()
            button.setGeometry(x, y, size.width(), row)
            x += size.width() + 4
        height = y + row
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height
