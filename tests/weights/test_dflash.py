"""DFlash and DSpark on real weights: what their blocks read, when they draft, and DSpark's own heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import gguf
import numpy as np
import pytest

from drafting.dflash import DFlash
from drafting.distribution import Distribution
from drafting.drafter import Interrupted
from drafting.dspark import DSpark
from drafting.hidden_states import HiddenStates
from drafting.llama_target import LlamaTarget
from drafting.parameters import LinkParameters, NeuralParameters
from drafting.sequence import Sequence
from native.block_context import BlockContext
from native.context import Context, ContextOptions, Logits
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.dflash import write_dflash
from tests.session import EXACT, Session
from tests.tiny_gguf import Tiny, write_llama
from tests.weights.neural import PROMPT, answer

SIZES = Tiny(n_layer=4)
HEAD = Tiny(n_layer=2)
BLOCK = 8
OPTIONS = ContextOptions(n_ctx=256, n_batch=32, n_outputs=24, kv_type="f32", flash_attention="off")
LENGTH = 48
Kind = Literal["dflash", "dspark", "dspark bonus"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@pytest.fixture(scope="session")
def target_file(models: Path) -> Path:
    return write_llama(models / "dflash-target.gguf", SIZES)


@pytest.fixture(scope="session")
def head_files(models: Path) -> dict[Kind, Path]:
    return {
        "dflash": write_dflash(models / "dflash.gguf", HEAD, block_size=BLOCK),
        "dspark": write_dflash(models / "dspark.gguf", HEAD, block_size=BLOCK, markov=True),
        "dspark bonus": write_dflash(
            models / "dspark-bonus.gguf", HEAD, block_size=BLOCK, markov=True, drafts_from_anchor=False
        ),
    }


class Pair:
    """A tiny target and a drafter of its, without a worker in between."""

    def __init__(self, target: Model, head: Model, kind: Kind, hidden: HiddenStates | None = None) -> None:
        self.target = LlamaTarget(Context(target, OPTIONS))
        self.kind = kind
        self._head = head
        self.hidden = self.target.keep_hidden(self.blocks().target_layers)
        if hidden is not None:
            self.hidden = self.target.hidden = hidden

    def blocks(self) -> BlockContext:
        return BlockContext(self._head, OPTIONS, self.target.context)

    def drafter(self, n_max: int, p_min: float = 0.0) -> DFlash:
        if self.kind == "dflash":
            drafter = DFlash(self.blocks(), self.hidden)
        else:
            drafter = DSpark(self.blocks(), self.hidden, states_confidence=True)
        drafter.configure(NeuralParameters(n_max=n_max, p_min=p_min))
        return drafter

    @property
    def longest(self) -> int:
        """Tokens that a block drafts: the row of a DSpark block's known token drafts too."""
        return BLOCK if self.kind == "dspark" else BLOCK - 1

    def answer(
        self,
        drafter: DFlash | None,
        prompt: list[int] = PROMPT,
        length: int = LENGTH,
        temperature: float = 0.0,
    ) -> Sequence:
        """An answer of ``length`` tokens, from scratch; 16 drafted tokens at most."""
        if drafter is not None:
            drafter.set_sampling(SamplerOptions(temperature=temperature))
        return answer(self.target, drafter, prompt, length, temperature)


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, target_file: Path, head_files: dict[Kind, Path]) -> Iterator[Pair]:
    with Model(target_file) as target, Model(head_files[request.param]) as head:
        yield Pair(target, head, request.param)
        head.close()


def favourite(q: Distribution, position: int) -> int:
    return int(q.ids[q.probs.argmax()])


