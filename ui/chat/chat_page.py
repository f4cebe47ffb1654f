"""The chat page: header, messages, composer and strip around the session's chat."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.protocol import Piece
from ui import theme as measures
from ui.chat.composer import Composer
from ui.chat.conversation import Message
from ui.chat.empty_chat import EmptyChat
from ui.chat.message_list import MessageList
from ui.chat.view import Problem
from ui.icons import icon
from ui.models.model_picker import ModelPicker
from ui.session import Session
from ui.speed.status_strip import StatusStrip
from ui.theme import Theme
from ui.widgets.cards import NoticeLine, ProblemCard

_MARGIN = 16
_MOST_NOTICES = 3


class ChatPage(QWidget):
    """``speed_asked``: a person wants to see more than the strip shows."""

    speed_asked = Signal()

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self.controller = session.controller
        self._notices: list[NoticeLine] = []
        self._build()
        self._listen()
        theme.changed.connect(self._colour)
        self._colour()
        self._engine_changed()

    # ---- building

    def _build(self) -> None:
        self.header = QFrame(self)
        self.header.setObjectName("header")
        self.header.setFixedHeight(48)
        self.new_button = QToolButton(self.header)
        self.new_button.setText("New chat")
        self.new_button.setToolTip("New chat (Ctrl+N)")
        self.new_button.setAccessibleName("New chat")
        self.new_button.clicked.connect(self.controller.new_chat)
        self.picker = ModelPicker(
            self._theme, self._session.library, self._session.models_folder, self.header
        )
        self.picker.chosen.connect(self._session.choose_model)
        row = QHBoxLayout(self.header)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self.new_button)
        row.addStretch(1)
        row.addWidget(self.picker)
        self.load_bar = QProgressBar(self)
        self.load_bar.setTextVisible(False)
        self.load_bar.setRange(0, 1000)
        self.load_bar.setAccessibleName("Loading the model")
        policy = self.load_bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.load_bar.setSizePolicy(policy)
        self.messages = MessageList(self._theme, self)
        self.messages.again.connect(self.controller.regenerate)
        self.messages.acted.connect(self._act)
        self.empty = EmptyChat(self)
        self.pages = QStackedWidget(self)
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.messages)
        self.composer = Composer(self._theme, self)
        self.empty.chosen.connect(self.composer.set_text)
        self.composer.sent.connect(self._send)
        self.composer.stopped.connect(self.controller.stop)
        self.composer.edit_last.connect(self._edit_last)
        self.composer.editing_left.connect(self.controller.stop_editing)
        self._below = QVBoxLayout()
        self._below.setContentsMargins(_MARGIN, 8, _MARGIN, 12)
        self._below.setSpacing(8)
        self._below.addWidget(self.composer)
        self.strip = StatusStrip(self._theme, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.load_bar)
        column.addWidget(self.pages, 1)
        column.addLayout(self._below)
        column.addWidget(self.strip)

    def _listen(self) -> None:
        session = self._session
        session.added.connect(self._added)
        session.removed.connect(self._removed)
        session.grew.connect(self._grew)
        session.changed.connect(self.messages.refresh)
        session.replaced.connect(self._replaced)
        session.engine_changed.connect(self._engine_changed)
        session.numbers_changed.connect(self._numbers_changed)
        session.noticed.connect(self.notice)
        session.problem_changed.connect(self.problem)
        session.given_back.connect(self.composer.give_back)

    def _colour(self) -> None:
        self.new_button.setIcon(icon("new", self._theme.tokens.text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(_MARGIN, (self.width() - measures.MEASURE) // 2)
        self._below.setContentsMargins(side, 8, side, 12)
        narrow = self.width() < 560
        self.new_button.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonIconOnly if narrow else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        )

    # ---- what a person does

    def _send(self, text: str) -> None:
        if self.controller.send(text):
            self.composer.clear()

    def _edit_last(self) -> None:
        text = self.controller.edit_last()
        if text:
            self.composer.set_text(text)
            self.composer.show_hint("Sending replaces your last message and its answer.")

    def _act(self, action: str) -> None:
        """What was chosen on the card at the end."""
        match action:
            case "retry":
                self.controller.regenerate()
            case "reload":
                self.controller.reload()
            case "restart" | "restart_plain":
                self._session.restart(plain=action == "restart_plain")
            case "choose":
                self.picker.open_file()
            case _:
                self.problem(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.messages.keyPressEvent(event)
        else:
            super().keyPressEvent(event)

    # ---- what the session says

    def _added(self, message: Message) -> None:
        self.messages.add(message)
        self._show_page()

    def _removed(self, message: Message) -> None:
        self.messages.remove(message)
        self._show_page()

    def _grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        self.messages.grow(message, pieces)

    def _replaced(self) -> None:
        self.messages.show_messages(self.controller.conversation.messages)
        for notice in list(self._notices):
            self._drop_notice(notice)
        self._show_page()
        self.composer.setFocus()

    def _engine_changed(self) -> None:
        state = self.controller.state
        self.picker.show_state(state)
        self.load_bar.setVisible(state.phase == "loading")
        self.load_bar.setValue(round(state.fraction * 1000))
        self.composer.set_busy(self.controller.busy)
        self._numbers_changed()

    def _numbers_changed(self) -> None:
        controller = self.controller
        self.strip.show_numbers(controller.numbers, controller.settings, controller.state, controller.busy)

    def notice(self, text: str) -> None:
        """A line above the composer until it is dismissed; each text once, the newest three."""
        if any(notice.text == text for notice in self._notices):
            return
        while len(self._notices) >= _MOST_NOTICES:
            self._drop_notice(self._notices[0])
        line = NoticeLine(self._theme, text, self)
        line.dismissed.connect(lambda: self._drop_notice(line))
        self._notices.append(line)
        self._below.insertWidget(self._below.count() - 1, line)

    def notices(self) -> tuple[str, ...]:
        return tuple(notice.text for notice in self._notices)

    def _drop_notice(self, line: NoticeLine) -> None:
        if line in self._notices:
            self._notices.remove(line)
            self._below.removeWidget(line)
            line.hide()
            line.deleteLater()

    def problem(self, problem: Problem | None) -> None:
        """A card at the end of the chat; None takes it away."""
        card = None
        if problem is not None:
            card = ProblemCard(self._theme, problem.what, problem.kept, problem.actions)
        self.messages.set_problem(card)
        self._show_page()

    def _show_page(self) -> None:
        something = bool(self.controller.conversation.messages) or self.messages.problem_card() is not None
        self.pages.setCurrentWidget(self.messages if something else self.empty)
