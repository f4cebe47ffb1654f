"""What happens in the window, without the window: the chats, the engine's events, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message, RequestSettings, clean_text
from app.chats.store import ChatStore
from app.chats.titles import title_of
from app.engine_client import Event, WorkerLost
from app.protocol import Chunk, Done, Failed, Loaded, LoadProgress, Piece, PrefillProgress, Started
from app.settings import Settings
from ui.chat.chat_keeping import ChatKeeping
from ui.chat.engine import AnswerCounter, Engine
from ui.chat.in_flight import InFlight
from ui.chat.model_loading import ModelLoading
from ui.chat.view import Problem, View
from ui.engine_state import EngineState
from ui.speed.live_numbers import LiveNumbers

_MOST_MOVED = 40  # messages that are taken away and put there one by one


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
        self.numbers = LiveNumbers()
        """Of the answer that is being written, whichever chat it is in, or of the last one."""
        self._engine = engine
        self._view = view
        self._history = history
        self._in_flight: list[InFlight] = []
        self._editing: Message | None = None
        self._removed: tuple[Chat, list[Message], Message | None] | None = None
        self._numbers_changed = False
        self._loading = ModelLoading(
            engine, view, settings, self._model_ready, self._fail_waiting, self._kept, self._writing
        )
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
    def view(self) -> View:
        return self._view

    # ---- what a person does in the chat that is shown

    @property
    def busy(self) -> bool:
        """An answer is being written here or waits its turn; the next message cannot be sent."""
        return self._of(self.chat) is not None

    @property
    def busy_chats(self) -> frozenset[int]:
        """Ids of the chats that are being answered or wait for it."""
        return frozenset(flight.chat.id for flight in self._in_flight)

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
        if (flight := self._of(self.chat)) is not None:
            self._stop(flight)

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
        self._show_path(before)
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
        self._begin(InFlight(self.chat, self.conversation, answer, before=list(answer.pieces)))
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
        self._show_path(before)
        return True

    def remove_message(self, message: Message) -> int:
        """Drop this version of a turn, with all that followed it: ``restore_messages`` undoes the last
        time. How many messages that were, 0 when it cannot be now."""
        if self.busy or message not in self.conversation:
            return 0
        before, leaf = self.conversation.messages, self.conversation.leaf
        removed = self._remove(message)
        self._removed = (self.chat, removed, leaf)
        self._show_path(before)
        return len(removed)

    def restore_messages(self) -> bool:
        """Put back what ``remove_message`` took last and show it. False when that cannot be now."""
        if self._removed is None:
            return False
        chat, removed, leaf = self._removed
        if self._of(chat) is not None or not self.chats.open(chat.id):
            return False
        before = self.conversation.messages
        self._removed = None
        if not self.conversation.put_back(removed, leaf):
            return False
        self.store.keep(self.chat, *removed)
        self._show_path(before)
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
        for event in events:
            self._handle(event)
        self._give_out()

    def _handle(self, event: Event) -> None:
        match event:
            case WorkerLost():
                self._loading.lost(event)
            case LoadProgress():
                self._loading.progressed(event)
            case Loaded():
                self._loading.loaded(event)
            case Failed():
                if not self._loading.failed(event) and (flight := self._with(event.request_id)):
                    self._failed(flight, event)
            case Started() | PrefillProgress() | Chunk() | Done():
                if (flight := self._with(event.request_id)) is not None:
                    self._answering(flight, event)
            case _:  # hello, log
                pass

    def _answering(self, flight: InFlight, event: Started | PrefillProgress | Chunk | Done) -> None:
        answer = flight.answer
        match event:
            case Started():
                answer.state = "reading"
                answer.seed = event.seed
                self.numbers.started(event)
                self._loading.notices(event.notices)
                self._changed(flight)
            case PrefillProgress():
                self.numbers.prefilled(event)
            case Chunk():
                self.numbers.chunk(event)
                self._loading.notices(event.notices)
                flight.take(event.pieces)
                if answer.state != "writing":
                    answer.state = "writing"
                    self._changed(flight)
            case Done():
                self._done(flight, event)
        self._numbers_changed = True

    def _done(self, flight: InFlight, event: Done) -> None:
        self._give_out()
        answer = flight.answer
        self.numbers.done(event.stats)
        answer.stats = event.stats
        if self._history is not None and self.state.report is not None:
            self._history.record(self.state.report, event)
        answer.cut_in_reasoning = event.cut_in_reasoning
        answer.cut_by_length = event.finish_reason == "length"
        if flight.settle_text(event) and self._shown(flight):
            self._view.message_removed(answer)
            self._view.message_added(answer)
        self._finish(flight, "stopped" if event.finish_reason == "cancelled" else "done", None)

    def _failed(self, flight: InFlight, event: Failed) -> None:
        self._give_out()
        self.numbers.failed()
        self._numbers_changed = True
        if event.kind in ("bad_input", "no_model") and not flight.answer.pieces:
            self._refused(flight, event.message)
        else:
            self._finish(flight, "failed", event.message)

    def _refused(self, flight: InFlight, why: str) -> None:
        """The engine would not take the message: it goes back to where it was typed."""
        self._in_flight.remove(flight)
        before = flight.conversation.messages
        question = flight.question
        first = question if question is not None and question in flight.conversation else flight.answer
        removed = flight.conversation.remove(first)
        kept = "Your message is back in the box." if question is not None else self._kept()
        shown = self._shown(flight)
        if question is not None and not shown:
            flight.chat.draft = question.text
        self.store.keep(flight.chat, removed=removed)
        if shown:
            self._show_path(before)
            if question is not None:
                self._view.give_back(question.text)
            self._view.problem(Problem(why, kept))
        self._loading.answer_ended()
        self._view.chat_changed(flight.chat)
        self._view.engine_changed()

    def _finish(
        self, flight: InFlight, state: Literal["done", "stopped", "failed"], problem: str | None
    ) -> None:
        self._in_flight.remove(flight)
        answer = flight.answer
        answer.state, answer.problem = state, problem
        if state == "stopped" and not answer.pieces:
            # Nothing was said: no empty answer is left behind.
            before = flight.conversation.messages
            self.store.keep(flight.chat, removed=flight.conversation.remove(answer))
            if self._shown(flight):
                self._show_path(before)
                self._view.notice("Stopped before the answer began.")
        else:
            self.store.touch(flight.chat)
            self.store.keep(flight.chat, answer)
            self._changed(flight)
        self._loading.answer_ended()
        self._view.chat_changed(flight.chat)
        self._view.engine_changed()

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
        self._show_path(before)
        self._begin(flight)

    def _begin(self, flight: InFlight) -> None:
        self._in_flight.append(flight)
        chat = flight.chat
        self.store.touch(chat)
        if chat not in self.store:
            self.store.add(chat, flight.conversation)
            self.store.last_open = chat.id
        else:
            self.store.keep(flight.chat, *([flight.question] if flight.question else []), flight.answer)
        if len(self._in_flight) == 1:
            self.numbers.clear()
        if self._loading.get_ready():
            self._generate(flight)
        self._view.chats_changed()
        self._view.engine_changed()
        self._view.numbers_changed()

    def _generate(self, flight: InFlight) -> None:
        settings, chat, report = self.settings, flight.chat, self.state.report
        system = settings.system_prompt if chat.system_prompt is None else chat.system_prompt
        sampling = chat.sampling.over(settings.sampling_params())
        drafting = settings.drafting_params()
        answer = flight.answer
        answer.request = RequestSettings(
            sampling=sampling,
            max_tokens=settings.max_tokens or None,
            verification=settings.verification,
            drafting=bool(drafting.links),
            preset=chat.preset,
        )
        if report is not None:
            answer.model = report.name
            answer.model_key = report.file.key if report.file is not None else None
        flight.request_id = self._engine.generate(
            flight.conversation.prompt_before(answer, system),
            sampling=sampling,
            drafting=drafting,
            max_tokens=settings.max_tokens or None,
            reproducible=settings.verification == "reproducible",
            exact=settings.verification == "exact",
            begun=flight.begun,
            started_at=flight.conversation.started_at,
        )

    def _stop(self, flight: InFlight) -> None:
        if flight.request_id is not None:
            self._engine.cancel(flight.request_id)
        else:  # it waits for the model, the engine has not heard of it
            self._finish(flight, "stopped", None)
        self._view.engine_changed()

    def _model_ready(self) -> None:
        for flight in list(self._in_flight):
            if flight.request_id is None and self._loading.get_ready():
                self._generate(flight)

    def _writing(self) -> bool:
        """The engine is at an answer, or has one before it."""
        return any(flight.request_id is not None for flight in self._in_flight)

    def _fail_waiting(self, why: str) -> bool:
        """Messages that waited for the model get its reason; Retry asks again."""
        told = False
        for flight in list(self._in_flight):
            if flight.request_id is None:
                told = self._shown(flight) or told
                self._finish(flight, "failed", why)
        return told

    def _kept(self) -> str:
        return "Your chat is kept." if self.conversation.messages else ""

    # ---- chats

    def leave(self, chat: Chat, conversation: Conversation) -> None:
        """Show ``chat`` from now on. For ChatKeeping."""
        self._give_out()
        self.chat, self.conversation = chat, conversation
        self._editing = None
        if not self._in_flight:
            self.numbers.clear()
        self._view.problem(None)
        self._view.conversation_replaced()
        self._view.numbers_changed()
        self._view.engine_changed()

    def drop_answer_of(self, chat: Chat) -> None:
        """Its answer is not wanted any more. For ChatKeeping."""
        if (flight := self._of(chat)) is not None:
            self._stop(flight)

    def close(self) -> None:
        """The program ends: answers that are being written are kept as far as they are."""
        self._give_out()
        for flight in list(self._in_flight):
            self._in_flight.remove(flight)
            flight.answer.state = "stopped"
            self.store.keep(flight.chat, flight.answer)

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

    def _of(self, chat: Chat) -> InFlight | None:
        return next((flight for flight in self._in_flight if flight.chat is chat), None)

    def _with(self, request_id: int) -> InFlight | None:
        return next((flight for flight in self._in_flight if flight.request_id == request_id), None)

    def _shown(self, flight: InFlight) -> bool:
        return flight.conversation is self.conversation

    def _remove(self, message: Message) -> list[Message]:
        removed = self.conversation.remove(message)
        self.store.keep(self.chat, removed=removed)
        return removed

    # ---- telling the view, once per batch

    def _show_path(self, before: Sequence[Message]) -> None:
        """The path was ``before``; tell what has changed."""
        after = self.conversation.messages
        same = 0
        while same < min(len(before), len(after)) and before[same] is after[same]:
            same += 1
        if len(before) + len(after) - 2 * same > _MOST_MOVED:
            self._view.conversation_replaced()
            return
        for message in reversed(before[same:]):
            self._view.message_removed(message)
        for message in after[same:]:
            self._view.message_added(message)

    def _changed(self, flight: InFlight) -> None:
        if self._shown(flight):
            self._view.message_changed(flight.answer)

    def _give_out(self) -> None:
        for flight in self._in_flight:
            if flight.fresh:
                if self._shown(flight):
                    self._view.answer_grew(flight.answer, flight.fresh)
                self.store.keep_soon(flight.chat, flight.answer)
                flight.fresh = []
        if self._numbers_changed:
            self._numbers_changed = False
            self._view.numbers_changed()
        if self._loading.changed:
            self._loading.changed = False
            self._view.engine_changed()
