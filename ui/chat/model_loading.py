"""Which model is in memory and which one is wanted: loads, their failures, and the worker's end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.engine_client import WorkerLost
from app.protocol import EngineOptions, Failed, Loaded, LoadProgress
from app.settings import Settings
from ui.chat.engine import Engine
from ui.chat.view import Problem, View
from ui.engine_state import EngineState

_NO_LOAD = -1  # no load is waited for; None stands for one whose id is not known


class ModelLoading:
    """``state`` is what the window shows of it. Whoever waits for a model hears of it by
    ``on_ready`` or ``on_failed``, which says whether somebody waited and has told the reason.
    ``writing`` says whether an answer is being written: none is interrupted for another load."""

    def __init__(
        self,
        engine: Engine,
        view: View,
        settings: Settings,
        on_ready: Callable[[], None],
        on_failed: Callable[[str], bool],
        kept: Callable[[], str],
        writing: Callable[[], bool],
    ) -> None:
        self.state = EngineState()
        self.settings = settings
        self.changed = False  # the view is to be told at the end of a batch
        self.told: str | None = None  # the last loss of the worker that an answer already tells
        self._engine = engine
        self._view = view
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._kept = kept
        self._writing = writing
        # What the model in memory, or on its way there, was loaded with.
        self._loaded_with: tuple[str | None, EngineOptions] | None = None
        self.reload_is_due = False
        """The model is loaded again as soon as no answer is being written."""
        self._load_id: int | None = None
        self._seen_notices: set[str] = set()
        self._notices_of: str | None = None  # the model that they were about

    # ---- what a person does

    def load(self, path: str) -> None:
        self.state = EngineState(phase="loading", wanted=path)
        self._view.problem(None)
        self.reload_is_due = False
        self._loaded_with = draft_model, options = (
            self.settings.draft_model,
            self.settings.engine_options(path),
        )
        self._load_id = self._engine.load(path, draft_model, options)
        self._view.engine_changed()
        self._view.numbers_changed()

    def reload(self) -> None:
        """Load the model again, or for the first time; an answer that is being written ends first."""
        if self._writing():
            self.reload_is_due = True
            self._view.engine_changed()
            return
        path = self.state.wanted or self.settings.model
        if path is not None:
            self.load(path)

    def unload(self) -> None:
        """Take the model out of memory, or stop loading it; the next message loads it again. Nothing
        happens while an answer is being written."""
        if self._writing() or self.state.phase not in ("loading", "ready"):
            return
        if self.state.phase == "loading" and self._load_id is not None:
            self._engine.cancel(self._load_id)
        self._engine.unload()
        self._load_id = _NO_LOAD
        self.state = EngineState(phase="no_model", wanted=self.state.wanted)
        self._view.engine_changed()
        self._view.numbers_changed()

    @property
    def needs_reload(self) -> bool:
        """The settings ask for something that the model in memory was not loaded with."""
        path = self.state.wanted
        if path is None or self._loaded_with is None or self.state.phase not in ("ready", "loading"):
            return False
        return self._loaded_with != (self.settings.draft_model, self.settings.engine_options(path))

    def restart(self, plain: bool) -> None:
        self._view.problem(None)
        self._engine.restart()
        path = self.state.wanted or (self.state.report.path if self.state.report else self.settings.model)
        self.state = EngineState(phase="no_model", wanted=path)
        if path is not None:
            self.load(path)
        if plain:
            self._view.notice("The engine starts with drafting off; settings turn it on again.", "settings")

    def apply(self, settings: Settings, *, later: bool) -> None:
        """Where the model must be loaded again for them, that is done at once, or ``later``: before the
        next answer. No answer is interrupted for it."""
        self.settings = settings
        if not self.needs_reload:
            self.reload_is_due = False
        elif not later:
            self.reload()

    def answer_ended(self) -> None:
        """Nothing is being written, perhaps."""
        if self.reload_is_due and not self._writing():
            self.reload()

    def get_ready(self) -> bool:
        """Whether a message can be sent now; else the model comes, or has come as far as it will."""
        stale = self.state.phase == "ready" and self.needs_reload
        if stale or self.state.phase in ("failed", "no_model"):
            self.reload()
        elif self.state.phase == "lost":
            self.restart(plain=False)
        return self.state.phase == "ready" and not self.needs_reload

    # ---- what the engine says

    def progressed(self, event: LoadProgress) -> None:
        if self.state.phase == "loading" and self._load_id in (None, event.request_id):
            self.state = EngineState(phase="loading", wanted=self.state.wanted, fraction=event.fraction)
            self.changed = True

    def loaded(self, event: Loaded) -> None:
        if self._load_id not in (None, event.request_id):
            return  # an earlier wish; the one that counts is still to come
        self._load_id = None
        self.state = EngineState(phase="ready", wanted=event.model.path, report=event.model)
        if event.model.path != self._notices_of:
            self._seen_notices.clear()
            self._notices_of = event.model.path
        self.notices(event.model.notices)
        self._view.engine_changed()
        self._view.numbers_changed()
        self._on_ready()

    def failed(self, event: Failed) -> bool:
        """Whether it was about a load."""
        if event.kind == "worker_lost":
            self.told = event.message
        if event.request_id != self._load_id:
            return False
        self._load_id = None
        self._give_up(event.message)
        self._view.engine_changed()
        return True

    def lost(self, event: WorkerLost) -> None:
        if event.restarted and event.reloading:
            self.state = EngineState(phase="loading", wanted=self.state.wanted)
            self._load_id = None  # its load has an id of its own
            if event.message != self.told:
                self._view.notice(f"{event.message} It was started again.", "logs")
        elif event.restarted:
            if self.state.phase not in ("failed", "no_model"):
                self._give_up(event.message)
        else:
            self.state = EngineState(phase="lost", wanted=self.state.wanted, problem=event.message)
            self._on_failed(event.message)
            self._view.problem(
                Problem(
                    f"{event.message} It stopped several times in a row, so it was not started again.",
                    self._kept(),
                    ("restart", "restart_plain"),
                )
            )
        self._view.engine_changed()

    def notices(self, notices: Iterable[str]) -> None:
        """What a person should read once."""
        for text in notices:
            if text not in self._seen_notices:
                self._seen_notices.add(text)
                self._view.notice(text)

    def _give_up(self, why: str) -> None:
        self.state = EngineState(phase="failed", wanted=self.state.wanted, problem=why)
        if not self._on_failed(why):  # else its card says so already
            self._view.problem(Problem(why, self._kept(), ("reload", "choose")))
