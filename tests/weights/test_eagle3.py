"""The EAGLE-3 drafter on real weights: what its head reads, when it drafts, and the starter's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.protocol import EngineOptions
from app.worker.neural import neural_drafter
from drafting.distribution import Distribution, Noise
from drafting.drafter import Draft
from drafting.eagle3 import Eagle3
from drafting.hidden_states import HiddenStates
from drafting.llama_target import LlamaTarget
from drafting.parameters import NeuralParameters
from drafting.sequence import Sequence
from native.context import Context, ContextOptions
from native.head_context import HeadContext
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.eagle3 import write_eagle3
from tests.session import EXACT, EXACT_ON_ALL_CORES, Session
from tests.tiny_gguf import Tiny, write_llama
from tests.weights.neural import PROMPT, answer, first_id

pytestmark = pytest.mark.all_cores

SIZES = Tiny(n_layer=4)
OPTIONS = ContextOptions(n_ctx=256, n_batch=32, n_outputs=24, kv_type="f32", flash_attention="off")
LENGTH = 48


@pytest.fixture(scope="session")
def target_file(models: Path) -> Path:
    return write_llama(models / "eagle3-target.gguf", SIZES)


@pytest.fixture(scope="session")
def head_file(models: Path) -> Path:
    return write_eagle3(models / "eagle3-head.gguf", SIZES)


class Pair:
    """A tiny target and its head, without a worker in between."""

    def __init__(self, target: Model, head: Model, hidden: HiddenStates | None = None) -> None:
        self.target = LlamaTarget(Context(target, OPTIONS))
        self._head = head
        layers = self.head().target_layers
        self.hidden = self.target.keep_hidden(layers)
        if hidden is not None:
            self.hidden = self.target.hidden = hidden

    def head(self) -> HeadContext:
        return HeadContext(self._head, OPTIONS, self.target.context)

    def answer(self, drafter: Eagle3 | None, prompt: list[int] = PROMPT, length: int = LENGTH) -> Sequence:
        """A greedy answer of ``length`` tokens, from scratch; 16 drafted tokens at most."""
        return answer(self.target, drafter, prompt, length)


@pytest.fixture
def pair(target_file: Path, head_file: Path) -> Iterator[Pair]:
    with Model(target_file) as target, Model(head_file) as head:
        yield Pair(target, head)
        head.close()


def test_q_is_a_distribution_over_the_targets_vocabulary(pair: Pair) -> None:
    """The head drafts every other token: the others must have no chance, and the rest add up."""
    pair.answer(None)
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.configure(NeuralParameters(n_max=4))
    drafter.set_sampling(SamplerOptions(temperature=0.8))
    drafter.begin(pair.answer(None).tokens)
    noise = Noise(7)
    draft = drafter.propose(4, noise.draw)
    assert len(draft) == 4 and draft.q is not None
    for token, q in zip(draft.tokens, draft.q, strict=True):
        assert token % 2 == 0 and q.probability(token) > 0
        assert q.probs.sum() == pytest.approx(1.0)
        assert q.probs[q.ids % 2 == 1].sum() == 0.0
        assert len(q.ids) == SIZES.n_vocab, "no setting cuts anything"


def test_it_draws_more_sharply_where_that_is_accepted_until_the_sampler_changes(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.configure(NeuralParameters(n_max=4))
    noise = Noise(7)

    def drawn(temperature: float) -> Draft:
        drafter.set_sampling(SamplerOptions(temperature=temperature, top_k=40))
        drafter.begin(tokens)
        return drafter.propose(4, noise.draw)

    def favourite(draft: Draft) -> float:
        assert draft.q is not None
        return float(draft.q[0].probs.max())

    first = drawn(4.0)
    assert first.q is not None and first.learn is not None
    first.learn([Distribution.certain(int(q.ids[q.probs.argmax()])) for q in first.q])
    assert favourite(drawn(4.0)) > favourite(first) + 0.1
    assert favourite(drawn(3.9)) < favourite(first) + 0.1
    assert favourite(drawn(4.0)) == pytest.approx(favourite(first))


def test_it_reads_nothing_before_it_is_asked_and_then_only_what_is_new(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.begin(tokens)
    assert (drafter.behind, drafter.context.length(0)) == (len(tokens) - 1, 0)
    drafter.catch_up()
    assert drafter.behind == 1
    drafter.propose(1, first_id)
    assert (drafter.behind, drafter.context.length(0)) == (0, len(tokens) - 1)
    # Another turn that shares the first twenty tokens: the pair of the last of them has another successor.
    drafter.begin([*tokens[:20], 1, 2, 3, 4])
    assert drafter.behind == 4


def test_with_few_hidden_states_kept_it_drafts_from_the_latest(target_file: Path, head_file: Path) -> None:
    with Model(target_file) as target, Model(head_file) as head:
        width = 3 * SIZES.n_embd
        pair = Pair(target, head, HiddenStates(width, capacity=16))
        plain = pair.answer(None).tokens
        pair.answer(None)
        drafter = Eagle3(pair.head(), pair.hidden)
        drafter.configure(NeuralParameters(n_max=3))
        drafted = pair.answer(drafter)
        assert drafted.tokens == plain and drafted.stats.drafted > LENGTH
        # Late: what it did not read in time is gone.
        late = Eagle3(pair.head(), pair.hidden)
        late.configure(NeuralParameters())
        late.begin(plain)
        assert late.propose(1, first_id).tokens
        head.close()


def test_without_hidden_states_it_sits_out(pair: Pair) -> None:
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.begin(PROMPT)
    assert not drafter.propose(3, first_id)


def test_kind_and_context_are_made_from_the_targets(pair: Pair, head_file: Path) -> None:
    with Model(head_file) as head:
        drafter = neural_drafter("eagle3", head, pair.target, EngineOptions())
        assert isinstance(drafter, Eagle3)
        assert drafter.context.n_ctx == pair.target.n_ctx
        head.close()


# ---- through the worker


def test_a_head_that_cannot_be_used_never_stops_the_chat(
    session: Session, target_file: Path, head_file: Path, tmp_path: Path
) -> None:
    files = {
        "narrow": write_eagle3(tmp_path / "narrow.gguf", SIZES, target_hidden_size=128),
        "deep": write_eagle3(tmp_path / "deep.gguf", SIZES, target_layers=(1, 2, 9)),
        "cut": tmp_path / "cut.gguf",
        "gone": tmp_path / "gone.gguf",
    }
    files["cut"].write_bytes(head_file.read_bytes()[:-100])
    reasons = {}
    for name, path in files.items():
        report = session.load(target_file, path, EXACT)
        assert report.draft_model_path is None
        reasons[name] = {d.name: d.reason for d in report.drafters}["eagle3"] or ""
        assert any(reasons[name].rstrip(".") in notice for notice in report.notices), report.notices
        assert session.ask("hi", links=("cache", "eagle3"), max_tokens=8).stats.completion_tokens == 8
    assert "128" in reasons["narrow"] and "64" in reasons["narrow"]
    assert "layer 9" in reasons["deep"]
    assert "incomplete" in reasons["cut"] and "not found" in reasons["gone"]


def test_the_starter_brings_its_head_along(session: Session, starter: Path, t0: Path) -> None:
    report = session.load(starter)
    assert report.draft_model_path is not None and "eagle3" in report.draft_model_path
    assert report.notices == ()
    done = session.ask("Write a Python function that adds two numbers.", links=("eagle3",), max_tokens=80)
    assert done.stats.accepted > 20 and done.stats.by_drafter.keys() == {"eagle3"}
    assert session.load(t0).draft_model_path is None


def test_the_same_text_in_f32(session: Session, starter_f32: Path) -> None:
    report = session.load(starter_f32, options=EXACT_ON_ALL_CORES)
    assert {d.name: d.reason for d in report.drafters}["eagle3"] is None, "the head fits any quantisation"
    plain = session.ask("Tell me about rivers.", max_tokens=48)
    done = session.ask("Tell me about rivers.", links=("eagle3",), max_tokens=48)
    assert done.stats.accepted > 0 and done.token_ids == plain.token_ids
