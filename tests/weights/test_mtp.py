"""The MTP drafter on real weights: what its heads read, and when they draft.

On a hybrid with one head, the same with its head in a file of its own, a model of attention with a
sliding window and three heads in a chain, and a Gemma 4 with its assistant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from app.protocol import DraftingParams, Load
from app.worker import neural, weights
from app.worker.llama_model import LlamaModel
from drafting.distribution import Distribution, Noise
from drafting.hidden_states import HiddenStates
from drafting.llama_target import LlamaTarget
from drafting.mtp import Mtp
from drafting.mtp_assistant import MtpAssistant
from drafting.neural import NeuralDrafter
from drafting.parameters import NeuralParameters
from drafting.sequence import Sequence
from drafting.target import Row
from native.context import Context, ContextOptions
from native.errors import ContextError, ModelLoadError
from native.head_context import HeadContext
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.mtp import CHAIN, MTP_KINDS
from tests.models.qwen35 import write_qwen35
from tests.session import EXACT, GREEDY, Session
from tests.tiny_gguf import Tiny
from tests.weights.neural import PROMPT, answer, apart, first_id

SIZES = Tiny()
OPTIONS = ContextOptions(
    n_ctx=256, n_batch=32, n_outputs=24, n_snapshots=16, kv_type="f32", flash_attention="off"
)
LENGTH = 48


class Pair:
    """A tiny target and its heads, without a worker in between."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        files = MTP_KINDS[kind](folder)
        self.model = Model(files.target, heads=files.heads is None)
        self.heads = Model(files.heads, heads=True) if files.heads is not None else self.model
        self.target = LlamaTarget(Context(self.model, OPTIONS))
        self.hidden = self.target.keep_hidden((self.model.n_layer,))
        self.longest = CHAIN if kind == "a chain" else 16

    def close(self) -> None:
        self.heads.close()
        self.model.close()

    def head(self, n_ctx: int = OPTIONS.n_ctx) -> HeadContext:
        options = ContextOptions(n_ctx=n_ctx, n_batch=32, kv_type="f32", flash_attention="off", mtp=True)
        return HeadContext(self.heads, options, self.target.context)

    # An assistant's context empties the KV cache that it shares, so drafters are made before answers.

    def drafter(self, n_max: int, n_ctx: int = OPTIONS.n_ctx) -> Mtp | MtpAssistant:
        kind = MtpAssistant if self.kind == "an assistant" else Mtp
        drafter = kind(self.head(n_ctx), self.hidden)
        drafter.configure(NeuralParameters(n_max=n_max))
        return drafter

    def answer(
        self, drafter: NeuralDrafter | None, prompt: list[int] = PROMPT, length: int = LENGTH
    ) -> Sequence:
        """A greedy answer of ``length`` tokens, from scratch; 16 drafted tokens at most."""
        return answer(self.target, drafter, prompt, length)

    @cached_property
    def plain(self) -> list[int]:
        return self.answer(None, length=200).tokens


