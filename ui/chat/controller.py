"""What happens in the window, without the window: the chat, the engine's events, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from app.engine_client import Event, WorkerLost
from app.protocol import (
    ChatMessage,
    Chunk,
    Done,
    DraftingParams,
    EngineOptions,
    Failed,
    Loaded,
    LoadProgress,
    ModelReport,
    Piece,
    PrefillProgress,
    SamplingParams,
    Started,
)
from app.settings import Settings
from ui.chat.conversation import Conversation, Message
from ui.chat.view import Problem, View
from ui.engine_state import EngineState
from ui.speed.live_numbers import LiveNumbers


class Engine(Protocol):
    """The part of app.engine_client.EngineClient that is used here."""

    def load(self, model_path: str, draft_model_path: str | None, options: EngineOptions) -> int: ...

    def generate(
        self,
        messages: Sequence[ChatMessage],
        *,
        sampling: SamplingParams,
        drafting: DraftingParams,
        max_tokens: int | None,
        reproducible: bool,
        exact: bool,
        started_at: float | None,
    ) -> int: ...

    def cancel(self, request_id: int) -> None: ...

    def restart(self) -> None: ...


class AnswerCounter(Protocol):
    """The part of app.speed_history.BackgroundHistory that is used here."""

    def record(self, model: ModelReport, done: Done) -> None: ...


class Controller:
    """One chat with one engine. Events come in batches; the view hears of each change once."""

    def __init__(
        self, engine: Engine, settings: Settings, view: View, history: AnswerCounter | None = None
    ) -> None:
        self.settings = settings
        self.conversation = Conversation()
        self.state = EngineState()
        self.numbers = LiveNumbers()
        self._engine = engine
        self._view = view
        self._history = history
        self._load_id: int | None = None
        self._request_id: int | None = None
        self._answer: Message | None = None  # the one being written, or waiting for the model
        self._editing: Message | None = None
        self._fresh: list[Piece] = []
        self._seen_notices: set[str] = set()
        self._notices_of: str | None = None  # the model that they were about
        self._told: str | None = None  # the last loss of the worker that a card already tells
        self._numbers_changed = False
        self._engine_changed = False

    # ---- what a person does

    @property
    def busy(self) -> bool:
        """An answer is being written or waits for the model; the next message cannot be sent."""
        return self._answer is not None

    def send(self, text: str) -> bool:
        """False when the message was not taken and should stay where it was typed."""
        if self.busy or not text.strip():
            return False
        if self.state.phase == "no_model":
            self._view.problem(Problem("There is no model to answer yet.", "", ("choose",)))
            return False
        self._view.problem(None)
        if self._editing is not None and self._editing in self.conversation.messages:
            for message in reversed(self.conversation.truncate(self._editing)):
                self._view.message_removed(message)
        self._editing = None
        self._view.message_added(self.conversation.add_user(text))
        self._ask()
        return True

    def stop(self) -> None:
        if self._answer is None:
            return
        if self._request_id is not None:
            self._engine.cancel(self._request_id)
        else:  # it waits for the model, the engine has not heard of it
            self._finish(self._answer, "stopped", None)
        self._view.engine_changed()

    def regenerate(self) -> None:
        """Answer the last question again."""
        if self.busy:
            return
        messages = self.conversation.messages
        if messages and messages[-1].role == "assistant":
            answer = messages[-1]
            self.conversation.remove(answer)
            self._view.message_removed(answer)
        if messages and messages[-1].role == "user":
            self._view.problem(None)
            self._ask()

    def edit_last(self) -> str | None:
        """The last question, to be changed; sending it drops what came after."""
        message = None if self.busy else self.conversation.last("user")
        self._editing = message
        return message.text if message is not None else None

    def stop_editing(self) -> None:
        self._editing = None

    def new_chat(self) -> None:
        if self._request_id is not None:
            self._engine.cancel(self._request_id)
        self._answer = self._request_id = self._editing = None
        self.conversation = Conversation()
        self.numbers.clear()
        self._view.problem(None)
        self._view.conversation_replaced()
        self._view.numbers_changed()
        self._view.engine_changed()

    def open(self, conversation: Conversation) -> None:
        """Show another chat."""
        self.new_chat()
        self.conversation = conversation
        self._view.conversation_replaced()

    def choose_model(self, path: str) -> None:
        self._load(path)

    def reload(self) -> None:
        path = self.state.wanted or self.settings.model
        if path is not None:
            self._load(path)

    def restart(self, plain: bool = False) -> None:
        """Start the engine again after it gave up; ``plain`` only tells that drafting is off now."""
        self._view.problem(None)
        self._engine.restart()
        path = self.state.wanted or (self.state.report.path if self.state.report else self.settings.model)
        self.state = EngineState(phase="no_model", wanted=path)
        if path is not None:
            self._load(path)
        if plain:
            self._view.notice("The engine starts with drafting off; settings turn it on again.")

    def apply(self, settings: Settings) -> None:
        """New settings hold from the next message on; some need the model to be loaded again."""
        old, self.settings = self.settings, settings
        path = self.state.wanted
        if path is not None and self.state.phase in ("ready", "loading"):
            changed = old.engine_options(path) != settings.engine_options(path)
            if changed or old.draft_model != settings.draft_model:
                self._load(path)
        self._view.numbers_changed()

    # ---- what the engine says

    def handle(self, events: Iterable[Event]) -> None:
        for event in events:
            self._handle(event)
        self._give_out()

    def _handle(self, event: Event) -> None:
        match event:
            case WorkerLost():
                self._worker_lost(event)
            case LoadProgress():
                self._load_progress(event)
            case Loaded():
                self._loaded(event)
            case Failed():
                self._failed(event)
            case Started() | PrefillProgress() | Chunk() | Done() if event.request_id == self._request_id:
                self._answering(event)
            case _:  # hello, log, and what belongs to an answer nobody waits for any more
                pass

    def _answering(self, event: Started | PrefillProgress | Chunk | Done) -> None:
        answer = self._answer
        if answer is None:
            return
        match event:
            case Started():
                answer.state = "reading"
                answer.seed = event.seed
                self.numbers.started(event)
                self._notices(event.notices)
                self._view.message_changed(answer)
            case PrefillProgress():
                self.numbers.prefilled(event)
            case Chunk():
                self.numbers.chunk(event)
                self._notices(event.notices)
                for piece in event.pieces:
                    answer.append(piece)
                    self._fresh.append(piece)
                if answer.state != "writing":
                    answer.state = "writing"
                    self._view.message_changed(answer)
            case Done():
                self._done(answer, event)
        self._numbers_changed = True

    def _done(self, answer: Message, event: Done) -> None:
        self._give_out()
        self.numbers.done(event.stats)
        answer.stats = event.stats
        if self._history is not None and self.state.report is not None:
            self._history.record(self.state.report, event)
        answer.cut_in_reasoning = event.cut_in_reasoning
        answer.cut_by_length = event.finish_reason == "length"
        if (answer.text, answer.reasoning) != (event.text, event.reasoning):
            # The whole answer is the worker's word; a cut tail may differ from what streamed.
            answer.pieces = [
                piece for piece in (Piece(event.reasoning, None, True), Piece(event.text)) if piece.text
            ]
            self._view.message_removed(answer)
            self._view.message_added(answer)
        self._finish(answer, "stopped" if event.finish_reason == "cancelled" else "done", None)

    def _failed(self, event: Failed) -> None:
        if event.kind == "worker_lost":
            self._told = event.message
        if event.request_id == self._load_id:
            self._load_failed(event)
        elif event.request_id == self._request_id and self._answer is not None:
            self._give_out()
            self.numbers.failed()
            self._numbers_changed = True
            if event.kind in ("bad_input", "no_model") and not self._answer.pieces:
                self._refused(self._answer, event.message)
            else:
                self._finish(self._answer, "failed", event.message)

    def _refused(self, answer: Message, why: str) -> None:
        """The engine would not take the message: it goes back to where it was typed."""
        self.conversation.remove(answer)
        self._view.message_removed(answer)
        self._answer = self._request_id = None
        question = self.conversation.messages[-1] if self.conversation.messages else None
        if question is not None and question.role == "user":
            self.conversation.remove(question)
            self._view.message_removed(question)
            self._view.give_back(question.text)
        self._view.problem(Problem(why, "Your message is back in the box."))
        self._view.engine_changed()

    def _finish(self, answer: Message, state: str, problem: str | None) -> None:
        self._answer = self._request_id = None
        answer.state = "failed" if state == "failed" else "stopped" if state == "stopped" else "done"
        answer.problem = problem
        if state == "stopped" and not answer.pieces:
            # Nothing was said: no empty answer is left behind.
            self.conversation.remove(answer)
            self._view.message_removed(answer)
            self._view.notice("Stopped before the answer began.")
        else:
            self._view.message_changed(answer)
        self._view.engine_changed()

    def _worker_lost(self, event: WorkerLost) -> None:
        if event.restarted and event.reloading:
            self.state = EngineState(phase="loading", wanted=self.state.wanted)
            self._load_id = None  # its load has an id of its own
            if event.message != self._told:
                self._view.notice(f"{event.message} It was started again.")
        elif event.restarted:
            if self.state.phase != "failed":
                self.state = EngineState(phase="failed", wanted=self.state.wanted, problem=event.message)
                if not self._give_up_waiting(event.message):
                    self._view.problem(Problem(event.message, self._kept(), ("reload", "choose")))
        else:
            self.state = EngineState(phase="lost", wanted=self.state.wanted, problem=event.message)
            self._give_up_waiting(event.message)
            self._view.problem(
                Problem(
                    f"{event.message} It stopped several times in a row, so it was not started again.",
                    self._kept(),
                    ("restart", "restart_plain"),
                )
            )
        self._view.engine_changed()

    # ---- loading

    def _load(self, path: str) -> None:
        self.state = EngineState(phase="loading", wanted=path)
        self._view.problem(None)
        self._load_id = self._engine.load(path, self.settings.draft_model, self.settings.engine_options(path))
        self._view.engine_changed()
        self._view.numbers_changed()

    def _load_progress(self, event: LoadProgress) -> None:
        if self.state.phase == "loading" and self._load_id in (None, event.request_id):
            self.state = EngineState(phase="loading", wanted=self.state.wanted, fraction=event.fraction)
            self._engine_changed = True

    def _loaded(self, event: Loaded) -> None:
        if self._load_id not in (None, event.request_id):
            return  # an earlier wish; the one that counts is still to come
        self._load_id = None
        self.state = EngineState(phase="ready", wanted=event.model.path, report=event.model)
        if event.model.path != self._notices_of:
            self._seen_notices.clear()
            self._notices_of = event.model.path
        self._notices(event.model.notices)
        self._view.engine_changed()
        self._view.numbers_changed()
        if self._answer is not None and self._request_id is None:
            self._generate()

    def _load_failed(self, event: Failed) -> None:
        self._load_id = None
        self.state = EngineState(phase="failed", wanted=self.state.wanted, problem=event.message)
        if not self._give_up_waiting(event.message):  # else its card says so already
            self._view.problem(Problem(event.message, self._kept(), ("reload", "choose")))
        self._view.engine_changed()

    # ---- asking

    def _ask(self) -> None:
        self._answer = self.conversation.add_answer()
        self._request_id = None
        self.numbers.clear()
        self._view.message_added(self._answer)
        if self.state.phase == "ready":
            self._generate()
        elif self.state.phase == "failed":
            self.reload()
        elif self.state.phase == "lost":
            self.restart()
        self._view.engine_changed()
        self._view.numbers_changed()

    def _generate(self) -> None:
        settings = self.settings
        self._request_id = self._engine.generate(
            self.conversation.prompt(settings.system_prompt),
            sampling=settings.sampling_params(),
            drafting=settings.drafting_params(),
            max_tokens=settings.max_tokens or None,
            reproducible=settings.verification == "reproducible",
            exact=settings.verification == "exact",
            started_at=self.conversation.started_at,
        )

    def _give_up_waiting(self, why: str) -> bool:
        """A message that waited for the model gets its reason; Retry asks again."""
        if self._answer is None or self._request_id is not None:
            return False
        self._finish(self._answer, "failed", why)
        return True

    def _kept(self) -> str:
        return "Your chat is kept." if self.conversation.messages else ""

    # ---- telling the view, once per batch

    def _give_out(self) -> None:
        if self._fresh and self._answer is not None:
            self._view.answer_grew(self._answer, self._fresh)
        self._fresh = []
        if self._numbers_changed:
            self._numbers_changed = False
            self._view.numbers_changed()
        if self._engine_changed:
            self._engine_changed = False
            self._view.engine_changed()

    def _notices(self, notices: Iterable[str]) -> None:
        for text in notices:
            if text not in self._seen_notices:
                self._seen_notices.add(text)
                self._view.notice(text)
