"""The EAGLE-3 drafter on real weights: what it says changes nothing, and its state is always the true one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.neural import neural_drafter
from app.protocol import ChatMessage, Done, EngineOptions, Started
from drafting.distribution import Distribution, Noise
from drafting.eagle3 import Eagle3
from drafting.hidden_states import HiddenStates
from drafting.llama_target import LlamaTarget
from drafting.parameters import LinkParameters, NeuralParameters
from drafting.sequence import Sequence
from native.context import Context, ContextOptions, Logits
from native.head_context import HeadContext
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.eagle3 import write_eagle3
from tests.session import EXACT, GREEDY, Session
from tests.tiny_gguf import Tiny, write_llama
from tests.weights.neural import CHATS, answer, draft_after_stops, first_id

SIZES = Tiny(n_layer=4)
OPTIONS = ContextOptions(n_ctx=256, n_batch=32, n_outputs=24, kv_type="f32", flash_attention="off")
PROMPT = [2, 260, 17, 300, 41, 5, 99, 260, 261, 9, 3, 77]
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


class Scripted(Eagle3):
    """Says what it is told, and shows what its head would have said of the first token."""

    def __init__(self, pair: Pair, script: Callable[[int, int], int]) -> None:
        """``script``: the token for an index in the sequence, drafted in this place of its draft."""
        super().__init__(pair.head(), pair.hidden)
        self.script = script
        self.first: list[tuple[int, Logits]] = []

    def _distribution(self, row: Logits) -> tuple[Distribution, float]:
        index = self._position + 1
        place = index - len(self._tokens)
        if place == 0:
            self.first.append((index, row.copy()))
        return Distribution.certain(self.script(index, place)), 1.0


@pytest.mark.parametrize("right", range(7))
def test_partial_acceptance_at_every_place_leaves_the_true_state(pair: Pair, right: int) -> None:
    """Six drafted tokens, of which so many are right. Whatever it was, the next draft starts with the
    logits of a head that has read the committed text and nothing else."""
    plain = pair.answer(None).tokens

    def script(index: int, place: int) -> int:
        token = plain[index] if index < len(plain) else 0
        return token if place < right else (token + 1) % SIZES.n_vocab

    drafter = Scripted(pair, script)
    drafter.configure(NeuralParameters(n_max=6))
    drafted = pair.answer(drafter)
    assert drafted.tokens == plain
    passes = drafted.stats.target_passes
    assert passes == 1 + -(-(LENGTH - 1) // (right + 1))
    pair.answer(None)
    for index, logits in drafter.first:
        fresh = Scripted(pair, script)
        fresh.configure(NeuralParameters(n_max=1))
        fresh.begin(plain[:index])
        fresh.propose(1, lambda q, position: int(q.ids[0]))
        ((_, expected),) = fresh.first
        said = np.isfinite(expected)
        assert np.array_equal(said, np.isfinite(logits))
        assert np.allclose(expected[said], logits[said], atol=1e-3), index


@pytest.mark.parametrize("n_max", range(1, 17))
def test_the_same_ids_over_two_hundred_tokens(pair: Pair, n_max: int) -> None:
    plain = pair.answer(None, length=200)
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.configure(NeuralParameters(n_max=n_max))
    drafted = pair.answer(drafter, length=200)
    assert drafted.tokens == plain.tokens
    # The last passes have no room for as many.
    assert drafted.stats.drafted >= (drafted.stats.target_passes - 1 - n_max) * n_max
    counts = drafted.stats.by_drafter["eagle3"]
    assert counts.drafted == drafted.stats.drafted


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


def test_a_draft_that_is_stopped_can_be_made_again(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.configure(NeuralParameters(n_max=5))

    drafter.begin(tokens)
    expected = drafter.propose(5, first_id).tokens

    again = Eagle3(pair.head(), pair.hidden)
    again.configure(NeuralParameters(n_max=5))
    again.begin(tokens)
    assert draft_after_stops(again, 5, (0, 1, 3)) == expected


def test_it_reads_nothing_before_it_is_asked_and_then_only_what_is_new(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.begin(tokens)
    assert (drafter.behind, drafter.context.length(0)) == (len(tokens) - 1, 0)
    drafter.catch_up()
    assert drafter.behind == 1
    drafter.propose(1, lambda q, position: int(q.ids[0]))
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
        assert late.propose(1, lambda q, position: int(q.ids[0])).tokens
        head.close()


def test_without_hidden_states_it_sits_out(pair: Pair) -> None:
    drafter = Eagle3(pair.head(), pair.hidden)
    drafter.begin(PROMPT)
    assert not drafter.propose(3, lambda q, position: int(q.ids[0]))


def test_kind_and_context_are_made_from_the_targets(pair: Pair, head_file: Path) -> None:
    with Model(head_file) as head:
        drafter = neural_drafter("eagle3", head, pair.target, EngineOptions())
        assert isinstance(drafter, Eagle3)
        assert drafter.context.n_ctx == pair.target.n_ctx
        head.close()


# ---- through the worker


def test_chats_in_turn_and_an_edited_message_answer_as_fresh_ones(
    session: Session, target_file: Path, head_file: Path
) -> None:
    report = session.load(target_file, head_file, EXACT)
    assert {d.name: d.reason for d in report.drafters}["eagle3"] is None
    warm = []
    for i, messages in enumerate(CHATS):
        # The one in the middle is answered without it: it must notice what it missed.
        links = () if i == 2 else ("eagle3",)
        done = session.ask(messages, links=links, max_tokens=60)  # type: ignore[arg-type]
        assert (done.stats.drafted > 60) == bool(links)
        warm.append(done.token_ids)
    fresh = []
    for messages in CHATS:
        session.load(target_file, None, EXACT)
        fresh.append(session.ask(messages, max_tokens=60).token_ids)
    assert warm == fresh


@pytest.mark.parametrize("n_prompt", [50, 62, 63])
def test_the_context_is_used_to_its_last_token(
    session: Session, target_file: Path, head_file: Path, n_prompt: int
) -> None:
    session.load(target_file, head_file, EngineOptions(n_ctx=64, kv_type="f32", flash_attention="off"))
    frame = session.ask("!", max_tokens=1).stats.prompt_tokens - 1
    prompt = "!" * (n_prompt - frame)
    plain = session.ask(prompt, max_tokens=None)
    drafted = session.ask(prompt, links=("eagle3",), max_draft=10, max_tokens=None)
    assert drafted.finish_reason == "length"
    assert n_prompt + drafted.stats.completion_tokens == 64
    assert drafted.token_ids == plain.token_ids


def test_a_cancel_while_it_drafts(session: Session, target_file: Path, head_file: Path) -> None:
    session.load(target_file, head_file, EXACT)
    request = session.client.generate([ChatMessage("user", "go")], sampling=GREEDY)
    session.until(lambda e: isinstance(e, Started) and e.request_id == request)
    session.client.cancel(request)
    assert isinstance(session.terminal(request), Done)
    after = session.ask("hi", links=("eagle3",))
    assert after.stats.drafted and after.token_ids == session.ask("hi").token_ids


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


@pytest.mark.timeout(300)
def test_exact_mode_on_the_starter_says_the_same(session: Session, starter: Path) -> None:
    session.load(starter)
    prompt = "List five animals and say a word about each."
    plain = session.ask(prompt, max_tokens=64, exact=True, timeout=200)
    for n_max in (1, 2, 5, 16):
        parameters = LinkParameters(eagle3=NeuralParameters(n_max=n_max))
        done = session.ask(
            prompt,
            links=("eagle3",),
            parameters=parameters,
            max_draft=16,
            max_tokens=64,
            exact=True,
            timeout=200,
        )
        assert done.stats.drafted >= 64 // 2
        assert done.token_ids == plain.token_ids, n_max


def test_the_same_text_in_f32(session: Session, starter_f32: Path) -> None:
    report = session.load(starter_f32, options=EXACT)
    assert {d.name: d.reason for d in report.drafters}["eagle3"] is None, "the head fits any quantisation"
    plain = session.ask("Tell me about rivers.", max_tokens=48)
    done = session.ask("Tell me about rivers.", links=("eagle3",), max_tokens=48)
    assert done.stats.accepted > 0 and done.token_ids == plain.token_ids
