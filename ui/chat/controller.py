"""What happens in the window, without the window: the chats, the engine's events, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message, clean_text
from app.chats.store import ChatStore
from app.chats.titles import title_of
from app.engine_client import Event
from app.protocol import Piece
from app.settings import Settings
from ui.chat.answering import Answering
from ui.chat.chat_keeping import ChatKeeping
from ui.chat.engine import AnswerCounter, Engine
from ui.chat.in_flight import InFlight
from ui.chat.path_changes import tell_path
from ui.chat.view import Problem, View
from ui.engine_state import EngineState
from ui.speed.live_numbers import LiveNumbers


class Controller:
    """All chats with one engine; one of them is shown. Events come in batches; the view hears of each
    change once.

    An answer goes on while another chat is shown. The engine gives one answer at a time; what is asked
    meanwhile, in other chats, waits its turn.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        view: View,
        history: AnswerCounter | None = None,
        store: ChatStore | None = None,
    ) -> None:
        """Without a ``store`` chats are kept in memory only."""
        self.store = store if store is not None else ChatStore()
        self.chat = Chat()
        """The chat that is shown; a new one is kept from its first message on."""
        self.conversation = Conversation(started_at=self.chat.created_at)
        """What was said in it."""
        self._view = view
        self._editing: Message | None = None
        self._removed: tuple[Chat, list[Message], Message | None] | None = None
        self._answering = Answering(engine, settings, view, self.store, history, lambda: self.conversation)
        self._loading = self._answering.loading
        self.chats = ChatKeeping(self)
        """What can be done with a chat as a whole: open, rename, delete, ..."""

    @property
    def settings(self) -> Settings:
        return self._loading.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._loading.settings = settings

    @property
    def state(self) -> EngineState:
        return self._loading.state

    @property
    def numbers(self) -> LiveNumbers:
        """Of the answer that is being written, whichever chat it is in, or of the last one."""
        return self._answering.numbers

    @property
    def view(self) -> View:
        return self._view

    # ---- what a person does in the chat that is shown

    @property
    def busy(self) -> bool:
        """An answer is being written here or waits its turn; the next message cannot be sent."""
        return self._answering.of(self.chat) is not None

    @property
    def busy_chats(self) -> frozenset[int]:
        """Ids of the chats that are being answered or wait for it."""
        return self._answering.chats

    def send(self, text: str) -> bool:
        """Say ``text``, or put it in the place of the message being edited, as another version of it.
        False when it was not taken and should stay where it was typed."""
        if self.busy or not text.strip() or not self._can_ask():
            return False
        text = clean_text(text)
        before = self.conversation.messages
        editing, self._editing = self._editing, None
        question = Message(role="user", pieces=[Piece(text)])
        if editing is not None and editing in self.conversation:
            self.conversation.add_version(editing, question)
        else:
            self.conversation.add(question)
        self.chat.draft = ""
        if not self.chat.title:
            self.chat.title = title_of(text)
        self._ask(before, question)
        return True

    def stop(self) -> None:
        """End the answer of this chat early; what there is of it stays."""
        if (flight := self._answering.of(self.chat)) is not None:
            self._answering.stop(flight)

    def regenerate(self, message: Message | None = None) -> bool:
        """Answer again, as another version beside the first: ``message``, or the last answer. Of a
        question it is its answer. False when that cannot be now."""
        before = self.conversation.messages
        message = message if message is not None else self.conversation.leaf
        if self.busy or message is None or message not in self.conversation or not self._can_ask():
            return False
        if message.role == "user":
            place = before.index(message) if message in before else len(before)
            if place + 1 < len(before):
                message = before[place + 1]
            else:
                self.conversation.end_at(message)
        if message.role == "assistant":
            if message.pieces or self.conversation.children(message):
                self.conversation.add_version(message, answer := Message(role="assistant", state="waiting"))
                self._ask(before, None, answer)
                return True
            # It says nothing: no version worth keeping.
            question = self.conversation.get(message.parent) if message.parent is not None else None
            self._remove(message)
            self.conversation.end_at(question)
        self._ask(before, None)
        return True

    def edit(self, message: Message, text: str) -> bool:
        """Put ``text`` beside ``message`` as another version of it. A question is answered; an answer
        just stands there. False when that cannot be now."""
        if self.busy or not text.strip() or message not in self.conversation:
            return False
        if message.role == "user":
            self._editing = message
            if self.send(text):
                return True
            self._editing = None
            return False
        before = self.conversation.messages
        version = Message(
            role="assistant",
            pieces=[Piece(text)],
            edited=True,
            model=message.model,
            model_key=message.model_key,
        )
        self.conversation.add_version(message, version)
        self.store.keep(self.chat, version)
        tell_path(self._view, before, self.conversation.messages)
        return True

    def edit_last(self) -> str | None:
        """The text of the last question, to be changed; sending puts the new one beside it."""
        message = None if self.busy else self.conversation.last("user")
        return self.start_editing(message) if message is not None else None

    def start_editing(self, message: Message) -> str | None:
        """The text of a question, to be changed in the composer; ``send`` puts the new one beside it."""
        if self.busy or message.role != "user" or message not in self.conversation:
            return None
        self._editing = message
        return message.text

    def stop_editing(self) -> None:
        self._editing = None

    def can_continue(self, message: Message) -> bool:
        """``continue_answer`` would take it: the last answer shown, with something in it."""
        return message is self.conversation.leaf and message.can_continue and not self.busy

    def continue_answer(self, message: Message | None = None) -> bool:
        """Let the last answer go on from its end. False when that cannot be now."""
        answer = message if message is not None else self.conversation.leaf
        if answer is None or not self.can_continue(answer) or not self._can_ask():
            return False
        answer.state, answer.problem = "waiting", None
        answer.cut_by_length = answer.cut_in_reasoning = False
        self._answering.begin(InFlight(self.chat, self.conversation, answer, before=list(answer.pieces)))
        self._view.message_changed(answer)
        return True

    def versions(self, message: Message) -> tuple[int, int]:
        """Which version of its turn ``message`` is, from 0, and how many there are."""
        return self.conversation.place(message)

    def switch(self, message: Message, step: int) -> bool:
        """Show the version of this turn that is ``step`` further, with what followed it. False at the
        ends, and while this chat is being answered."""
        at, count = self.conversation.place(message)
        if self.busy or not 0 <= at + step < count:
            return False
        return self.switch_to(self.conversation.siblings(message)[at + step])

    def switch_to(self, message: Message) -> bool:
        """Show the branch that goes through ``message``."""
        if self.busy or message not in self.conversation:
            return False
        before = self.conversation.messages
        self.conversation.switch(message)
        self._editing = None
        self.store.keep(self.chat)
        tell_path(self._view, before, self.conversation.messages)
        return True

    def remove_message(self, message: Message) -> int:
        """Drop this version of a turn, with all that followed it: ``restore_messages`` undoes the last
        time. How many messages that were, 0 when it cannot be now."""
        if self.busy or message not in self.conversation:
            return 0
        before, leaf = self.conversation.messages, self.conversation.leaf
        removed = self._remove(message)
        self._removed = (self.chat, removed, leaf)
        tell_path(self._view, before, self.conversation.messages)
        return len(removed)

    def restore_messages(self) -> bool:
        """Put back what ``remove_message`` took last and show it. False when that cannot be now."""
        if self._removed is None:
            return False
        chat, removed, leaf = self._removed
        if self._answering.of(chat) is not None or not self.chats.open(chat.id):
            return False
        before = self.conversation.messages
        self._removed = None
        if not self.conversation.put_back(removed, leaf):
            return False
        self.store.keep(self.chat, *removed)
        tell_path(self._view, before, self.conversation.messages)
        return True

    def new_chat(self) -> None:
        """Show an empty chat. An answer that is being written goes on where it is."""
        self.chats.new()

    # ---- the model and the settings

    def choose_model(self, path: str) -> None:
        self._loading.load(path)

    def reload(self) -> None:
        """Load the model again, after the answer that is being written."""
        self._loading.reload()

    def unload(self) -> None:
        """Take the model out of memory; the next message loads it again."""
        self._loading.unload()

    @property
    def needs_reload(self) -> bool:
        """The settings ask for something that the model in memory was not loaded with."""
        return self._loading.needs_reload

    @property
    def reload_is_due(self) -> bool:
        """The model is loaded again as soon as the answer that is being written has ended."""
        return self._loading.reload_is_due

    def restart(self, plain: bool = False) -> None:
        """Start the engine again after it gave up; ``plain`` only tells that drafting is off now."""
        self._loading.restart(plain)

    def apply(self, settings: Settings, *, later: bool = False) -> None:
        """New settings hold from the next message on. Where the model must be loaded again for them, that
        is done at once, or ``later``: before the next answer. No answer is interrupted for it."""
        self._loading.apply(settings, later=later)
        self._view.engine_changed()
        self._view.numbers_changed()

    # ---- what the engine says

    def handle(self, events: Iterable[Event]) -> None:
        """A batch of events, in the order they came."""
        self._answering.handle(events)

    # ---- asking

    def _can_ask(self) -> bool:
        if self.state.phase == "no_model" and self.state.wanted is None:
            self._view.problem(Problem("There is no model to answer yet.", "", ("choose",)))
            return False
        self._view.problem(None)
        return True

    def _ask(
        self, before: Sequence[Message], question: Message | None, answer: Message | None = None
    ) -> None:
        """Have an answer written at the end of the path, or in the place of ``answer``."""
        if answer is None:
            answer = self.conversation.add_answer()
        flight = InFlight(self.chat, self.conversation, answer, question)
        tell_path(self._view, before, self.conversation.messages)
        self._answering.begin(flight)

    # ---- chats

    def leave(self, chat: Chat, conversation: Conversation) -> None:
        """Show ``chat`` from now on. For ChatKeeping."""
        self._answering.give_out()
        self.chat, self.conversation = chat, conversation
        self._editing = None
        if not self.busy_chats:
            self.numbers.clear()
        self._view.problem(None)
        self._view.conversation_replaced()
        self._view.numbers_changed()
        self._view.engine_changed()

    def drop_answer_of(self, chat: Chat) -> None:
        """Its answer is not wanted any more. For ChatKeeping."""
        if (flight := self._answering.of(chat)) is not None:
            self._answering.stop(flight)

    def close(self) -> None:
        """The program ends: answers that are being written are kept as far as they are."""
        self._answering.close()

    def take_store_news(self) -> None:
        """Call it when the store has news."""
        for news in self.store.take_news():
            if news.reload:
                self._view.chats_changed()
            if news.error is not None and self.store.saves:
                self._view.problem(Problem(news.text, "", ("save",)))
            else:
                if news.saved:
                    self._view.problem(None)
                self._view.notice(news.text)

    def _remove(self, message: Message) -> list[Message]:
        removed = self.conversation.remove(message)
        self.store.keep(self.chat, removed=removed)
        return removed
