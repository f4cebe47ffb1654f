"""The MTP drafter on real weights: what it says changes nothing, and its state is always the true one.

On a hybrid with one head, the same with its head in a file of its own, a model of attention with a
sliding window and three heads in a chain, and a Gemma 4 with its assistant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app import llama_model, neural
from app.llama_model import LlamaModel
from app.protocol import ChatMessage, Done, DraftingParams, EngineOptions, Load, Started
from drafting.distribution import Distribution, Noise
from drafting.hidden_states import HiddenStates
from drafting.llama_target import LlamaTarget
from drafting.mtp import Mtp
from drafting.mtp_assistant import MtpAssistant
from drafting.neural import NeuralDrafter
from drafting.parameters import NeuralParameters
from drafting.sequence import Sequence
from drafting.target import Row
from native.context import Context, ContextOptions, Logits
from native.errors import ContextError, ModelLoadError
from native.head_context import HeadContext
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.mtp import CHAIN, MTP_KINDS, MtpFiles
from tests.models.qwen35 import write_qwen35
from tests.session import EXACT, GREEDY, Session
from tests.tiny_gguf import Tiny
from tests.weights.neural import CHATS, answer, draft_after_stops, first_id

SIZES = Tiny()
OPTIONS = ContextOptions(
    n_ctx=256, n_batch=32, n_outputs=24, n_snapshots=16, kv_type="f32", flash_attention="off"
)
PROMPT = [2, 260, 17, 300, 41, 5, 99, 260, 261, 9, 3, 77]
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

    def scripted(self, n_max: int, script: Callable[[int, int], int]) -> Scripted:
        kind = ScriptedAssistant if self.kind == "an assistant" else ScriptedMtp
        drafter = kind(self.head(), self.hidden)
        drafter.script, drafter.said = script, {}
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


class Scripted(NeuralDrafter):
    """Says what it is told, and keeps what its heads would have said, by the length of the text before.

    ``script``: the token for an index in the sequence, drafted in this place of its draft.
    """

    script: Callable[[int, int], int]
    said: dict[int, list[Logits]]

    def _distribution(self, row: Logits) -> tuple[Distribution, float]:
        begin = len(self._tokens)
        rows = self.said.setdefault(begin, [])
        rows.append(row.copy())
        place = len(rows) - 1
        return Distribution.certain(self.script(begin + place, place)), 1.0


class ScriptedMtp(Scripted, Mtp):
    pass


class ScriptedAssistant(Scripted, MtpAssistant):
    pass


@pytest.mark.parametrize("right", range(7))
def test_partial_acceptance_at_every_place_leaves_the_true_state(pair: Pair, right: int) -> None:
    """Six drafted tokens, or one of each head, of which so many are right. Whatever it was, the next draft
    says what heads say that have read the committed text and nothing else."""
    n_max = min(6, pair.longest)
    right = min(right, n_max)
    plain = pair.plain[: len(PROMPT) + LENGTH]

    def script(index: int, place: int) -> int:
        token = plain[index] if index < len(plain) else 0
        return token if place < right else (token + 1) % SIZES.n_vocab

    drafter = pair.scripted(n_max, script)
    drafted = pair.answer(drafter)
    assert drafted.tokens == plain
    assert drafted.stats.target_passes == 1 + -(-(LENGTH - 1) // (right + 1))
    # Gemma's GELU is looked up in a table of 16-bit numbers: where the last bit of a sum makes a step there,
    # it grows along the draft. Logits spread by 2, and of another state they are others.
    near = 0.2 if pair.kind == "an assistant" else 1e-3
    fresh = pair.scripted(n_max, script)
    pair.answer(None)
    for begin, rows in sorted(drafter.said.items(), reverse=True):
        if pair.kind == "an assistant":  # it reads the target's own KV cache
            pair.target.rewind(0, begin - 1)
        fresh.context.forget(0)  # whatever it read before
        fresh.begin([])
        fresh.begin(plain[:begin])
        fresh.propose(len(rows), lambda q, position: int(q.ids[0]))
        for expected, row in zip(fresh.said[begin], rows, strict=True):
            assert np.allclose(expected, row, atol=near), begin


@pytest.mark.parametrize("n_max", range(1, 17))
def test_the_same_ids_over_two_hundred_tokens(pair: Pair, n_max: int) -> None:
    drafted = pair.answer(pair.drafter(n_max), length=200)
    assert drafted.tokens == pair.plain
    # The last passes have no room for as many.
    longest = min(n_max, pair.longest)
    assert drafted.stats.drafted >= (drafted.stats.target_passes - 1 - longest) * longest
    assert drafted.stats.by_drafter["mtp"].drafted == drafted.stats.drafted


def test_heads_say_what_they_read(pair: Pair) -> None:
    """Another hidden state or another token before it: each changes what is said."""
    seen = pair.scripted(1, lambda index, place: 0)
    tokens = pair.answer(None, length=8).tokens

    def first(tokens: list[int]) -> Logits:
        seen.begin(tokens)
        seen.propose(1, lambda q, position: int(q.ids[0]))
        return seen.said[len(tokens)].pop()

    right = first(tokens)
    assert np.array_equal(right, first(tokens))
    assert not np.allclose(right, first([*tokens[:-1], (tokens[-1] + 1) % 500]), atol=1e-2)
    if pair.kind != "an assistant":
        assert not np.allclose(right, first([*tokens[:4], 5, *tokens[5:]]), atol=1e-3)
    pair.hidden.rows(0, range(len(tokens)))[len(tokens) - 2] *= -1
    assert not np.allclose(right, first(tokens), atol=1e-2)


def test_a_draft_ends_where_it_is_unsure(pair: Pair) -> None:
    drafter = pair.drafter(3)
    tokens = pair.answer(None).tokens
    drafter.begin(tokens)
    draft = drafter.propose(3, lambda q, position: int(q.ids[0]))
    assert draft.confidence is not None
    least = min(draft.confidence)
    assert least is not None and max(draft.confidence) > least + 0.01
    drafter.configure(NeuralParameters(n_max=3, p_min=least + 1e-4))
    shorter = drafter.propose(3, lambda q, position: int(q.ids[0]))
    assert shorter.tokens == draft.tokens[: draft.confidence.index(least)]
    drafter.configure(NeuralParameters(n_max=3, p_min=least - 1e-4))
    assert drafter.propose(3, lambda q, position: int(q.ids[0])).tokens == draft.tokens


def test_q_is_made_by_the_targets_settings(pair: Pair) -> None:
    drafter = pair.drafter(3)
    drafter.set_sampling(SamplerOptions(temperature=0.8, top_k=5))
    drafter.begin(pair.answer(None).tokens)
    draft = drafter.propose(3, Noise(7).draw)
    assert len(draft) == 3 and draft.q is not None
    for token, q in zip(draft.tokens, draft.q, strict=True):
        assert q.probability(token) > 0 and len(q.ids) == 5
        assert q.probs.sum() == pytest.approx(1.0)


def test_a_draft_that_is_stopped_can_be_made_again(pair: Pair) -> None:
    drafter, again = pair.drafter(3), pair.drafter(3)
    tokens = pair.answer(None).tokens

    drafter.begin(tokens)
    expected = drafter.propose(3, first_id).tokens
    assert len(expected) == 3
    again.begin(tokens)
    assert draft_after_stops(again, 3, (0, 1, 2)) == expected


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
    drafter.propose(1, lambda q, position: int(q.ids[0]))
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
        assert late.propose(1, lambda q, position: int(q.ids[0])).tokens
    finally:
        pair.hidden = pair.target.hidden = kept


def test_without_hidden_states_it_sits_out(pair: Pair) -> None:
    pair.target.forget(0)
    drafter = pair.drafter(3)
    drafter.begin(PROMPT)
    assert not drafter.propose(3, lambda q, position: int(q.ids[0]))


def test_it_pauses_when_its_context_is_full(pair: Pair) -> None:
    for length, expected in ((64, 1), (63, 2), (65, 0)):
        drafter = pair.drafter(3, n_ctx=64)
        tokens = pair.answer(None, length=length - len(PROMPT)).tokens
        drafter.begin(tokens)
        draft = drafter.propose(3, lambda q, position: int(q.ids[0]))
        assert len(draft) == (max(0, expected - 1) if pair.kind == "an assistant" else expected)


# ---- through the worker


@pytest.fixture(scope="module", params=MTP_KINDS)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MtpFiles:
    return MTP_KINDS[request.param](tmp_path_factory.mktemp("mtp"))


def test_chats_in_turn_and_an_edited_message_answer_as_fresh_ones(session: Session, files: MtpFiles) -> None:
    report = session.load(files.target, files.heads, EXACT)
    assert {d.name: d.reason for d in report.drafters}["mtp"] is None
    assert report.draft_model_path == (str(files.heads) if files.heads else None)
    warm = []
    for i, messages in enumerate(CHATS):
        # The one in the middle is answered without it: it must notice what it missed.
        links = () if i == 2 else ("mtp",)
        done = session.ask(messages, links=links, max_tokens=60)  # type: ignore[arg-type]
        assert (done.stats.drafted > 20) == bool(links)
        warm.append(done.token_ids)
    fresh = []
    for messages in CHATS:
        session.load(files.target, None, EXACT)
        fresh.append(session.ask(messages, max_tokens=60).token_ids)
    assert warm == fresh


@pytest.mark.parametrize("n_prompt", [50, 62, 63])
def test_the_context_is_used_to_its_last_token(session: Session, files: MtpFiles, n_prompt: int) -> None:
    session.load(files.target, files.heads, EngineOptions(n_ctx=64, kv_type="f32", flash_attention="off"))
    frame = session.ask("!", max_tokens=1).stats.prompt_tokens - 1
    prompt = "!" * (n_prompt - frame)
    plain = session.ask(prompt, max_tokens=None)
    drafted = session.ask(prompt, links=("mtp",), max_draft=10, max_tokens=None)
    assert drafted.finish_reason == "length"
    assert n_prompt + drafted.stats.completion_tokens == 64
    assert drafted.token_ids == plain.token_ids


def test_a_cancel_while_it_drafts(session: Session, files: MtpFiles) -> None:
    session.load(files.target, files.heads, EXACT)
    request = session.client.generate([ChatMessage("user", "go")], sampling=GREEDY)
    session.until(lambda e: isinstance(e, Started) and e.request_id == request)
    session.client.cancel(request)
    assert isinstance(session.terminal(request), Done)
    after = session.ask("hi", links=("mtp",))
    assert after.stats.drafted and after.token_ids == session.ask("hi").token_ids


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
        monkeypatch.setattr(llama_model, "Model", NoRoom)
    else:
        monkeypatch.setattr(neural, "HeadContext", no_room)
    path = write_qwen35(tmp_path / "target.gguf")
    loaded = LlamaModel(Load(request_id=1, model_path=str(path), options=EXACT), lambda fraction: True)
    try:
        report = loaded.report
        assert {d.name: d.reason for d in report.drafters}["mtp"] == "out of memory"
        assert "The model's own MTP heads are not used: out of memory." in report.notices
        drafting = DraftingParams(links=("cache", "mtp"))
        assert [link.name for link in loaded.links(drafting, GREEDY)] == ["cache"]
        loaded.target.decode([Row(0, 5, 0, True)])
    finally:
        loaded.close()
