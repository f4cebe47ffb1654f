"""Messages between the program and its worker: frozen, tagged types that msgspec encodes and checks.

Every load, unload and generate request is answered by exactly one terminal message that carries
its ``request_id``: Loaded, Unloaded, Done, Embedded or Failed.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from drafting.parameters import LinkParameters
from drafting.silence import Silence
from drafting.statistics import Statistics

PROTOCOL_VERSION = 1

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "cancelled"]
FailureKind = Literal[
    "bad_input",  # the request itself cannot be served: empty, a template that refuses it
    "too_long",  # its prompt does not fit into the context
    "bad_model",  # the file is missing, damaged, or not a model that can chat
    "no_model",  # a message came before a model was loaded
    "out_of_memory",
    "cancelled",  # a load that was cancelled
    "worker_lost",  # the worker process ended while it was at it
    "internal",  # our fault
]

RequestPart = Literal["prompt", "grammar", "logit_bias"]

DrafterName = Literal[
    "cache", "simple", "map-k", "map-k4v", "mod", "suffix", "draft", "eagle3", "mtp", "dflash", "dspark"
]
DraftMode = Literal["auto", "manual"]

# The cheap drafters first: the first that has something to say speaks.
DRAFTERS: tuple[DrafterName, ...] = (
    "cache",
    "simple",
    "map-k",
    "map-k4v",
    "mod",
    "suffix",
    "draft",
    "eagle3",
    "mtp",
    "dflash",
    "dspark",
)
# Those that need a file or heads of their own: at most one of them is loaded.
NEURAL: tuple[DrafterName, ...] = ("draft", "eagle3", "mtp", "dflash", "dspark")


class ToolCall(Struct, frozen=True):
    """A call of a function; ``arguments`` is a JSON object as text."""

    name: str
    arguments: str
    id: str = ""


class ChatMessage(Struct, frozen=True):
    """``tool_calls`` are an assistant's; a tool's message names the call that it answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


Bias = Annotated[float, Meta(ge=-100.0, le=100.0)]


class SamplingParams(Struct, frozen=True, kw_only=True):
    """How the next token is drawn; temperature 0 takes the most likely one.

    Penalties are llama.cpp's and off by default. They look at the last ``penalty_last_n`` tokens of
    prompt and answer together, -1 at all of them. ``logit_bias`` is added to the logits of single
    tokens, by id; -100 bans a token.
    """

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] = 0.8
    top_k: Annotated[int, Meta(ge=0)] = 40  # 0 keeps all
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.95
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.05
    repeat_penalty: Annotated[float, Meta(gt=0.0, le=10.0)] = 1.0
    frequency_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] = 0.0
    presence_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] = 0.0
    penalty_last_n: Annotated[int, Meta(ge=-1, le=2**20)] = 64
    logit_bias: Annotated[dict[int, Bias], Meta(max_length=1024)] = {}


class Gbnf(Struct, frozen=True, tag_field="type", tag="gbnf"):
    """A grammar in llama.cpp's own language; its first rule is ``root``."""

    text: str


class JsonSchema(Struct, frozen=True, tag_field="type", tag="json_schema"):
    """The answer is JSON that fits ``schema``, a JSON text; by default any object."""

    schema: str = '{"type": "object"}'


Grammar = Gbnf | JsonSchema


class Begun(Struct, frozen=True, kw_only=True):
    """What there is already of an answer that is to go on from its end. Thoughts without a text have
    not ended yet."""

    text: str = ""
    reasoning: str = ""


class DraftingParams(Struct, frozen=True, kw_only=True):
    """Which drafters may speak and how many tokens a draft may hold.

    "auto" asks them all and takes the offer that is expected to pay most, or none; "manual" takes
    the first that has something to say, in the order of ``links``, each with its ``parameters``.
    A pass may have less room than ``max_draft``; the answer then says so. Links whose acceptance
    rate falls below ``floor`` are paused; 0 pauses none.
    """

    mode: DraftMode = "auto"
    links: tuple[DrafterName, ...] = DRAFTERS
    parameters: LinkParameters = LinkParameters()
    max_draft: Annotated[int, Meta(ge=1, le=1024)] = 48
    floor: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0


