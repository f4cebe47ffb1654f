"""The engine: requests in, events out. What computes behind it, llama.cpp or a script, is a LoadedModel."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from app.protocol import (
    Chunk,
    Device,
    Done,
    Embed,
    Embedded,
    Failed,
    FailureKind,
    FinishReason,
    FromWorker,
    Generate,
    Load,
    ModelReport,
    PrefillProgress,
    Started,
    TokenLogprob,
)
from app.text_kind import repeated_share
from app.worker.answer import Answer
from app.worker.loaded_model import (
    ClosableSource,
    Embedder,
    EngineError,
    LoadedModel,
    Loader,
    NoExact,
)
from app.worker.prompt_cache import PromptCache, free_bytes
from app.worker.slots import Slots
from drafting.auto_chain import AutoChain
from drafting.chain import Chain
from drafting.distribution import Noise
from drafting.drafter import Interrupted
from drafting.exact import ExactRows
from drafting.floor import Floor
from drafting.loop import Loop, Step
from drafting.sequence import Sequence as TokenSequence
from drafting.statistics import Statistics
from drafting.target import Target
from native.errors import GrammarError

log = logging.getLogger(__name__)

# Seeds are shown and stored as JSON numbers, which are exact up to 2^53.
_SEED_LIMIT = 2**53


@dataclass
class _Request:
    message: Generate
    sequence: TokenSequence
    answer: Answer
    source: ClosableSource
    seed: int
    begun: tuple[int, ...]
    reported: set[str] = field(default_factory=set)  # failed links the person was told of
    chances: list[TokenLogprob] = field(default_factory=list)  # of the answer's tokens, where asked for
    told_chances: int = 0  # of these


class Engine:
    """Owns the loaded model. All methods belong to one thread, but for ``cancel``."""

    def __init__(
        self,
        loader: Loader,
        name: str,
        devices: tuple[Device, ...] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = name
        self.devices = devices
        self._loader = loader
        self._clock = clock
        self._model: LoadedModel | None = None
        self._embedder: Embedder | None = None  # in its place
        self._loop: Loop | None = None
        self._slots: Slots | None = None
        self._requests: list[_Request] = []
        self._switched_off: dict[str, str] = {}  # links that failed with this model
        self._told: set[str] = set()  # lines about its limits
        self._floors: dict[int, Floor] = {}  # what the drafts of a slot's links were worth
        self._lock = threading.Lock()  # guards what cancel touches
        self._active_ids: set[int] = set()
        self._cancelled: set[int] = set()

    # ---- model

    def load(self, request: Load, progress: Callable[[float], None]) -> ModelReport:
        """Put a model into memory. The one before is dropped first, also where this raises
        EngineError: after a failed load there is no model."""
        self.unload()

        def wanted() -> bool:
            with self._lock:
                return request.request_id not in self._cancelled

        def report(fraction: float) -> bool:
            progress(fraction)
            return wanted()

        try:
            if not wanted():
                raise EngineError("cancelled", "The load was cancelled.")
            model = self._loader(request, report)
        finally:
            with self._lock:
                self._cancelled.discard(request.request_id)
        if model.report.embeds:
            self._embedder = cast(Embedder, model)
            return model.report
        model = cast(LoadedModel, model)
        self._model = model
        self._loop = Loop(model.target, self._clock, model.costs, model.threads)
        weights = model.report.size_bytes
        cache = PromptCache(request.options.prompt_cache_mb << 20, lambda: free_bytes() - weights)
        self._slots = Slots(model.target, model.target.n_slots, cache)
        return model.report

    def unload(self) -> None:
        if self._embedder is not None:
            self._embedder.close()
            self._embedder = None
        model, self._model, self._loop, self._slots = self._model, None, None, None
        self._switched_off.clear()
        self._told.clear()
        self._floors.clear()
        if model is not None:
            model.close()

    # ---- requests

    @property
    def busy(self) -> bool:
        return bool(self._requests)

    @property
    def has_room(self) -> bool:
        """Another request can start now."""
        slots = self._slots
        return slots is None or slots.n_free > 0  # without a model it fails at once

    def given_up(self, message: Generate) -> Done | None:
        """The end of a request that was cancelled before it began: no slot loses for it what it holds of
        another chat. None for one that is wanted."""
        with self._lock:
            if message.request_id not in self._cancelled:
                return None
            self._cancelled.discard(message.request_id)
        return Done(
            request_id=message.request_id,
            finish_reason="cancelled",
            text="",
            reasoning="",
            cut_in_reasoning=False,
            token_ids=(),
            seed=message.seed or 0,
            stats=Statistics(),
        )

    def start(self, message: Generate) -> Started:
        """Begin an answer. Raises EngineError."""
        model, loop, slots = self._model, self._loop, self._slots
        if self._embedder is not None:
            raise EngineError("bad_input", "This is an embedding model, which writes no text.")
        if model is None or loop is None or slots is None:
            raise EngineError("no_model", "No model is loaded.")
        last = message.messages[-1] if message.messages else None
        said = last.content if last is not None else message.prompt or ""
        # A function may give nothing back, and an answer may have been nothing but calls.
        if not said.strip() and (last is None or last.role in ("user", "system")):
            raise EngineError("bad_input", "The message is empty.", "prompt")
        if message.begun is not None and message.grammar is not None:
            raise EngineError("bad_input", "An answer that must follow a grammar cannot be continued.")
        prepared = model.prepare(message)
        n_prompt, n_ctx = len(prepared.tokens), model.target.n_ctx
        if n_prompt >= n_ctx:
            raise EngineError(
                "too_long",
                f"The prompt is longer than the context: {n_prompt:,} tokens, where {n_ctx - 1:,} fit. "
                "Shorten the message, start a new chat, or choose a larger context in the settings.",
                "prompt",
            )
        named = message.seed is not None
        seed = secrets.randbelow(_SEED_LIMIT) if message.seed is None else message.seed
        notices = list(prepared.notices)
        exact = None
        if message.exact:
            try:
                exact = model.exact_rows()
            except NoExact as error:
                notices.append(str(error))
        if model.controller is not None:
            model.controller.least_rows = exact.least if exact else 1
        # Text that goes on from a prompt is no chat's answer: a tag in it is text as well.
        begun = message.begun is not None or message.prompt is not None
        answer = Answer(model.token_bytes, prepared.end_tokens, prepared.stops, prepared.closing, begun)
        source = model.source(message.sampling, prepared)
        slot, computed = slots.take(prepared.tokens, bool(exact and exact.most))
        try:
            chain = self._chain(model, message, slot)
        except BaseException:
            slots.give_back(slot, prepared.tokens[:computed])
            source.close()
            raise
        if chain.names and (shorter := _clamped(message.drafting.max_draft, model.target, exact)):
            if shorter not in self._told:  # once is enough for what does not change
                notices.append(shorter)
            self._told.add(shorter)
        sequence = TokenSequence(
            seq=slot,
            tokens=prepared.tokens,
            source=source,
            chain=chain,
            noise=Noise(seed),
            mode="reproducible" if named or message.reproducible or message.exact else "rejection",
            take=answer.take,
            max_new=message.max_tokens,
            max_draft=message.drafting.max_draft,
            top=message.logprobs,
            least_rows=exact.least if exact else 1,
            most_rows=exact.most if exact else 0,
            computed=computed,
        )
        request = _Request(message, sequence, answer, source, seed, prepared.begun, set(chain.failures))
        loop.add(sequence)
        self._requests.append(request)
        with self._lock:
            self._active_ids.add(message.request_id)
        return Started(
            request_id=message.request_id,
            prompt_tokens=n_prompt,
            reused_tokens=computed,
            seed=seed,
            notices=tuple(notices),
        )

    def embed(self, message: Embed) -> Embedded:
        """Vectors of texts, all at once. Raises EngineError."""
        embedder = self._embedder
        if embedder is None:
            if self._model is None:
                raise EngineError("no_model", "No model is loaded.")
            raise EngineError("bad_input", "This model writes text; embeddings need an embedding model.")
        with self._lock:
            embedder.allow()
            self._active_ids.add(message.request_id)
            if message.request_id in self._cancelled:
                embedder.abort()
        try:
            vectors, tokens = embedder.embed(message.texts)
        except Interrupted as error:
            raise EngineError("cancelled", "It was cancelled.") from error
        finally:
            with self._lock:
                self._active_ids.discard(message.request_id)
                self._cancelled.discard(message.request_id)
        return Embedded(message.request_id, vectors, tokens)

    def cancel(self, request_id: int) -> None:
        """End a request (or a load) early, also in the middle of a pass. Any thread may call."""
        with self._lock:
            self._cancelled.add(request_id)
            model = self._model or self._embedder
            if model is not None and self._active_ids and self._active_ids <= self._cancelled:
                model.abort()

    def step(self) -> list[FromWorker]:
        """One target pass for all running requests, as events."""
        assert self._model is not None and self._loop is not None
        with self._lock:
            # One look: whoever cancels after it finds the pass it wants to stop.
            self._model.allow()
            ids = self._cancelled & self._active_ids if self._cancelled else ()
            cancelled = [r for r in self._requests if r.message.request_id in ids] if ids else ()
        events: list[FromWorker] = []
        for request in cancelled:
            request.answer.finish()
            if rest := request.answer.pieces(0, 0, None):
                events.append(Chunk(request_id=request.message.request_id, pieces=rest, tokens=0))
            events.append(self._end(request, "cancelled"))
        if not self._requests:
            return events
        try:
            steps = self._loop.step()
        except Interrupted:
            return events  # the next step finds out who was cancelled
        except Exception as error:
            log.exception("a pass failed")
            return events + [self._fail(request, error) for request in list(self._requests)]
        for step in steps:
            events += self._report(step)
        return events

    def settle(self) -> bool:
        """Call it while nothing else is to be done, again as long as it returns True."""
        try:
            return self._model is not None and self._model.settle()
        except Exception:
            log.exception("what was left to do after the last answer failed")
            return False

    def close(self) -> None:
        self.unload()

    # ---- inside

    def _chain(self, model: LoadedModel, message: Generate, slot: int) -> Chain:
        """The links asked for; those that failed before stay off, and the chain knows why."""
        drafting, off = message.drafting, self._switched_off
        offered = model.links(slot, drafting, message.sampling)
        links = [link for link in offered if link.name not in off]
        floor = self._floors.setdefault(slot, Floor())
        floor.rate = drafting.floor
        if drafting.mode == "auto" and model.controller is not None:
            controller = model.controller.fresh()
            chain: Chain = AutoChain(links, controller, self._clock, model.history(slot), floor)
        else:
            chain = Chain(links, model.history(slot), floor)
        chain.failures.update({link.name: off[link.name] for link in offered if link.name in off})
        return chain

    def _report(self, step: Step) -> list[FromWorker]:
        request = next(r for r in self._requests if r.sequence is step.sequence)
        sequence = request.sequence
        if step.error is not None:
            return [self._fail(request, step.error)]
        if not step.tokens:
            return [PrefillProgress(request.message.request_id, step.prefilled, sequence.n_prompt)]
        if sequence.finished is not None:
            # Text held back for a stop that never came belongs into the last chunk.
            request.answer.finish()
        events: list[FromWorker] = [self._chunk(request, step)]
        if sequence.finished is not None:
            events.append(self._end(request, sequence.finished))
        return events

    def _chunk(self, request: _Request, step: Step) -> Chunk:
        first = request.answer.taken - len(step.tokens)
        started = request.sequence.started
        return Chunk(
            request_id=request.message.request_id,
            pieces=request.answer.pieces(first, step.accepted, step.drafter),
            tokens=len(step.tokens),
            drafter=step.drafter,
            drafted=step.drafted,
            accepted=step.accepted,
            silence=step.silence,
            elapsed_s=self._clock() - started if started is not None else 0.0,
            speedup=request.sequence.stats.speedup,
            notices=self._notices(request),
            logprobs=self._logprobs(request, step) if request.message.logprobs is not None else (),
        )

    def _logprobs(self, request: _Request, step: Step) -> tuple[TokenLogprob, ...]:
        """Of tokens whose text is certain to stay: none of a stop, however it was cut into tokens."""
        assert self._model is not None
        spell = self._model.token_bytes
        request.chances += [
            TokenLogprob(spell(token), logprob, tuple((spell(other), chance) for other, chance in top))
            for token, logprob, top in step.chances
            if not request.answer.ends_with(token)
        ]
        told, request.told_chances = request.told_chances, request.answer.certain
        return tuple(request.chances[told : request.told_chances])

    def _notices(self, request: _Request) -> tuple[str, ...]:
        news = self._floors[request.sequence.seq].news()
        return self._failures(request) + news if request.sequence.chain.failures else news

    @staticmethod
    def _failures(request: _Request) -> tuple[str, ...]:
        """A line for each reason why links were switched off since the last look."""
        names: dict[str, list[str]] = {}
        for name, reason in request.sequence.chain.failures.items():
            if name not in request.reported:
                names.setdefault(reason, []).append(name)
                request.reported.add(name)
        return tuple(f"Drafting with {', '.join(who)} is off: {why}" for why, who in names.items())

    def _end(self, request: _Request, reason: FinishReason) -> Done:
        assert self._model is not None
        answer = request.answer
        self._release(request, request.sequence.tokens[: request.sequence.computed])
        begun = request.message.begun
        if begun is None and not answer.reasoning:
            self._model.answered(answer.text, answer.token_ids)
        elif begun is not None and request.begun:
            self._model.answered(begun.text + answer.text, (*request.begun, *answer.token_ids))
        if reason != "cancelled":
            self._model.learn(answer.said_ids)
        return Done(
            request_id=request.message.request_id,
            finish_reason=reason,
            text=answer.text,
            reasoning=answer.reasoning,
            cut_in_reasoning=answer.thinking and reason != "stop",
            token_ids=answer.token_ids,
            seed=request.seed,
            stats=request.sequence.stats,
            repeated=repeated_share(answer.token_ids, request.sequence.tokens[: request.sequence.n_prompt]),
        )

    def _fail(self, request: _Request, error: Exception) -> Failed:
        """A pass went wrong: nothing is known of the KV cache any more, so it is dropped."""
        assert self._model is not None
        self._model.target.forget(request.sequence.seq)
        self._release(request, [])
        if isinstance(error, GrammarError):  # what was asked for cannot be said
            return Failed(request.message.request_id, "bad_input", f"The answer cannot go on: {error}.")
        kind: FailureKind = "out_of_memory" if isinstance(error, MemoryError) else "internal"
        return Failed(request.message.request_id, kind, f"The engine failed: {error}")

    def _release(self, request: _Request, kept: list[int]) -> None:
        assert self._loop is not None and self._slots is not None
        sequence = request.sequence
        self._loop.remove(sequence)
        self._requests.remove(request)
        self._switched_off.update(sequence.chain.failures)
        self._slots.give_back(sequence.seq, kept, sequence.n_prompt - 1 if sequence.most_rows else 0)
        request.source.close()
        with self._lock:
            self._active_ids.discard(request.message.request_id)
            self._cancelled.discard(request.message.request_id)


def _clamped(max_draft: int, target: Target, exact: ExactRows | None) -> str | None:
    """A sentence about drafts that must be shorter than asked for; None where they need not be."""
    room = min(target.n_batch - 1, target.n_outputs - target.n_slots)
    why = "a pass has room for no more"
    if exact is not None and 0 < exact.most <= room:
        room, why = exact.most - 1, "exact mode needs passes of about one size"
    if max_draft <= room:
        return None
    if room < 1:
        return "Nothing is drafted: a pass has room for one token only."
    tokens = "1 token" if room == 1 else f"{room} tokens"
    return f"Drafts hold at most {tokens}, not {max_draft}: {why}."