def test_q_is_a_distribution_over_the_targets_vocabulary(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = pair.drafter(4)
    drafter.set_sampling(SamplerOptions(temperature=0.8))
    drafter.begin(tokens)
    draft = drafter.propose(4, favourite)
    assert len(draft) == 4 and draft.q is not None and draft.confidence is not None
    for token, q, confidence in zip(draft.tokens, draft.q, draft.confidence, strict=True):
        assert q.probability(token) > 0
        assert q.probs.sum() == pytest.approx(1.0)
        assert len(q.ids) == SIZES.n_vocab, "no setting cuts anything"
        assert 0.0 < confidence < 1.0


def test_a_pass_limit_cuts_the_draft_and_a_shorter_block_is_another(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    whole, cut, short = pair.drafter(64), pair.drafter(64), pair.drafter(2)
    for drafter in (whole, cut, short):
        drafter.begin(tokens)
    drafted = whole.propose(64, favourite).tokens
    assert len(drafted) == pair.longest
    assert cut.propose(2, favourite).tokens == drafted[:2]
    assert len(short.propose(64, favourite)) == 2
    rows = [drafter.context.logits() for drafter in (whole, cut, short)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0][1], rows[2][1], atol=1e-3)


def test_a_draft_that_is_stopped_can_be_made_again(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = pair.drafter(5)
    drafter.begin(tokens)
    expected = drafter.propose(5, favourite).tokens
    again = pair.drafter(5)
    again.begin(tokens)
    again.context.abort()
    with pytest.raises(Interrupted):
        again.catch_up()
    with pytest.raises(Interrupted):
        again.propose(5, favourite)
    again.context.allow()
    again.catch_up()
    again.context.abort()
    with pytest.raises(Interrupted):
        again.propose(5, favourite)  # the block itself
    again.context.allow()
    assert again.propose(5, favourite).tokens == expected
    assert again.propose(5, favourite).tokens == expected


def test_it_reads_nothing_before_it_is_asked_and_then_only_what_is_new(pair: Pair) -> None:
    tokens = pair.answer(None).tokens
    drafter = pair.drafter(5)
    drafter.begin(tokens)
    assert (drafter.behind, drafter.context.length(0)) == (len(tokens) - 1, 0)
    drafter.catch_up()
    assert (drafter.behind, drafter.context.length(0)) == (0, len(tokens) - 1)
    assert drafter.propose(1, favourite)
    # Another turn that shares the first twenty tokens, then one that is their beginning.
    drafter.begin([*tokens[:20], 1, 2, 3, 4])
    assert drafter.behind == 3
    drafter.begin(tokens[:20])
    assert drafter.behind == 0


def test_with_few_hidden_states_kept_it_drafts_from_the_latest(
    target_file: Path, head_files: dict[Kind, Path]
) -> None:
    with Model(target_file) as target, Model(head_files["dflash"]) as head:
        pair = Pair(target, head, "dflash", HiddenStates(3 * SIZES.n_embd, capacity=16))
        plain = pair.answer(None).tokens
        drafted = pair.answer(pair.drafter(3))
        assert drafted.tokens == plain and drafted.stats.drafted > LENGTH
        # Late: what it did not read in time is gone.
        late = pair.drafter(3)
        late.begin(plain)
        assert late.propose(1, favourite)
        assert late.context.length(0) == len(plain) + 3
        head.close()


def test_without_hidden_states_or_room_it_sits_out(pair: Pair) -> None:
    drafter = pair.drafter(3)
    drafter.begin(PROMPT)
    assert not drafter.propose(3, favourite)
    long = [*PROMPT, *[7] * (OPTIONS.n_ctx - len(PROMPT))]
    plain = pair.answer(None, long[:-20], length=20).tokens
    drafter.begin(plain[:-4])
    assert drafter.propose(3, favourite), "four places"
    drafter.begin(plain[:-1])
    assert not drafter.propose(3, favourite)


# ---- what DSpark's heads add


def tensor(path: Path, name: str) -> Logits:
    return next(np.asarray(t.data) for t in gguf.GGUFReader(path).tensors if t.name == name)


@pytest.fixture(params=["dspark", "dspark bonus"])
def dspark(request: pytest.FixtureRequest, target_file: Path, head_files: dict[Kind, Path]) -> Iterator[Pair]:
    with Model(target_file) as target, Model(head_files[request.param]) as head:
        yield Pair(target, head, request.param)
        head.close()


def test_each_row_follows_from_the_token_drafted_before_it(
    dspark: Pair, target_file: Path, head_files: dict[Kind, Path]
) -> None:
    """Both files have the same weights but for the heads, so that the difference is the Markov head's."""
    tokens = dspark.answer(None).tokens
    drafter = dspark.drafter(4)
    drafter.begin(tokens)
    drafted = drafter.propose(4, favourite).tokens
    rows = drafter.context.logits().copy()
    known = BLOCK - dspark.longest  # rows that draft nothing
    assert len(rows) == known + 4
    with Model(target_file) as target, Model(head_files["dflash"]) as head:
        pair = Pair(target, head, "dflash")
        pair.answer(None)
        base = pair.drafter(known + 3)  # a block of as many rows, the first of which is not read
        base.begin(tokens)
        base.propose(known + 3, favourite)
        plain = base.context.logits().copy()
        head.close()
    w1 = tensor(head_files[dspark.kind], "markov_w1.weight")
    w2 = tensor(head_files[dspark.kind], "markov_w2.weight")
    for i, before in enumerate([tokens[-1], *drafted[:3]]):
        assert np.allclose(rows[known + i] - plain[known + i], w2 @ w1[before], atol=1e-3), i
        assert drafted[i] == rows[known + i].argmax()


def test_a_draft_ends_with_a_token_that_is_no_favourite(dspark: Pair) -> None:
    tokens = dspark.answer(None).tokens
    drafter = dspark.drafter(BLOCK)
    drafter.begin(tokens)
    expected = drafter.propose(BLOCK, favourite).tokens
    for place in range(dspark.longest):

        def other(q: Distribution, position: int, place: int = place) -> int:
            best = favourite(q, position)
            return best if position != len(tokens) + place else (best + 1) % SIZES.n_vocab

        draft = drafter.propose(BLOCK, other)
        assert draft.tokens[:place] == expected[:place]
        assert len(draft) == place + 1 and draft.tokens[place] != expected[place]


def test_p_min_looks_at_the_confidence_head(dspark: Pair) -> None:
    tokens = dspark.answer(None).tokens
    drafter = dspark.drafter(BLOCK)
    drafter.begin(tokens)
    whole = drafter.propose(BLOCK, favourite)
    assert whole.confidence is not None
    said = drafter.context
    assert isinstance(said, BlockContext)
    assert whole.confidence == pytest.approx([min(c, 0.99) for c in said.confidences()[-dspark.longest :]])
    for place in range(1, dspark.longest):
        p_min = whole.confidence[place] + 1e-4
        drafter.configure(NeuralParameters(n_max=BLOCK, p_min=p_min))
        draft = drafter.propose(BLOCK, favourite)
        expected = next(i for i, c in enumerate(whole.confidence) if c < p_min)
        assert draft.tokens == whole.tokens[:expected]


# ---- through the worker


def test_a_file_that_cannot_be_used_never_stops_the_chat(
    session: Session, target_file: Path, head_files: dict[Kind, Path], tmp_path: Path
) -> None:
    files = {
        "deep": write_dflash(tmp_path / "deep.gguf", HEAD, target_layers=(1, 9)),
        "cut": tmp_path / "cut.gguf",
        "second": write_dflash(tmp_path / "second.gguf", HEAD, selector=True),
    }
    files["cut"].write_bytes(head_files["dflash"].read_bytes()[:-100])
    reasons = {}
    for name, path in files.items():
        report = session.load(target_file, path, EXACT)
        assert report.draft_model_path is None
        reasons[name] = {d.name: d.reason for d in report.drafters}["dflash"] or ""
        assert session.ask("hi", links=("dflash",), max_tokens=8).stats.completion_tokens == 8
    assert "layer 9" in reasons["deep"]
    assert "incomplete" in reasons["cut"]
    assert "DFlash 2" in reasons["second"]


def test_a_dspark_file_without_a_confidence_head_is_sure_by_its_own_distribution(
    session: Session, target_file: Path, tmp_path: Path
) -> None:
    path = write_dflash(tmp_path / "silent.gguf", HEAD, markov=True, confidence=False)
    session.load(target_file, path, EXACT)
    plain = session.ask("hi")
    counts = []
    for p_min in (0.0, 0.3, 1.0):
        parameters = LinkParameters(dspark=NeuralParameters(n_max=BLOCK, p_min=p_min))
        done = session.ask("hi", links=("dspark",), parameters=parameters)
        assert done.token_ids == plain.token_ids
        counts.append(done.stats.drafted)
    assert counts[0] > counts[1] > counts[2] == 0