@pytest.fixture(scope="module", params=MTP_KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(request.param, tmp_path_factory.mktemp("mtp"))
    yield pair
    pair.close()


def test_heads_say_what_they_read(pair: Pair) -> None:
    """Another hidden state or another token before it: each changes what is said."""
    drafter = pair.drafter(1)
    drafter.set_sampling(SamplerOptions(temperature=1.0))
    tokens = pair.answer(None, length=8).tokens

    def first(tokens: list[int]) -> Distribution:
        drafter.begin(tokens)
        draft = drafter.propose(1, first_id)
        assert draft.q is not None
        return draft.q[0]

    right = first(tokens)
    assert apart(right, first(tokens)) == 0.0
    assert apart(right, first([*tokens[:-1], (tokens[-1] + 1) % 500])) > 0.1
    if pair.kind != "an assistant":
        assert apart(right, first([*tokens[:4], 5, *tokens[5:]])) > 1e-3
    pair.hidden.rows(0, range(len(tokens)))[len(tokens) - 2] *= -1
    assert apart(right, first(tokens)) > 0.1


def test_a_draft_ends_where_it_is_unsure(pair: Pair) -> None:
    drafter = pair.drafter(3)
    tokens = pair.answer(None).tokens
    drafter.begin(tokens)
    draft = drafter.propose(3, first_id)
    assert draft.confidence is not None
    least = min(draft.confidence)
    assert least is not None and max(draft.confidence) > least + 0.01
    drafter.configure(NeuralParameters(n_max=3, p_min=least + 1e-4))
    shorter = drafter.propose(3, first_id)
    assert shorter.tokens == draft.tokens[: draft.confidence.index(least)]
    drafter.configure(NeuralParameters(n_max=3, p_min=least - 1e-4))
    assert drafter.propose(3, first_id).tokens == draft.tokens


def test_q_is_made_by_the_targets_settings(pair: Pair) -> None:
    drafter = pair.drafter(3)
    drafter.set_sampling(SamplerOptions(temperature=0.8, top_k=5))
    drafter.begin(pair.answer(None).tokens)
    draft = drafter.propose(3, Noise(7).draw)
    assert len(draft) == 3 and draft.q is not None
    for token, q in zip(draft.tokens, draft.q, strict=True):
        assert q.probability(token) > 0 and len(q.ids) == 5
        assert q.probs.sum() == pytest.approx(1.0)


def test_it_reads_nothing_before_it_is_asked_and_then_only_what_is_new(pair: Pair) -> None:
    drafter = pair.drafter(1)
    tokens = pair.answer(None).tokens
    drafter.begin(tokens)
    if pair.kind == "an assistant":
        assert drafter.behind == 0
        return
    assert (drafter.behind, drafter.context.length(0)) == (len(tokens), 0)
    drafter.catch_up()
    assert drafter.behind == 1
    drafter.propose(1, first_id)
    assert drafter.behind == (1 if pair.longest == CHAIN else 0), "one head has read the last pair as well"
    assert drafter.context.length(0) == len(tokens)
    # Another turn that shares the first twenty tokens.
    drafter.begin([*tokens[:20], 1, 2, 3, 4])
    assert drafter.behind == 4


def test_with_few_hidden_states_kept_it_drafts_from_the_latest(pair: Pair) -> None:
    kept = pair.hidden
    try:
        pair.hidden = pair.target.hidden = HiddenStates(kept.width, capacity=16)
        late = pair.drafter(3)
        drafted = pair.answer(pair.drafter(3), length=200)
        assert drafted.tokens == pair.plain and drafted.stats.drafted > 200
        # Late: what it did not read in time is gone.
        late.begin(pair.plain)
        assert late.propose(1, first_id).tokens
    finally:
        pair.hidden = pair.target.hidden = kept


def test_without_hidden_states_it_sits_out(pair: Pair) -> None:
    pair.target.forget(0)
    drafter = pair.drafter(3)
    drafter.begin(PROMPT)
    assert not drafter.propose(3, first_id)


def test_it_pauses_when_its_context_is_full(pair: Pair) -> None:
    for length, expected in ((64, 1), (63, 2), (65, 0)):
        drafter = pair.drafter(3, n_ctx=64)
        tokens = pair.answer(None, length=length - len(PROMPT)).tokens
        drafter.begin(tokens)
        draft = drafter.propose(3, first_id)
        assert len(draft) == (max(0, expected - 1) if pair.kind == "an assistant" else expected)


# ---- through the worker


def test_a_model_without_heads_says_so(session: Session, tmp_path: Path) -> None:
    report = session.load(write_qwen35(tmp_path / "none.gguf", heads=0), None, EXACT)
    reasons = {d.name: d.reason for d in report.drafters}
    assert reasons["mtp"] == "This model has no MTP heads"
    assert reasons["draft"] == "no draft model chosen"


def test_a_draft_model_that_is_named_takes_the_place_of_the_models_own_heads(
    session: Session, tmp_path: Path
) -> None:
    target = write_qwen35(tmp_path / "target.gguf")
    heads = write_qwen35(tmp_path / "mtp-heads.gguf", trunk=False)
    report = session.load(target, heads, EXACT)
    assert report.draft_model_path == str(heads) and report.draft_file is not None
    assert session.ask("hi", links=("mtp",)).stats.drafted
    report = session.load(target, tmp_path / "gone.gguf", EXACT)
    assert "not found" in ({d.name: d.reason for d in report.drafters}["mtp"] or "")
    assert not session.ask("hi", links=("mtp",)).stats.drafted


@pytest.mark.parametrize("what", ["weights", "context"])
def test_heads_that_there_is_no_room_for_never_stop_the_chat(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault injected: the first time that memory is asked for them, there is none."""

    class NoRoom(Model):
        def __init__(self, path: Path | str, *, heads: bool = False, **others: Any) -> None:
            if heads:
                raise ModelLoadError("out of memory")
            super().__init__(path, heads=heads, **others)

    def no_room(model: Model, options: ContextOptions, target: Context) -> HeadContext:
        raise ContextError("out of memory")

    if what == "weights":
        monkeypatch.setattr(weights, "Model", NoRoom)
    else:
        monkeypatch.setattr(neural, "HeadContext", no_room)
    path = write_qwen35(tmp_path / "target.gguf")
    loaded = LlamaModel(Load(request_id=1, model_path=str(path), options=EXACT), lambda fraction: True)
    try:
        report = loaded.report
        assert {d.name: d.reason for d in report.drafters}["mtp"] == "out of memory"
        assert "The model's own MTP heads are not used: out of memory." in report.notices
        drafting = DraftingParams(links=("cache", "mtp"))
        assert [link.name for link in loaded.links(0, drafting, GREEDY)] == ["cache"]
        loaded.target.decode([Row(0, 5, 0, True)])
    finally:
        loaded.close()
