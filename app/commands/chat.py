"""``slipstream chat``: one prompt through the same engine client and worker as the window's."""

from __future__ import annotations

import argparse
import json
import queue
import sys
from pathlib import Path

import msgspec

from app.cli import INTERRUPTED, UsageError, failure_status
from app.engine_client import EngineClient, Event, WorkerLost
from app.local_models import local_models, models_folder
from app.protocol import (
    NEURAL,
    ChatMessage,
    Chunk,
    Done,
    DraftingParams,
    EngineOptions,
    Failed,
    Gbnf,
    Grammar,
    JsonSchema,
    Loaded,
    ModelReport,
    Piece,
    SamplingParams,
    Started,
)
from app.settings import SettingsFile
from app.speed_history import SpeedHistory
from model_store.starter import STARTER_NAME, starter_path


def run_chat(options: argparse.Namespace) -> int:
    """Answer ``options.prompt``. Raises UsageError for input that cannot be used."""
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise UsageError("the message is empty")
    drafting: DraftingParams = options.spec
    asked = [name for name in drafting.links if name in NEURAL] if drafting.mode == "manual" else []
    if asked == ["draft"] and options.draft_model is None:
        raise UsageError("the drafter 'draft' needs --draft-model FILE")
    if options.draft_model is not None and not options.draft_model.exists():
        raise UsageError(f"there is no draft model file {str(options.draft_model)!r}")
    grammar = _grammar(options)
    model = model_path(options.model)
    settings = SettingsFile().load()
    engine_options = msgspec.structs.replace(
        settings.engine_options(str(model)), n_threads=options.threads or settings.n_threads, n_parallel=1
    )
    if options.no_learn:
        engine_options = msgspec.structs.replace(engine_options, answers_folder=None)
    if options.lookup_cache_static is not None:
        lookup_cache = str(options.lookup_cache_static.absolute())
        engine_options = msgspec.structs.replace(engine_options, lookup_cache=lookup_cache)
    given = {
        "temperature": options.temp,
        "repeat_penalty": options.repeat_penalty,
        "frequency_penalty": options.frequency_penalty,
        "presence_penalty": options.presence_penalty,
        "logit_bias": None if options.logit_bias is None else dict(options.logit_bias),
    }
    sampling = msgspec.structs.replace(
        settings.sampling_params(), **{name: value for name, value in given.items() if value is not None}
    )
    drafting = msgspec.structs.replace(
        drafting,
        max_draft=options.draft_max or settings.max_draft,
        floor=settings.floor(drafting.mode) if options.draft_floor is None else options.draft_floor,
    )
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    client = EngineClient(events.put)
    client.start()
    try:
        return _Chat(client, events, quiet=options.json).run(
            model,
            options.draft_model,
            engine_options,
            prompt,
            sampling=sampling,
            drafting=drafting,
            max_tokens=options.max_tokens or settings.max_tokens or None,
            seed=options.seed,
            reproducible=settings.verification == "reproducible",
            exact=options.exact or settings.verification == "exact",
            grammar=grammar,
        )
    finally:
        client.close()