class EngineOptions(Struct, frozen=True, kw_only=True):
    """How a model is put into memory, and what its drafters may know. 0 means: let the engine choose."""

    n_ctx: Annotated[int, Meta(ge=0)] = 4096
    n_batch: Annotated[int, Meta(ge=1)] = 512
    n_threads: Annotated[int, Meta(ge=0)] = 0
    n_parallel: Annotated[int, Meta(ge=1, le=64)] = 1  # answers at once, each with a context of n_ctx
    n_gpu_layers: int = -1  # negative: as many as there are
    kv_type: Literal["f16", "f32", "q8_0"] = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    prompt_cache_mb: Annotated[int, Meta(ge=0)] = 0  # for conversations that no slot has room for
    chat_template: str | None = None  # a name from assets/chat_templates; None: the model's own
    answers_folder: str | None = None  # answers are kept there and learned from; None: nothing is
    lookup_cache: str | None = None  # a file of llama-lookup-create's: the cache drafter's static tier


# ---- to the worker


class Load(Struct, frozen=True, tag=True, kw_only=True):
    request_id: int
    model_path: str
    draft_model_path: str | None = None
    options: EngineOptions = EngineOptions()


class Unload(Struct, frozen=True, tag=True):
    request_id: int


class Generate(Struct, frozen=True, tag=True, kw_only=True):
    """One answer to a conversation.

    ``seed`` None: the worker draws one from the operating system and reports it. A named seed makes
    the text depend on target, prompt and seed alone, whatever drafts, and ``reproducible`` does so for
    a drawn one. ``exact``: on top of that, drafted and plain text are the same bit by bit also where
    rounding could turn a token. ``started_at`` (Unix seconds)
    is when the conversation began: templates that print a date see that moment, so that the date
    does not change under the prefix cache. ``grammar`` is what the answer must follow; a model's
    thoughts before it need not. With ``begun`` the events tell only of what comes after it. ``prompt`` is
    gone on from as it is, in the place of messages and template. ``logprobs``: how many of the likeliest
    tokens are told beside each token of the answer; None tells nothing. ``functions`` are those that the
    model may call, as app.tools writes them.
    """

    request_id: int
    messages: tuple[ChatMessage, ...]
    sampling: SamplingParams = SamplingParams()
    drafting: DraftingParams = DraftingParams()
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    reproducible: bool = False
    exact: bool = False
    stop: tuple[str, ...] = ()
    grammar: Grammar | None = None
    begun: Begun | None = None
    prompt: str | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    functions: str | None = None
    started_at: float | None = None


class Embed(Struct, frozen=True, tag=True):
    """Vectors of texts, by an embedding model."""

    request_id: int
    texts: tuple[str, ...]


class Cancel(Struct, frozen=True, tag=True):
    request_id: int


class Shutdown(Struct, frozen=True, tag=True):
    pass


ToWorker = Load | Unload | Generate | Embed | Cancel | Shutdown

# ---- from the worker


class DrafterReport(Struct, frozen=True):
    """One link of the chain: ``reason`` says in words why it is off, None when it can draft."""

    name: str
    reason: str | None = None


class LoadedFile(Struct, frozen=True):
    """A model file as it was when it was loaded, to be kept with what it said.

    ``key`` is its hash (model_store.file_key), ``tokenizer`` its tokenizer's fingerprint, None for a
    file that has none.
    """

    key: str
    tokenizer: str | None


class ModelReport(Struct, frozen=True, kw_only=True):
    """What was really loaded, as the worker sees it; labels come from here, not from a wish."""

    path: str
    name: str
    architecture: str
    description: str  # llama.cpp's own, such as "llama 135M Q4_1"
    size_bytes: int
    kv_bytes: int
    n_vocab: int
    n_ctx: int
    n_ctx_train: int
    max_draft: int  # longest draft a pass has room for
    n_threads: int
    recurrent: bool
    hybrid: bool
    swa: bool
    draft_model_path: str | None
    drafters: tuple[DrafterReport, ...]
    notices: tuple[str, ...] = ()
    file: LoadedFile | None = None
    draft_file: LoadedFile | None = None
    embeds: bool = False  # an embedding model, which writes no text


class Device(Struct, frozen=True):
    """What the engine can compute on; ``free`` and ``total`` are bytes of its memory.

    An "igpu" shares the processor's memory. Both numbers are 0 where nothing is known of them.
    """

    name: str
    description: str
    kind: Literal["cpu", "gpu", "igpu", "accelerator"]
    free: int
    total: int


