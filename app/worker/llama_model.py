"""A GGUF in memory behind the engine's interface: target, prompt, drafters, and what they need."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app import paths
from app.chat_template import TemplateError
from app.protocol import (
    DRAFTERS,
    DrafterReport,
    DraftingParams,
    EngineOptions,
    Generate,
    Load,
    ModelReport,
    SamplingParams,
)
from app.reasoning import TAGS
from app.tools import read_functions
from app.worker.calibration import pass_seconds
from app.worker.contexts import NEVER, make_context, target_context
from app.worker.drafters import HEADS_OFF, Drafters
from app.worker.gpu_layers import gpu_layers, known_devices
from app.worker.grammar import ROOT, answer_gbnf
from app.worker.learning import Learning
from app.worker.loaded_model import NO_EXACT, EngineError, NoExact, Prepared
from app.worker.prompt import PromptBuilder
from app.worker.template_choice import choose_template
from app.worker.weights import load_weights, loaded_file
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import Drafter
from drafting.exact import ExactRows
from drafting.exact_check import DEPTH, POSITIONS, check
from drafting.follower_counts import FollowerCounts
from drafting.history import History
from drafting.llama_target import LlamaSource, LlamaTarget, llama_source
from drafting.lookup_file import LookupFileError, read_lookup_file
from drafting.neural import NeuralDrafter
from drafting.parameters import AUTOMATIC
from drafting.thread_count import ThreadCount
from model_store.bundled import default_drafter
from model_store.check import (
    ModelFileError,
    check_model_file,
    describe_os_error,
    shown_name,
)
from model_store.fingerprint import tokenizer_fingerprint
from model_store.gguf_header import GgufHeader
from model_store.pairing import check_heads_inside
from native.context import Context
from native.errors import GrammarError
from native.grammar import Grammar
from native.model import Model
from native.sampler import SamplerOptions

log = logging.getLogger(__name__)

LONGEST_DRAFT = 64
CALIBRATION_S = 1.5
_NO_EXACT_TOGETHER = (
    "Exact mode is off: several answers are computed together, and what one of them computes depends on "
    "the size of the others to the last bit."
)
_NO_DRAFTERS = tuple(DrafterReport(name, NEVER) for name in DRAFTERS)
_UNCHECKED = ExactRows(0, 0)
_ANY_ROWS = ExactRows(1, 0)  # where nothing is ever drafted, every answer is the plain one


class LlamaModel:
    """Loads target and draft model; a draft model that cannot be used never stops the chat."""

    def __init__(self, request: Load, progress: Callable[[float], bool]) -> None:
        """Raises EngineError."""
        path = Path(request.model_path)
        options = request.options
        notices: list[str] = []
        try:
            header = check_model_file(path, "chat")
        except ModelFileError as error:
            raise EngineError("bad_model", str(error)) from error
        self._no_heads = _no_heads(request, header)
        named = request.draft_model_path
        drafter = Path(named) if named is not None else default_drafter(paths.assets_dir(), path)
        placed = gpu_layers(path, header, drafter, options, LONGEST_DRAFT, known_devices())
        notices += [placed.notice] if placed.notice is not None else []
        here = msgspec.structs.replace(options, n_gpu_layers=placed.n_gpu_layers)
        model = self._model = self._load_target(path, here, progress, notices)
        self._draft_path = drafter
        self._drafters: Drafters | None = None
        self._options = options
        self._learning: Learning | None = None
        try:
            if not model.has_decoder or model.vocab_type == "none":
                raise EngineError("bad_model", f"{path.name} cannot write text.")
            n_ctx = options.n_ctx or model.n_ctx_train
            if n_ctx > model.n_ctx_train > 0:
                n_ctx = model.n_ctx_train
                notices.append(f"The context is {n_ctx:,} tokens: this model knows no more.")
            made = target_context(model, options, n_ctx, LONGEST_DRAFT)
            context, self._dropping = made.context, made.dropping
            self._context = context
            notices += made.notices
            self.target = LlamaTarget(context)
            template, news = choose_template(model, options.chat_template)
            notices += news
            self._prompts = PromptBuilder(model, template)
            # Without its prompt's doing, a model may think where its template knows of thoughts.
            self._thoughts = [pair for pair in TAGS if any(tag in template.source for tag in pair)]
            self._end_tokens, self._stops = self._find_end(notices)
            self._thought_tags = frozenset(
                token for tags in TAGS for tag in tags if (token := model.special_tokens.get(tag)) is not None
            )
            self._bytes: dict[int, bytes] = {}
            self._exact: ExactRows | None = _UNCHECKED
            fingerprint = tokenizer_fingerprint(header)
            if options.answers_folder is not None and fingerprint is not None and not self._cannot_draft:
                self._learning = Learning(Path(options.answers_folder), fingerprint)
                notices += self._learning.news()
            static = self._load_lookup_cache(notices)
            drafters = self._make_drafters(static, notices)
            seconds, back = pass_seconds(context, CALIBRATION_S)
            self.costs = CostCurve(seconds, repeats=made.dropping == "repeat", back=back)
            self.controller = Controller(self.costs, drafters.costs if drafters is not None else None)
            self.threads = ThreadCount(context.options.n_threads, self._use_threads)
        except BaseException:
            self.close()
            raise
        draft_model = drafters.draft_model if drafters is not None else None
        self.report = ModelReport(
            path=str(path),
            name=path.stem,
            architecture=model.architecture,
            description=model.description,
            size_bytes=model.size_bytes,
            kv_bytes=context.memory.kv,
            n_vocab=model.n_vocab,
            n_ctx=self.target.n_ctx,
            n_ctx_train=model.n_ctx_train,
            max_draft=self.target.n_outputs - self.target.n_slots,
            n_threads=context.options.n_threads,
            recurrent=model.is_recurrent,
            hybrid=model.is_hybrid,
            swa=model.n_swa > 0,
            draft_model_path=str(draft_model.path) if draft_model is not None else None,
            drafters=drafters.reports() if drafters is not None else _NO_DRAFTERS,
            notices=tuple(notices),
            file=loaded_file(path, header),
            draft_file=drafters.draft_file if drafters is not None else None,
        )

    # ---- LoadedModel

    def prepare(self, request: Generate) -> Prepared:
        now = (
            datetime.datetime.fromtimestamp(request.started_at)
            if request.started_at is not None
            else datetime.datetime.now()
        )
        try:
            if request.prompt is not None:
                prompt = self._prompts.text(request.prompt)
            else:
                functions = read_functions(request.functions) if request.functions is not None else []
                prompt = self._prompts.build(request.messages, now, request.begun, functions)
        except TemplateError as error:
            raise EngineError("bad_input", f"The model's chat template says: {error}", "prompt") from error
        if not prompt.tokens:
            raise EngineError("bad_input", "The message is empty.", "prompt")
        grammar, notices = None, prompt.notices
        if self._learning is not None:
            self._learning.check()
            notices += self._learning.news()
        if request.grammar is not None:
            try:
                grammar, unenforced = answer_gbnf(request.grammar, prompt.closing, self._thoughts)
            except GrammarError as error:
                raise EngineError("bad_input", f"The grammar cannot be used: {error}.", "grammar") from error
            notices += unenforced
        unknown = [t for t in request.sampling.logit_bias if not 0 <= t < self._model.n_vocab]
        if unknown:
            n_vocab = self._model.n_vocab
            said = f"There is no token {unknown[0]}: this model has {n_vocab:,}."
            raise EngineError("bad_input", said, "logit_bias")
        special = self._model.special_tokens
        return Prepared(
            tokens=prompt.tokens,
            # A stop that is a control token has no text to be found in the answer.
            end_tokens=self._end_tokens | {special[s] for s in request.stop if s in special},
            stops=(*self._stops, *(s for s in request.stop if s not in special)),
            closing=prompt.closing,
            begun=prompt.begun,
            grammar=grammar,
            notices=notices,
        )

    def source(self, sampling: SamplingParams, prepared: Prepared) -> LlamaSource:
        grammar = None
        if prepared.grammar is not None:
            # A control token shows no text, whatever the grammar takes it for.
            hidden = frozenset(self._model.special_tokens.values()) - self._thought_tags
            try:
                grammar = Grammar(
                    self._model, prepared.grammar, root=ROOT, ends=prepared.end_tokens, hidden=hidden
                )
            except GrammarError as error:
                raise EngineError("bad_input", f"The grammar cannot be used: {error}.", "grammar") from error
        return llama_source(self._context, _options(sampling), prepared.tokens, grammar)

    def history(self, slot: int) -> History | None:
        return self._drafters.history(slot) if self._drafters is not None else None

    def links(self, slot: int, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        parameters = drafting.parameters if drafting.mode == "manual" else AUTOMATIC
        drafters = self._drafters.of(slot) if self._drafters is not None else {}
        names = [name for name in dict.fromkeys(drafting.links) if name in drafters]
        links = [drafters[name] for name in names]
        for name, link in zip(names, links, strict=True):
            link.configure(parameters.of(name))
            if isinstance(link, NeuralDrafter):
                link.set_sampling(_options(sampling))
        return links

    def exact_rows(self) -> ExactRows:
        if self._cannot_draft or self.target.n_outputs == self.target.n_slots:
            return _ANY_ROWS
        if self.target.n_slots > 1:
            raise NoExact(_NO_EXACT_TOGETHER)
        if self._dropping == "repeat":
            raise NoExact("Exact mode is off: this model's memory cannot drop single tokens.")
        if self._exact is _UNCHECKED:
            try:
                self._exact = self._check_exact()
            except EngineError as error:
                raise NoExact(f"Exact mode could not be tried out with this model: {error}") from error
        if self._exact is None:
            raise NoExact(NO_EXACT)
        return self._exact

    def _check_exact(self) -> ExactRows | None:
        """In a context of its own, since the conversation's KV cache is still needed."""
        n_ctx = min(DEPTH + POSITIONS, self.target.n_ctx)
        n_outputs, n_snapshots = self.target.n_outputs, self._context.n_snapshots
        context = make_context(self._model, self._options, n_ctx, n_outputs, n_snapshots)
        try:
            return check(context)
        finally:
            context.close()

    def token_bytes(self, token: int) -> bytes:
        """A tag that opens or ends thoughts is needed as text even where it is a control token."""
        known = self._bytes.get(token)
        if known is None:
            known = self._model.token_bytes(token, special=token in self._thought_tags)
            self._bytes[token] = known
        return known

    def answered(self, text: str, tokens: Sequence[int]) -> None:
        self._prompts.remember(text, tokens)

    def learn(self, tokens: Sequence[int]) -> None:
        if self._learning is not None:
            self._learning.add(tokens)

    def settle(self) -> bool:
        return self._learning is not None and self._learning.settle()

    def abort(self) -> None:
        for context in self._contexts():
            context.abort()

    def allow(self) -> None:
        for context in self._contexts():
            context.allow()

    def close(self) -> None:
        if self._learning is not None:
            self._learning.close()
        if self._drafters is not None:
            self._drafters.close()
        self._model.close()

    # ---- inside

    @property
    def _cannot_draft(self) -> bool:
        return self._dropping == "never"

    def _use_threads(self, count: int) -> None:
        for context in self._contexts():
            context.use_threads(count)

    def _contexts(self) -> list[Context]:
        return [self._context] + (self._drafters.contexts() if self._drafters is not None else [])

    def _load_target(
        self, path: Path, options: EngineOptions, progress: Callable[[float], bool], notices: list[str]
    ) -> Model:
        """With its MTP heads where they are for use and can be loaded. Raises EngineError."""
        if self._no_heads is not None:
            return load_weights(path, options, progress, heads=False)
        try:
            return load_weights(path, options, progress, heads=True)
        except EngineError as error:
            if error.kind == "cancelled":
                raise
            problem = str(error)
        # Perhaps there is room for the model alone.
        model = load_weights(path, options, progress, heads=False)
        self._no_heads = problem
        notices.append(f"{HEADS_OFF}: {problem.rstrip('.')}.")
        return model

    def _find_end(self, notices: list[str]) -> tuple[frozenset[int], tuple[str, ...]]:
        """End tokens and stop strings: llama.cpp's set, and what the template writes after an answer."""
        model = self._model
        ends = model.end_of_generation
        marker = self._prompts.end_marker(datetime.datetime.now())
        if marker is None:
            return ends, ()
        token = model.special_tokens.get(marker)
        if token is None:
            token = next((t for t in range(model.n_vocab) if model.token_text(t) == marker), None)
            if token is None:
                return ends, (marker,)
            if token not in ends:
                notices.append(f"This file marks {marker} as ordinary text; it ends answers all the same.")
        return ends | {token}, ()

    def _load_lookup_cache(self, notices: list[str]) -> FollowerCounts | None:
        """The static tier that a person chose; one that cannot be used never stops the chat."""
        if self._options.lookup_cache is None:
            return None
        path = Path(self._options.lookup_cache)
        try:
            return read_lookup_file(path.read_bytes(), self._model.n_vocab)
        except LookupFileError as error:
            reason = str(error)
        except OSError as error:
            reason = describe_os_error(error)
        notices.append(f"The lookup cache {shown_name(path)} is not used: {reason}.")
        return None

    def _make_drafters(self, static: FollowerCounts | None, notices: list[str]) -> Drafters | None:
        """None where nothing can be drafted with this model."""
        if self._cannot_draft:
            return None
        past = self._learning.past if self._learning is not None else None
        self._drafters = Drafters(self._model, self.target, self._options, past, static)
        problem = self._drafters.load_neural(self._draft_path, self._no_heads)
        notices += [problem] if problem is not None else []
        return self._drafters


def _options(sampling: SamplingParams) -> SamplerOptions:
    """The same for llama.cpp, where a ban is an infinite bias."""
    fields = msgspec.structs.asdict(sampling)
    bias = {token: -math.inf if by <= -100.0 else by for token, by in sampling.logit_bias.items()}
    return SamplerOptions(**fields | {"logit_bias": bias})


def _no_heads(request: Load, header: GgufHeader) -> str | None:
    """Why the model's own MTP heads are not for use; None when they are."""
    if request.draft_model_path is not None:
        return "a draft model is chosen"
    try:
        check_heads_inside(header)
    except ModelFileError as error:
        return str(error).rstrip(".")
    return None
