"""Answers that are being written or wait for it, in whatever chat: asked for, taken in, ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.joined_stats import joined
from app.chats.message import RequestSettings, interrupt
from app.chats.store import ChatStore
from app.engine_client import Event, WorkerLost
from app.protocol import Chunk, Done, Failed, FailureKind, Loaded, LoadProgress, PrefillProgress, Started
from app.settings import Settings
from ui.chat.engine import AnswerCounter, Engine
from ui.chat.in_flight import InFlight
from ui.chat.model_loading import ModelLoading
from ui.chat.path_changes import tell_path
from ui.chat.view import Problem, View
from ui.speed.live_numbers import LiveNumbers

# What to do where the engine would not take a message, see ui.chat.view.Problem.
_HELPS: dict[FailureKind, tuple[str, ...]] = {
    "too_long": ("ask_anew", "settings:engine"),
    "no_model": ("choose", "models"),
}


class Answering:
    """The engine gives one answer at a time; what is asked meanwhile waits its turn. The view hears of
    the chat that is ``shown`` alone, once for each batch of events; the store of all."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        view: View,
        store: ChatStore,
        history: AnswerCounter | None,
        shown: Callable[[], Conversation],
    ) -> None:
        self.loading = ModelLoading(
            engine, view, settings, self._model_ready, self._fail_waiting, self.kept, self._writing
        )
        self.numbers = LiveNumbers()
        self._engine = engine
        self._view = view
        self._store = store
        self._history = history
        self._shown_now = shown
        self._in_flight: list[InFlight] = []
        self._numbers_changed = False

    @property
    def chats(self) -> frozenset[int]:
        """Ids of the chats that are being answered or wait for it."""
        return frozenset(flight.chat.id for flight in self._in_flight)

    def of(self, chat: Chat) -> InFlight | None:
        """The answer that this chat waits for."""
        return next((flight for flight in self._in_flight if flight.chat is chat), None)

    def kept(self) -> str:
        """What a card about a failure says about the chat that is shown."""
        return "Your chat is kept." if self._shown_now().messages else ""

    # ---- asking

    def begin(self, flight: InFlight) -> None:
        """Have this answer written; its chat is kept from now on."""
        self._in_flight.append(flight)
        chat = flight.chat
        self._store.touch(chat)
        if chat not in self._store:
            self._store.add(chat, flight.conversation)
            self._store.last_open = chat.id
        else:
            self._store.keep(flight.chat, *([flight.question] if flight.question else []), flight.answer)
        if len(self._in_flight) == 1:
            self.numbers.clear()
        if self.loading.get_ready():
            self._generate(flight)
        self._view.chats_changed()
        self._view.engine_changed()
        self._view.numbers_changed()

    def _generate(self, flight: InFlight) -> None:
        settings, chat, report = self.loading.settings, flight.chat, self.loading.state.report
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

    def stop(self, flight: InFlight) -> None:
        """End it early; what there is of it stays."""
        if flight.request_id is not None:
            self._engine.cancel(flight.request_id)
        else:  # it waits for the model, the engine has not heard of it
            self._finish(flight, "stopped", None)
        self._view.engine_changed()

    def _model_ready(self) -> None:
        for flight in list(self._in_flight):
            if flight.request_id is None and self.loading.get_ready():
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

    # ---- what the engine says

    def handle(self, events: Iterable[Event]) -> None:
        """A batch of what the engine says."""
        for event in events:
            self._handle(event)
        self.give_out()

    def _handle(self, event: Event) -> None:
        match event:
            case WorkerLost():
                self.loading.lost(event)
            case LoadProgress():
                self.loading.progressed(event)
            case Loaded():
                self.loading.loaded(event)
            case Failed():
                if not self.loading.failed(event) and (flight := self._with(event.request_id)):
                    self._failed(flight, event)
            case Started() | PrefillProgress() | Chunk() | Done():
                if (flight := self._with(event.request_id)) is not None:
                    self._take(flight, event)
            case _:  # hello, log
                pass

    def _take(self, flight: InFlight, event: Started | PrefillProgress | Chunk | Done) -> None:
        answer = flight.answer
        match event:
            case Started():
                answer.state = "reading"
                answer.seed = event.seed
                self.numbers.started(event)
                self.loading.notices(event.notices)
                self._changed(flight)
            case PrefillProgress():
                self.numbers.prefilled(event)
            case Chunk():
                self.numbers.chunk(event)
                self.loading.notices(event.notices)
                flight.take(event.pieces)
                if answer.state != "writing":
                    answer.state = "writing"
                    self._changed(flight)
            case Done():
                self._done(flight, event)
        self._numbers_changed = True

    def _done(self, flight: InFlight, event: Done) -> None:
        self.give_out()
        answer = flight.answer
        self.numbers.done(event.stats)
        before = answer.stats if flight.before else None
        answer.stats = joined(before, event.stats) if before is not None else event.stats
        if self._history is not None and self.loading.state.report is not None:
            self._history.record(self.loading.state.report, event)
        answer.cut_in_reasoning = event.cut_in_reasoning
        answer.cut_by_length = event.finish_reason == "length"
        if flight.settle_text(event) and self._shown(flight):
            self._view.message_removed(answer)
            self._view.message_added(answer)
        self._finish(flight, "stopped" if event.finish_reason == "cancelled" else "done", None)

    def _failed(self, flight: InFlight, event: Failed) -> None:
        self.give_out()
        self.numbers.failed()
        self._numbers_changed = True
        if event.kind in ("bad_input", "too_long", "no_model") and not flight.answer.pieces:
            self._refused(flight, event.message, _HELPS.get(event.kind, ()))
        else:
            self._finish(flight, "failed", event.message)

    def _refused(self, flight: InFlight, why: str, helps: tuple[str, ...]) -> None:
        """The engine would not take the message: it goes back to where it was typed."""
        self._in_flight.remove(flight)
        before = flight.conversation.messages
        question = flight.question
        first = question if question is not None and question in flight.conversation else flight.answer
        removed = flight.conversation.remove(first)
        kept = "Your message is back in the box." if question is not None else self.kept()
        shown = self._shown(flight)
        if question is not None and not shown:
            flight.chat.draft = question.text
        self._store.keep(flight.chat, removed=removed)
        if shown:
            tell_path(self._view, before, flight.conversation.messages)
            if question is not None:
                self._view.give_back(question.text)
            self._view.problem(Problem(why, kept, helps))
        self.loading.answer_ended()
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
            self._store.keep(flight.chat, removed=flight.conversation.remove(answer))
            if self._shown(flight):
                tell_path(self._view, before, flight.conversation.messages)
                self._view.notice("Stopped before the answer began.")
        else:
            self._store.touch(flight.chat)
            self._store.keep(flight.chat, answer)
            self._changed(flight)
        self.loading.answer_ended()
        self._view.chat_changed(flight.chat)
        self._view.engine_changed()

    def close(self) -> None:
        """The program ends: answers that are being written are kept as far as they are."""
        self.give_out()
        for flight in list(self._in_flight):
            self._in_flight.remove(flight)
            interrupt(flight.answer)
            self._store.keep(flight.chat, flight.answer)

    # ---- inside

    def _with(self, request_id: int) -> InFlight | None:
        return next((flight for flight in self._in_flight if flight.request_id == request_id), None)

    def _shown(self, flight: InFlight) -> bool:
        return flight.conversation is self._shown_now()

    def _changed(self, flight: InFlight) -> None:
        if self._shown(flight):
            self._view.message_changed(flight.answer)

    def give_out(self) -> None:
        """Tell the view and the store of what has come since the last time."""
        for flight in self._in_flight:
            if flight.fresh:
                if self._shown(flight):
                    self._view.answer_grew(flight.answer, flight.fresh)
                self._store.keep_soon(flight.chat, flight.answer)
                flight.fresh = []
        if self._numbers_changed:
            self._numbers_changed = False
            self._view.numbers_changed()
        if self.loading.changed:
            self.loading.changed = False
            self._view.engine_changed()