class Hello(Struct, frozen=True, tag=True):
    """First message of a worker. ``engine`` names llama.cpp's build, or the fake engine; what is free of
    the ``devices`` is so before a model is loaded."""

    protocol: int
    engine: str
    pid: int
    devices: tuple[Device, ...] = ()


class LoadProgress(Struct, frozen=True, tag=True):
    request_id: int
    fraction: float  # 0 to 1


class Loaded(Struct, frozen=True, tag=True):
    request_id: int
    model: ModelReport


class Unloaded(Struct, frozen=True, tag=True):
    request_id: int


class Started(Struct, frozen=True, tag=True, kw_only=True):
    """The request left the queue. ``notices`` are lines a person should read once."""

    request_id: int
    prompt_tokens: int
    reused_tokens: int
    seed: int
    notices: tuple[str, ...] = ()


class PrefillProgress(Struct, frozen=True, tag=True):
    request_id: int
    done: int  # prompt tokens in the KV cache, the reused ones included
    total: int


# A long chat has hundreds of thousands of them, and they hold no cycles: the collector need not look.
class Piece(Struct, frozen=True, array_like=True, gc=False):
    """A run of text in the order it was said.

    ``drafter`` names who guessed its tokens, None where the target said them itself;
    ``reasoning`` marks the model's thoughts.
    """

    text: str
    drafter: str | None = None
    reasoning: bool = False


class TokenLogprob(Struct, frozen=True, array_like=True):
    """A token of the answer: its bytes, its logarithmic probability before any sampler, and those of the
    likeliest in its place."""

    data: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()


class Chunk(Struct, frozen=True, tag=True, kw_only=True):
    """What one target pass added. Counts are of this pass alone."""

    request_id: int
    pieces: tuple[Piece, ...]  # may be empty: bytes of an unfinished character, a possible stop
    tokens: int
    drafter: str | None = None  # whose draft was verified
    drafted: int = 0
    accepted: int = 0
    silence: Silence | None = None  # why there was no draft, where there could have been one
    elapsed_s: float = 0.0  # since the request started, on the worker's clock
    speedup: float | None = None  # of the answer so far, as Statistics tells it
    notices: tuple[str, ...] = ()  # a link that was switched off or paused while it was at it
    logprobs: tuple[TokenLogprob, ...] = ()  # of its tokens but an end token, where they were asked for


class Embedded(Struct, frozen=True, tag=True):
    """A vector of float32 (little-endian) for each text, of length 1; ``tokens`` were read for all."""

    request_id: int
    vectors: tuple[bytes, ...]
    tokens: int


class Done(Struct, frozen=True, tag=True, kw_only=True):
    """The whole answer. ``token_ids`` are the tokens of the visible text, no end token or stop;
    ``repeated`` is the share of them (0 to 1) in longer runs that the prompt has as well."""

    request_id: int
    finish_reason: FinishReason
    text: str
    reasoning: str
    cut_in_reasoning: bool  # ended before the thoughts did
    token_ids: tuple[int, ...]
    seed: int
    stats: Statistics
    repeated: float = 0.0


class Failed(Struct, frozen=True, tag=True):
    """``recoverable``: the same worker can go on with the next request. ``about``: what of the request was
    at fault, where that is known."""

    request_id: int
    kind: FailureKind
    message: str
    recoverable: bool = True
    about: RequestPart | None = None


class Log(Struct, frozen=True, tag=True):
    level: Literal["debug", "info", "warning", "error"]
    text: str


FromWorker = (
    Hello
    | LoadProgress
    | Loaded
    | Unloaded
    | Started
    | PrefillProgress
    | Chunk
    | Done
    | Embedded
    | Failed
    | Log
)

_encoder = msgspec.msgpack.Encoder()
_to_worker = msgspec.msgpack.Decoder(ToWorker)
_from_worker = msgspec.msgpack.Decoder(FromWorker)


def encode(message: ToWorker | FromWorker) -> bytes:
    return _encoder.encode(message)


def decode_to_worker(payload: bytes) -> ToWorker:
    """Raises msgspec.DecodeError (or its ValidationError) for anything but a valid message."""
    return _to_worker.decode(payload)


def decode_from_worker(payload: bytes) -> FromWorker:
    """Raises msgspec.DecodeError (or its ValidationError) for anything but a valid message."""
    return _from_worker.decode(payload)