def _grammar(options: argparse.Namespace) -> Grammar | None:
    """Raises UsageError for a file that cannot be read; the worker judges what is in it."""
    if options.grammar_file is not None:
        return Gbnf(_text(options.grammar_file))
    if options.json_schema is None:
        return None
    inline = options.json_schema.lstrip().startswith("{")
    return JsonSchema(options.json_schema if inline else _text(Path(options.json_schema)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"{path} cannot be read: {reason}") from error


def model_path(wanted: str | None) -> Path:
    """A file as given, or one of the models folder by its name; the starter by default."""
    if wanted is None:
        starter = starter_path()
        if starter is None:
            raise UsageError(f"the starter model {STARTER_NAME} is not installed; name one with -m")
        return starter
    if Path(wanted).exists():
        return Path(wanted)
    folder = models_folder(SettingsFile().load())
    named = [m.path for m in local_models(folder) if wanted in (m.name, m.path.name, m.path.stem)]
    if not named:
        raise UsageError(f"there is no model file {wanted!r}, and none of that name in {folder}")
    return named[0]


class _Chat:
    """One load and one answer, printed as they come."""

    def __init__(self, client: EngineClient, events: queue.SimpleQueue[Event], *, quiet: bool) -> None:
        self._client = client
        self._events = events
        self._quiet = quiet
        self._model = ""
        self._thinking = False

    def run(
        self,
        model: Path,
        draft_model: Path | None,
        engine_options: EngineOptions,
        prompt: str,
        *,
        sampling: SamplingParams,
        drafting: DraftingParams,
        max_tokens: int | None,
        seed: int | None,
        reproducible: bool,
        exact: bool,
        grammar: Grammar | None,
    ) -> int:
        draft = str(draft_model) if draft_model else None
        self._client.load(str(model), draft, engine_options)
        loaded = self._wait(Loaded)
        if isinstance(loaded, Failed):
            return _failed(loaded)
        assert isinstance(loaded, Loaded)
        self._model = loaded.model.name
        for notice in loaded.model.notices:
            self._note(notice)
        if draft_model is None and (reason := _no_neural(drafting, loaded.model)):
            self._note(reason)
        request = self._client.generate(
            [ChatMessage("user", prompt)],
            sampling=sampling,
            drafting=drafting,
            max_tokens=max_tokens,
            seed=seed,
            reproducible=reproducible,
            exact=exact,
            grammar=grammar,
        )
        interrupted = False
        while True:
            try:
                ended = self._wait(Done)
                break
            except KeyboardInterrupt:
                interrupted = True
                self._client.cancel(request)
        if isinstance(ended, Failed):
            return _failed(ended)
        assert isinstance(ended, Done)
        self._print(ended)
        SpeedHistory(self._note).record(loaded.model, ended)
        return INTERRUPTED if interrupted else 0

    def _wait(self, kind: type[Loaded] | type[Done]) -> Event:
        """Handle events until one of ``kind``, or a failure."""
        while True:
            event = self._events.get()
            if isinstance(event, Chunk) and not self._quiet:
                self._show(event.pieces)
            if isinstance(event, Chunk | Started):
                for notice in event.notices:
                    self._note(notice)
            if isinstance(event, kind | Failed):
                return event
            if isinstance(event, WorkerLost):
                return Failed(0, "worker_lost", event.message)

    def _print(self, done: Done) -> None:
        stats = done.stats
        if self._quiet:
            report = {
                "text": done.text,
                "reasoning": done.reasoning,
                "token_ids": done.token_ids,
                "finish_reason": done.finish_reason,
                "seed": done.seed,
                "model": self._model,
                "stats": stats.as_report(),
            }
            print(json.dumps(report, ensure_ascii=False))
            return
        if not (done.text or done.reasoning).endswith("\n"):
            print()
        parts = [f"{stats.completion_tokens} tokens", f"first {stats.prefill_s:.2f} s"]
        if stats.tokens_per_second is not None:
            parts.append(f"{stats.tokens_per_second:.1f} tokens/s")
        if stats.speedup is not None and stats.drafted:
            parts.append(f"{stats.speedup:.2f}x plain decoding")
        if stats.acceptance_rate is not None:
            parts.append(f"{stats.acceptance_rate:.0%} of {stats.drafted} drafted accepted")
        elif stats.undrafted:
            parts.append(f"nothing drafted: {max(stats.undrafted, key=stats.undrafted.__getitem__)}")
        if stats.tokens_per_pass is not None:
            parts.append(f"{stats.tokens_per_pass:.2f} tokens per target pass")
        for name, counts in stats.by_drafter.items():
            parts.append(f"{name} {counts.accepted}/{counts.drafted}")
        parts.append(f"seed {done.seed}")
        if done.finish_reason != "stop":
            parts.append("cut while thinking" if done.cut_in_reasoning else done.finish_reason)
        print("\n" + " · ".join(parts), file=sys.stderr)

    def _show(self, pieces: tuple[Piece, ...]) -> None:
        for piece in pieces:
            if self._thinking and not piece.reasoning:
                print("\n")
            self._thinking = piece.reasoning
            print(piece.text, end="")
        sys.stdout.flush()

    @staticmethod
    def _note(text: str) -> None:
        print(f"slipstream: {text}", file=sys.stderr)


def _no_neural(drafting: DraftingParams, model: ModelReport) -> str | None:
    """A line for who named neural drafters of which none is there."""
    off = {drafter.name: drafter.reason for drafter in model.drafters if drafter.reason}
    asked = [name for name in drafting.links if name in NEURAL]
    if drafting.mode == "auto" or not asked or any(name not in off for name in asked):
        return None
    return f"Drafting with {asked[-1]} is off: {off[asked[-1]]}."


def _failed(failure: Failed) -> int:
    print(f"slipstream: {failure.message}", file=sys.stderr)
    return failure_status(failure.kind)
