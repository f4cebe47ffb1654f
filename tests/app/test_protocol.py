"""Messages: each comes out of the pipe as it went in, anything else is refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import protocol
from app.protocol import (
    Cancel,
    ChatMessage,
    Chunk,
    Device,
    Done,
    DrafterReport,
    DraftingParams,
    Embed,
    Embedded,
    EngineOptions,
    Failed,
    FromWorker,
    Generate,
    Hello,
    Load,
    Loaded,
    LoadProgress,
    Log,
    ModelReport,
    Piece,
    PrefillProgress,
    SamplingParams,
    Shutdown,
    Started,
    TokenLogprob,
    ToWorker,
    Unload,
    Unloaded,
)
from drafting.statistics import DrafterCounts, Statistics

REPORT = ModelReport(
    path="/models/ü.gguf",
    name="ü",
    architecture="llama",
    description="llama 135M Q4_1",
    size_bytes=2**40,
    kv_bytes=1,
    n_vocab=49152,
    n_ctx=2048,
    n_ctx_train=2048,
    max_draft=64,
    n_threads=2,
    recurrent=False,
    hybrid=False,
    swa=True,
    draft_model_path=None,
    drafters=(DrafterReport("cache"), DrafterReport("draft", "no draft model chosen")),
    notices=("a", "b"),
)
STATS = Statistics(
    prompt_tokens=3, decode_s=0.5, by_drafter={"mod": DrafterCounts(1, 3, 2, [1, 1, 1], [1, 1])}
)

TO_WORKER: list[ToWorker] = [
    Load(request_id=1, model_path="/m.gguf", draft_model_path="/d.gguf", options=EngineOptions(n_ctx=0)),
    Unload(2),
    Generate(
        request_id=3,
        messages=(ChatMessage("system", "S"), ChatMessage("user", "👩‍💻 \x00 \ud7ff")),
        sampling=SamplingParams(temperature=0.0, top_k=0),
        drafting=DraftingParams(links=("mod", "draft"), max_draft=64),
        max_tokens=5,
        seed=2**63 - 1,
        stop=("###",),
        started_at=1.5,
    ),
    Generate(request_id=4, messages=()),
    Embed(4, ("a", "b")),
    Cancel(5),
    Shutdown(),
]
FROM_WORKER: list[FromWorker] = [
    Hello(protocol.PROTOCOL_VERSION, "fake", 77),
    Hello(protocol.PROTOCOL_VERSION, "llama.cpp", 77, (Device("CUDA0", "A card", "gpu", 7, 2**40),)),
    LoadProgress(1, 0.25),
    Loaded(1, REPORT),
    Unloaded(2),
    Started(request_id=3, prompt_tokens=9, reused_tokens=4, seed=0, notices=("n",)),
    PrefillProgress(3, 5, 9),
    Chunk(
        request_id=3,
        pieces=(Piece("a"), Piece("b", "mod", True)),
        tokens=2,
        drafter="mod",
        drafted=3,
        accepted=1,
        logprobs=(TokenLogprob(b"a", -0.5, ((b"a", -0.5), (b"b", -1.0))),),
    ),
    Done(
        request_id=3,
        finish_reason="stop",
        text="ab",
        reasoning="r",
        cut_in_reasoning=False,
        token_ids=(1, 2),
        seed=5,
        stats=STATS,
    ),
    Embedded(4, (b"\0\0\x80?", b""), 7),
    Failed(3, "out_of_memory", "words", recoverable=False),
    Log("warning", "words"),
]


def name(message: object) -> str:
    return type(message).__name__


def test_every_message_is_tested() -> None:
    assert {type(m) for m in TO_WORKER} == set(ToWorker.__args__)
    assert {type(m) for m in FROM_WORKER} == set(FromWorker.__args__)


@pytest.mark.parametrize("message", TO_WORKER, ids=name)
def test_messages_to_the_worker_arrive_as_sent(message: ToWorker) -> None:
    assert protocol.decode_to_worker(protocol.encode(message)) == message


@pytest.mark.parametrize("message", FROM_WORKER, ids=name)
def test_messages_from_the_worker_arrive_as_sent(message: FromWorker) -> None:
    assert protocol.decode_from_worker(protocol.encode(message)) == message


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "Explode"},
        {"type": "Generate", "request_id": 1},
        {"type": "Generate", "request_id": "1", "messages": []},
        {"type": "Generate", "request_id": 1, "messages": [{"role": "developer", "content": ""}]},
        {"type": "Generate", "request_id": 1, "messages": [], "seed": -1},
        {"type": "Generate", "request_id": 1, "messages": [], "seed": 2**63},
        {"type": "Generate", "request_id": 1, "messages": [], "max_tokens": 0},
        {"type": "Generate", "request_id": 1, "messages": [], "sampling": {"temperature": -0.1}},
        {"type": "Generate", "request_id": 1, "messages": [], "sampling": {"top_p": 0}},
        {"type": "Generate", "request_id": 1, "messages": [], "drafting": {"links": ["telepathy"]}},
        {"type": "Generate", "request_id": 1, "messages": [], "drafting": {"max_draft": 0}},
        {"type": "Load", "request_id": 1},
        {"type": "Load", "request_id": 1, "model_path": "m", "options": {"n_batch": 0}},
        {"type": "Hello", "protocol": 1, "engine": "x", "pid": 1},  # it goes the other way
        {"request_id": 1},
    ],
    ids=str,
)
def test_invalid_requests_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        protocol.decode_to_worker(msgspec.msgpack.encode(fields))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\x01", b"noise", msgspec.msgpack.encode([1])])
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    for decode in (protocol.decode_to_worker, protocol.decode_from_worker):
        with pytest.raises(msgspec.DecodeError):
            decode(payload)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(payload: bytes) -> None:
    for decode in (protocol.decode_to_worker, protocol.decode_from_worker):
        try:
            decode(payload)
        except msgspec.DecodeError:
            continue


def test_unknown_fields_are_ignored() -> None:
    """A newer program may say more."""
    payload = msgspec.msgpack.encode({"type": "Cancel", "request_id": 5, "why": "bored"})
    assert protocol.decode_to_worker(payload) == Cancel(5)
