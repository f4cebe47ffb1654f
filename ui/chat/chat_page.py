"""The chat page: the sidebar, and beside it header, messages, composer and strip of one chat."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QProgressBar, QStackedWidget, QVBoxLayout, QWidget

from app.chats.chat import Chat
from app.chats.database import FoundText
from app.chats.message import Message
from app.chats.search_text import places_of
from app.protocol import Piece
from ui import theme as measures
from ui.chat.chat_actions import ChatActions
from ui.chat.chat_files import ChatFiles
from ui.chat.chat_header import ChatHeader
from ui.chat.composer import Composer, local_files
from ui.chat.drafts_control import DraftsControl
from ui.chat.empty_chat import EmptyChat
from ui.chat.find_control import FindControl
from ui.chat.message_control import MessageControl
from ui.chat.message_list import MessageList, Place
from ui.chat.options_control import OptionsControl
from ui.chat.side_frame import SideFrame
from ui.chat.sidebar import Sidebar
from ui.chat.sidebar_control import SidebarControl
from ui.chat.view import Problem
from ui.chat.welcome_control import WelcomeControl
from ui.models.model_picker import ModelPicker
from ui.session import Session
from ui.shell.regions import mark_region
from ui.speed.legend import Legend
from ui.speed.speed_split import SpeedSplit
from ui.speed.status_strip import StatusStrip
from ui.theme import Theme
from ui.widgets.cards import ProblemCard
from ui.widgets.layouts import nested
from ui.widgets.notices import Notices
from ui.widgets.pace import READABLE_MS, Pace
from ui.widgets.undo_line import UndoLine

_MARGIN = 16
_FOUND_OFFSET = -72  # what was found stands a little below the top


class ChatPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self.controller = session.controller
        self._shown = session.controller.chat.id
        self.setAcceptDrops(True)
        self._build()
        self._message_control = MessageControl(
            session, self.messages, self.composer, self.undo, self.speed.open_panel, self
        )
        self._drafts_control = DraftsControl(session, self.header, self.messages, self.legend)
        self._options = OptionsControl(theme, session, self.header, self.main)
        self.files = ChatFiles(session, self)
        self._sidebar_control = SidebarControl(session, self.sidebar, self.files, self)
        self.named_actions = ChatActions(
            session, self.header, self.frame, self._sidebar_control, self._message_control
        ).handlers()
        self._listen()
        self._replaced()

    # ---- building

    def _build(self) -> None:
        self.frame = SideFrame(self._theme, self)
        self.frame.setObjectName("chat_sides")
        self.sidebar = Sidebar(self._theme, self._session.store.search, self.frame)
        self.sidebar.found.connect(self._open_found)
        self.sidebar.list.opened.connect(self._chat_chosen)
        self.main = QWidget(self.frame)
        self.picker = ModelPicker(self._theme, self._session.library, self._session.models_folder, self.main)
        self.picker.chosen.connect(self._session.choose_model)
        self.picker.more_asked.connect(lambda: self._session.page_asked.emit("Models"))
        self.header = ChatHeader(self._theme, self.picker, self.main)
        self.new_button = self.header.new_button
        self.header.new_asked.connect(self.controller.new_chat)
        self.header.sidebar_asked.connect(self.frame.show_side)
        self.header.renamed.connect(self._rename)
        self.load_bar = QProgressBar(self.main)
        self.load_bar.setTextVisible(False)
        self.load_bar.setRange(0, 1000)
        self.load_bar.setAccessibleName("Loading the model")
        policy = self.load_bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.load_bar.setSizePolicy(policy)
        self.messages = MessageList(self._theme, self.main)
        self.messages.set_versions(self.controller.versions)
        self.messages.acted.connect(self._act)
        self.empty = EmptyChat(self.main)
        self.pages = QStackedWidget(self.main)
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.messages)
        if self._session.store.last_open is not None:  # it is opened when the window can be seen
            self.pages.setCurrentWidget(self.messages)
        self.composer = Composer(self._theme, self.main)
        self.empty.chosen.connect(self.composer.set_text)
        self._welcome = WelcomeControl(self._theme, self._session, self.empty)
        self.composer.stopped.connect(self.controller.stop)
        self.composer.draft_changed.connect(self.controller.chats.set_draft)
        self._talk = QWidget(self.main)
        talk = QVBoxLayout(self._talk)
        talk.setContentsMargins(0, 0, 0, 0)
        talk.setSpacing(0)
        talk.addWidget(self.pages, 1)
        self.finding = FindControl(self._theme, self._session, self.messages, talk, self)
        self.finding.closed.connect(self.composer.setFocus)
        self._below = nested(talk, QVBoxLayout())
        self._below.setContentsMargins(_MARGIN, 8, _MARGIN, 12)
        self._below.setSpacing(8)
        self.legend = Legend(self._theme, self.main)
        self.undo = UndoLine(self._theme, self.main)
        self._notices = Notices(self._theme, self.main)
        self._notices.chosen.connect(self._session.action_asked)
        for widget in (self.undo, self.legend, self._notices):
            self._below.addWidget(widget)
        self._below.addWidget(self.composer)
        self.speed = SpeedSplit(self._theme, self._session, self._talk, self.main)
        self.strip = StatusStrip(self._theme, self.main)
        self._strip_pace = Pace(self._show_numbers, READABLE_MS, self)
        self.strip.asked.connect(self.speed.toggle)
        self.speed.open_changed.connect(self.strip.show_open)
        self.speed.main_resized.connect(self._fit_below)
        column = QVBoxLayout(self.main)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.load_bar)
        column.addWidget(self.speed, 1)
        column.addWidget(self.strip)
        self.frame.shown_changed.connect(self._side_shown)
        self.frame.set_widgets(self.sidebar, self.main)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.frame)
        for part, name in (
            (self.sidebar, "Chats"),
            (self.header, "Header"),
            (self.pages, "Messages"),
            (self._notices, "Notices"),
            (self.composer, "Composer"),
            (self.strip, "Speed of the answer"),
        ):
            mark_region(part, name)

    def _listen(self) -> None:
        session = self._session
        session.added.connect(self._added)
        session.removed.connect(self._removed)
        session.grew.connect(self._grew)
        session.changed.connect(self.messages.refresh)
        session.replaced.connect(self._replaced)
        session.chat_changed.connect(self._chat_changed)
        session.chats_changed.connect(self._show_title)
        session.engine_changed.connect(self._engine_changed)
        session.numbers_changed.connect(self._strip_pace.ask)
        session.problem_changed.connect(self.problem)
        session.given_back.connect(self.composer.give_back)

    def _fit_below(self, width: int) -> None:
        side = max(_MARGIN, (width - measures.MEASURE) // 2)
        self._below.setContentsMargins(side, 8, side, 12)
        self.finding.fit(side)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._options.flush()
        self._keep_place()
        self.sidebar.close_search()
        self.files.close()
        super().closeEvent(event)

    # ---- what a person does

    def _rename(self, title: str) -> None:
        self.controller.chats.rename(self.controller.chat.id, title)

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
            case "save":
                self._session.store.retry()
            case "ask_anew":
                self._ask_anew()
            case "dismiss":
                self.problem(None)
            case _:
                self.problem(None)
                self._session.action_asked.emit(action)

    def _ask_anew(self) -> None:
        """What was typed goes into a new chat, where it has the whole context."""
        text = self.composer.text()
        self.composer.clear()
        self.controller.new_chat()
        self.composer.set_text(text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.messages.keyPressEvent(event)
        elif event.key() == Qt.Key.Key_Escape and self._open_part():
            self._close_part()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # What is open here is closed first; else Esc is the window's.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self._open_part()
        ):
            event.accept()
            return True
        return super().event(event)

    def _open_part(self) -> bool:
        return (
            self.finding.shown
            or self.composer.editing
            or self._options.shown
            or self.frame.side_over
            or self.sidebar.has_focus
        )

    def _close_part(self) -> None:
        if self._options.shown:
            self._options.show(False)
        elif self.sidebar.has_focus or self.frame.side_over:
            self._leave_sidebar()
        elif self.finding.shown:
            self.finding.close()
        else:
            self.composer.leave_editing()
        self.composer.setFocus()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()  # else the other program believes that it failed
        self.composer.quote_files(local_files(event.mimeData()))

    # ---- the sidebar

    def search_chats(self) -> None:
        """Let a search over all chats be typed."""
        self.frame.show_side(True)
        self.sidebar.start_search()

    def toggle_sidebar(self) -> None:
        """Show or hide the list of chats."""
        shown = not self.frame.side_shown
        self.frame.show_side(shown)
        if shown:
            self.sidebar.take_focus()
        else:
            self.composer.setFocus()

    def _side_shown(self, shown: bool) -> None:
        self.header.show_sidebar(shown)

    def _chat_chosen(self) -> None:
        if self.frame.side_over:
            self.frame.show_side(False)
            self.composer.setFocus()

    def _leave_sidebar(self) -> None:
        if self.frame.side_over:
            self.frame.show_side(False)
        self.composer.setFocus()

    def _open_found(self, found: FoundText) -> None:
        if found.message is None:
            self.controller.chats.open(found.chat)
        else:
            with self.messages.standing_still():
                opened = self.controller.chats.open(found.chat, found.message)
            if not opened:
                return
            place = Place(found.message, _FOUND_OFFSET)
            self.messages.show_messages(self.controller.conversation.messages, place)
            words = [found.excerpt[start:end] for start, end in found.marks]
            self.finding.mark(found.message, places_of(self.sidebar.search.text(), words))
        if self.frame.side_over:
            self.frame.show_side(False)

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
        """Another chat is shown, where its reader was last, or much of this one has changed."""
        self._keep_place()
        chat = self.controller.chat
        self._shown = chat.id
        self._message_control.leave()
        place = Place(*chat.place) if chat.place is not None else None
        self.finding.chat_replaced()
        self.messages.show_messages(self.controller.conversation.messages, place)
        self._notices.clear()
        if self.composer.text() != chat.draft:
            self.composer.set_text(chat.draft)
        self.composer.show_hint("")
        self._show_title()
        self._show_page()
        self._engine_changed()
        if not self.sidebar.has_focus:
            self.composer.setFocus()

    def _keep_place(self) -> None:
        place = self.messages.place()
        where = (place.message, place.offset) if place is not None else None
        self.controller.chats.set_place(self._shown, where)

    def _chat_changed(self, chat: Chat) -> None:
        if chat is self.controller.chat:
            self._show_title()

    def _show_title(self) -> None:
        chat = self.controller.chat
        self.header.title.show_title(chat.label, chat in self._session.store)

    def _engine_changed(self) -> None:
        state = self.controller.state
        self.picker.show_state(state)
        self.load_bar.setVisible(state.phase == "loading")
        self.load_bar.setValue(round(state.fraction * 1000))
        self.composer.set_busy(self.controller.busy)
        self._strip_pace.now()

    def _show_numbers(self) -> None:
        controller = self.controller
        self.strip.show_numbers(controller.numbers, controller.settings, controller.state, controller.busy)

    def notice(self, text: str, action: str = "") -> None:
        """A line above the composer, until it is dismissed or another chat is shown."""
        self._notices.add(text, action)

    def notices(self) -> tuple[str, ...]:
        """What is said above the composer."""
        return self._notices.texts()

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
