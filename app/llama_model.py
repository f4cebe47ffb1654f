"""A GGUF in memory behind the engine's interface: target, prompt, drafters, and what they need."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app import paths
from app.calibration import pass_seconds
from app.chat_template import TemplateError
from app.contexts import NEVER, make_context, target_context
from app.engine import NO_EXACT, EngineError, NoExact, Prepared
from app.gpu_layers import gpu_layers, known_devices
from app.grammar import ROOT, answer_gbnf
from app.learning import Learning
from app.neural import draft_cost, mtp_drafter, neural_drafter
from app.prompt import PromptBuilder
from app.protocol import (
    DRAFTERS,
    NEURAL,
    DrafterName,
    DrafterReport,
    DraftingParams,
    EngineOptions,
    Generate,
    Load,
    LoadedFile,
    ModelReport,
    SamplingParams,
)
from app.reasoning import TAGS
from app.template_choice import choose_template
from app.weights import load_weights
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.draft_cost import DraftCost
from drafting.drafter import ConfigurableDrafter, Drafter
from drafting.exact import ExactRows
from drafting.exact_check import DEPTH, POSITIONS, check
from drafting.follower_counts import FollowerCounts
from drafting.history import History
from drafting.llama_target import LlamaSource, LlamaTarget, llama_source
from drafting.lookup_file import LookupFileError, read_lookup_file
from drafting.neural import NeuralDrafter
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.parameters import AUTOMATIC
from drafting.suffix import Suffix
from drafting.thread_count import ThreadCount
from model_store.bundled import default_drafter
from model_store.check import (
    ModelFileError,
    check_model_file,
    describe_os_error,
    read_model_file,
    shown_name,
)
from model_store.file_key import file_key
from model_store.fingerprint import tokenizer_fingerprint
from model_store.gguf_header import GgufHeader
from model_store.pairing import check_drafter, check_heads_inside
from native.context import Context
from native.errors import GrammarError, NativeError
from native.grammar import Grammar
from native.model import Model
from native.sampler import SamplerOptions

log = logging.getLogger(__name__)

LONGEST_DRAFT = 64
CALIBRATION_S = 1.5
_UNCHECKED = ExactRows(0, 0)
_ANY_ROWS = ExactRows(1, 0)  # where nothing is ever drafted, every answer is the plain one
_HEADS_OFF = "The model's own MTP heads are not used"


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
        self._draft_model: Model | None = None
        self._draft_file: LoadedFile | None = None
        self._neural: NeuralDrafter | None = None
        self._draft_costs: dict[str, DraftCost] = {}
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
            self.history = History()
            self._exact: ExactRows | None = _UNCHECKED
            fingerprint = tokenizer_fingerprint(header)
            if options.answers_folder is not None and fingerprint is not None and not self._cannot_draft:
                self._learning = Learning(Path(options.answers_folder), fingerprint)
                notices += self._learning.news()
            static = self._load_lookup_cache(notices)
            self._drafters, reports = self._make_drafters(static, notices)
            seconds, back = pass_seconds(context, CALIBRATION_S)
            self.costs = CostCurve(seconds, repeats=made.dropping == "repeat", back=back)
            self.controller = Controller(self.costs, self._draft_costs)
            self.threads = ThreadCount(context.options.n_threads, self._use_threads)
        except BaseException:
            self.close()
            raise
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
            max_draft=self.target.n_outputs - 1,
            n_threads=context.options.n_threads,
            recurrent=model.is_recurrent,
            hybrid=model.is_hybrid,
            swa=model.n_swa > 0,
            draft_model_path=str(self._draft_model.path) if self._draft_model is not None else None,
            drafters=tuple(reports),
            notices=tuple(notices),
            file=_loaded_file(path, header),
            draft_file=self._draft_file,
        )

    # ---- LoadedModel

    def prepare(self, request: Generate) -> Prepared:
        now = (
            datetime.datetime.fromtimestamp(request.started_at)
            if request.started_at is not None
            else datetime.datetime.now()
        )
        try:
            prompt = self._prompts.build(request.messages, now, request.begun)
        except TemplateError as error:
            raise EngineError("bad_input", f"The model's chat template says: {error}") from error
        if not prompt.tokens:
            raise EngineError("bad_input", "The message is empty.")
        grammar, notices = None, prompt.notices
        if self._learning is not None:
            self._learning.check()
            notices += self._learning.news()
        if request.grammar is not None:
            try:
                grammar, unenforced = answer_gbnf(request.grammar, prompt.closing, self._thoughts)
            except GrammarError as error:
                raise EngineError("bad_input", f"The grammar cannot be used: {error}.") from error
            notices += unenforced
        unknown = [t for t in request.sampling.logit_bias if not 0 <= t < self._model.n_vocab]
        if unknown:
            n_vocab = self._model.n_vocab
            raise EngineError("bad_input", f"There is no token {unknown[0]}: this model has {n_vocab:,}.")
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
                raise EngineError("bad_input", f"The grammar cannot be used: {error}.") from error
        return llama_source(self._context, _options(sampling), prepared.tokens, grammar)

    def links(self, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        parameters = drafting.parameters if drafting.mode == "manual" else AUTOMATIC
        names = [name for name in dict.fromkeys(drafting.links) if name in self._drafters]
        links = [self._drafters[name] for name in names]
        for name, link in zip(names, links, strict=True):
            link.configure(parameters.of(name))
            if isinstance(link, NeuralDrafter):
                link.set_sampling(_options(sampling))
        return links

    def exact_rows(self) -> ExactRows:
        if self._cannot_draft or self.target.n_outputs == 1:
            return _ANY_ROWS
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
        if self._draft_model is not None:
            self._draft_model.close()
        self._model.close()

    # ---- inside

    @property
    def _cannot_draft(self) -> bool:
        return self._dropping == "never"

    def _use_threads(self, count: int) -> None:
        for context in self._contexts():
            context.use_threads(count)

    def _contexts(self) -> list[Context]:
        return [self._context] + ([self._neural.context] if self._neural is not None else [])

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
        notices.append(f"{_HEADS_OFF}: {problem.rstrip('.')}.")
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

    def _make_drafters(
        self, static: FollowerCounts | None, notices: list[str]
    ) -> tuple[dict[DrafterName, ConfigurableDrafter], list[DrafterReport]]:
        """The drafters that can work with this model, and for each one whether and why not.

        A drafter file that cannot be used never stops the chat: ``notices`` gets a line about it.
        """
        if self._cannot_draft:
            return {}, [DrafterReport(name, NEVER) for name in DRAFTERS]
        history = self.history
        past = self._learning.past if self._learning is not None else None
        drafters: dict[DrafterName, ConfigurableDrafter] = {
            "cache": NgramCache(history, past, static),
            "simple": NgramSimple(history),
            "map-k": NgramMap(history),
            "map-k4v": NgramMapK4V(history),
            "mod": NgramMod(ModTable()),
            "suffix": Suffix(history, past=past),
        }
        reports = [DrafterReport(name) for name in drafters]
        reasons: dict[DrafterName, str] = dict.fromkeys(NEURAL, "no draft model chosen")
        path = self._draft_path
        try:
            if path is not None or self._no_heads is None:
                neural = self._neural = self._load_neural(path)
                drafters[neural.name] = neural
                if path is not None:
                    reasons = {name: f"{shown_name(path)} is of another kind" for name in NEURAL}
                del reasons[neural.name]
            else:
                reasons["mtp"] = self._no_heads
        except (ModelFileError, NativeError, EngineError) as error:
            what = "The draft model is not used" if path is not None else _HEADS_OFF
            log.warning("%s: %s", what, error)
            reasons |= dict.fromkeys(NEURAL if path is not None else ("mtp",), str(error))
            notices.append(f"{what}: {str(error).rstrip('.')}.")
        return drafters, [*reports, *(DrafterReport(name, reasons.get(name)) for name in NEURAL)]

    def _load_neural(self, path: Path | None) -> NeuralDrafter:
        """The drafter in the file at ``path``, or without one that of the target's own heads.

        Raises ModelFileError, EngineError or NativeError, in words for a person.
        """
        if path is None:
            drafter: NeuralDrafter = mtp_drafter(self._model, self.target)
            self._draft_costs[drafter.name] = draft_cost(drafter)
            return drafter
        kind = check_drafter(self._model.path, path)
        model = load_weights(path, self._options, lambda _: True, heads=kind == "mtp")
        try:
            drafter = neural_drafter(kind, model, self.target, self._options)
            self._draft_costs[drafter.name] = draft_cost(drafter)
            self._draft_file = _loaded_file(path, read_model_file(path))
            self._draft_model = model
            return drafter
        except BaseException:
            model.close()
            raise


def _options(sampling: SamplingParams) -> SamplerOptions:
    """The same for llama.cpp, where a ban is an infinite bias."""
    fields = msgspec.structs.asdict(sampling)
    bias = {token: -math.inf if by <= -100.0 else by for token, by in sampling.logit_bias.items()}
    return SamplerOptions(**fields | {"logit_bias": bias})


def _loaded_file(path: Path, header: GgufHeader) -> LoadedFile | None:
    try:
        return LoadedFile(file_key(path), tokenizer_fingerprint(header))
    except OSError:  # it went away while it was loaded
        return None


def _no_heads(request: Load, header: GgufHeader) -> str | None:
    """Why the model's own MTP heads are not for use; None when they are."""
    if request.draft_model_path is not None:
        return "a draft model is chosen"
    try:
        check_heads_inside(header)
    except ModelFileError as error:
        return str(error).rstrip(".")
    return None
