"""Targets that cannot simply rewind say the same with drafting as without: cases A06 and A07.

Recurrent and hybrid models and such with a sliding window, in F32 and without flash attention, where
rounding stays far below what separates two tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from app.protocol import Chunk, Done, DrafterName, EngineOptions, ModelReport, Started
from app.worker import contexts
from app.worker.contexts import TargetContext, target_context
from app.worker.loaded_model import EngineError
from drafting.chain import Chain
from drafting.distribution import Noise
from drafting.drafter import NO_DRAFT, Draft, Draw
from drafting.llama_target import LlamaTarget, llama_source
from drafting.loop import Loop
from drafting.sequence import Sequence as TokenSequence
from native.context import Context, ContextOptions
from native.errors import ContextError
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import WINDOW, write_gemma3
from tests.models.lfm2 import write_lfm2
from tests.models.mamba import write_mamba
from tests.models.qwen35 import write_qwen35
from tests.session import EXACT, Session, chat
from tests.tiny_gguf import Tiny, write_llama

NGRAMS: tuple[DrafterName, ...] = ("cache", "simple", "map-k", "map-k4v", "mod", "suffix")
KINDS: dict[str, Callable[[Path], Path]] = {
    "attention": write_llama,
    "sliding window": write_gemma3,
    "hybrid": write_qwen35,
    "convolutions": write_lfm2,
    "recurrent": write_mamba,
}
PROMPT = "one fish, two fish, red fish, blue fish. " * 3
LONG = 3 * WINDOW + 60


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def path(kind: str, tmp_path: Path) -> Path:
    return KINDS[kind](tmp_path / "tiny.gguf")


# ---- the loop, with drafts as scripted


class Scripted:
    """Drafts so many right tokens and then so many wrong ones, as planned and over again."""

    name = "scripted"

    def __init__(self, said: Sequence[int], plan: Sequence[tuple[int, int]], n_vocab: int) -> None:
        self._said, self._plan, self._n_vocab = said, plan, n_vocab
        self._at = self._calls = self._prompt = 0

    def begin(self, tokens: Sequence[int]) -> None:
        self._at = 0

    def commit(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def judged(self, drafted: int, accepted: int) -> None:
        """It knows."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        right, wrong = self._plan[self._calls % len(self._plan)]
        self._calls += 1
        true = [*self._said[self._at : self._at + right + wrong], *([0] * (right + wrong))]
        tokens = [*true[:right], *((t + 1) % self._n_vocab for t in true[right : right + wrong])]
        return Draft(tokens[:limit]) if tokens[:limit] else NO_DRAFT


def say(target: LlamaTarget, prompt: list[int], n: int, *drafters: Scripted) -> TokenSequence:
    """``n`` greedy tokens behind ``prompt``, which a fresh sequence reads."""
    sequence = TokenSequence(
        seq=0,
        tokens=list(prompt),
        source=llama_source(target.context, SamplerOptions(temperature=0), prompt),
        chain=Chain(drafters),
        noise=Noise(0),
        mode="rejection",
        take=lambda token: None,
        max_new=n,
        max_draft=16,
        computed=target.rewind(0, 0),
    )
    loop = Loop(target, lambda: 0.0)
    loop.add(sequence)
    while loop.busy:
        loop.step()
    return sequence


@pytest.mark.parametrize("length", [1, 2, 5, 16])
def test_partial_acceptance_at_every_position(path: Path, kind: str, length: int) -> None:
    options = EngineOptions(n_ctx=512, n_batch=64, n_threads=1, kv_type="f32", flash_attention="off")
    with Model(path) as model:
        made = target_context(model, options, 512, 16)
        assert made.dropping == ("repeat" if kind == "recurrent" else "cut")
        target = LlamaTarget(made.context)
        prompt = [5 + i % 400 for i in range(150)]
        plain = say(target, prompt, LONG)
        said = plain.tokens[len(prompt) :]
        assert len(said) == LONG and len(set(said)) > 20
        plan = [(right, length - right) for right in range(length + 1)]
        drafted = say(target, prompt, LONG, Scripted(said, plan, model.n_vocab))
        assert drafted.tokens == plain.tokens
        assert drafted.chain.failures == {}
        counts = drafted.stats.by_drafter["scripted"]
        assert counts.accepted > 0 and counts.drafted > counts.accepted
        if length > 1:
            assert len(counts.accepted_at) >= length - 1
        assert drafted.stats.target_passes < plain.stats.target_passes


def test_a_memory_that_refuses_is_read_again_and_drafting_ends(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault injected: at the fourth wrong draft nothing can be dropped any more."""
    options = EngineOptions(n_ctx=512, n_batch=64, n_threads=1, kv_type="f32", flash_attention="off")
    with Model(path) as model:
        target = LlamaTarget(target_context(model, options, 512, 16).context)
        prompt = [5 + i % 400 for i in range(150)]
        plain = say(target, prompt, 60)
        said = plain.tokens[len(prompt) :]
        really, calls = target.context.rewind, []

        def refuse(seq: int, length: int) -> int:
            calls.append(length)
            if len(calls) < 5:  # the first clears what the plain answer left
                return really(seq, length)
            target.context.forget(seq)
            return 0

        monkeypatch.setattr(target.context, "rewind", refuse)
        drafted = say(target, prompt, 60, Scripted(said, [(1, 2)], model.n_vocab))
        assert len(calls) == 5
        assert drafted.tokens == plain.tokens
        assert "cannot drop" in drafted.chain.failures["scripted"]


# ---- what is decided at load


def _decided(path: Path, **changes: int) -> TargetContext:
    options = EngineOptions(**{"n_ctx": 512, "n_batch": 64, "n_threads": 1} | changes)  # type: ignore[arg-type]
    return target_context(Model(path), options, 512, 64)


def test_snapshots_are_kept_where_they_are_few_enough_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_qwen35(tmp_path / "tiny.gguf")
    made = _decided(path)
    assert (made.dropping, made.context.n_snapshots, made.context.n_outputs) == ("cut", 16, 17)
    state = made.context.memory.recurrent / 17
    made.context.model.close()
    monkeypatch.setattr(contexts, "_SNAPSHOT_BYTES", int(4.5 * state))
    made = _decided(path)
    assert (made.dropping, made.context.n_snapshots) == ("cut", 4)
    made.context.model.close()
    monkeypatch.setattr(contexts, "_SNAPSHOT_BYTES", int(2.5 * state))
    made = _decided(path)
    assert (made.dropping, made.context.n_snapshots, made.context.n_outputs) == ("repeat", 0, 64)
    made.context.model.close()


@pytest.mark.parametrize("n_batch", [1, 2, 3, 5])
def test_batches_with_no_room_for_snapshots(path: Path, n_batch: int) -> None:
    made = _decided(path, n_batch=n_batch)
    assert made.dropping in ("cut", "repeat")
    assert made.context.n_outputs <= n_batch and made.context.n_snapshots < n_batch
    assert made.context.length(0) == 0
    made.context.model.close()


def test_a_memory_that_can_do_neither_means_no_drafting(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "rewind", lambda context, seq, length: context.forget(seq) or 0)
    made = _decided(path)
    assert made.dropping == "never"
    if kind not in ("attention", "sliding window"):
        assert made.notices == ("Drafting is off: this model's memory cannot drop rejected tokens.",)
    made.context.model.close()


def test_a_sliding_window_is_kept_alone_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Context.__init__

    def short(self: Context, model: Model, options: ContextOptions, *rest: Context | None) -> None:
        if options.swa_full:
            raise ContextError("no context of 512 tokens could be made")
        really(self, model, options, *rest)

    monkeypatch.setattr(Context, "__init__", short)
    made = _decided(write_gemma3(tmp_path / "tiny.gguf"))
    assert made.dropping == "cut" and not made.context.options.swa_full
    assert made.notices == (
        "There is no memory to keep more than the sliding window of 32 tokens in most layers: after an "
        "edit the whole chat is read again.",
    )
    made.context.model.close()
    with pytest.raises(EngineError, match="smaller context"):
        _decided(write_llama(tmp_path / "llama.gguf"))


# ---- the engine, with n-gram drafters


def test_what_was_found_out_at_load_is_shown(session: Session, path: Path, kind: str) -> None:
    report = session.load(path, options=EXACT)
    off = [drafter.reason for drafter in report.drafters if drafter.name in NGRAMS and drafter.reason]
    assert off == []
    words = " ".join(report.notices)
    has_snapshots = kind in ("hybrid", "convolutions")
    assert report.max_draft == (16 if has_snapshots else 64)
    assert ("drafts of up to 16 tokens can be dropped" in words) == has_snapshots
    assert ("the accepted tokens are computed again" in words) == (kind == "recurrent")
    assert report.kv_bytes > 0


def test_same_text_beyond_the_window_and_after_an_edit(session: Session, path: Path) -> None:
    """A chat of several turns grows to three times the window, then its first message is edited."""
    chats = [
        chat(PROMPT),
        chat(PROMPT, "one fish", "again: " + PROMPT),
        chat(PROMPT + "!", "one fish", "again: " + PROMPT),  # edited at the end of its first message
        chat("a " + PROMPT, "one fish", "again: " + PROMPT),  # and at its beginning
        chat("hi"),
        chat(PROMPT, "one fish", "again: " + PROMPT),
    ]
    fresh = []
    for messages in chats:
        session.load(path, options=EXACT)
        fresh.append(session.ask(messages, max_tokens=LONG).token_ids)
    session.load(path, options=EXACT)
    plain = [session.ask(messages, max_tokens=LONG).token_ids for messages in chats]
    assert plain == fresh
    session.load(path, options=EXACT)
    drafted = [session.ask(messages, links=NGRAMS, max_draft=16, max_tokens=LONG) for messages in chats]
    assert [done.token_ids for done in drafted] == fresh
    assert sum(done.stats.drafted for done in drafted) > sum(done.stats.accepted for done in drafted) > 0


def test_the_second_turn_reads_only_what_is_new(session: Session, path: Path) -> None:
    session.load(path, options=EXACT)
    first = session.ask(PROMPT, links=NGRAMS, max_tokens=40)
    second = session.ask(chat(PROMPT, first.text, "more"), links=NGRAMS, max_tokens=4)
    known = first.stats.prompt_tokens + len(first.token_ids)
    # A wrong draft at the very end may have taken some tokens back.
    assert known - 18 <= second.stats.reused_tokens <= known + 1


def test_another_answer_to_the_same_message_does_not_begin_at_the_first_token(
    session: Session, path: Path, kind: str
) -> None:
    report = session.load(path, options=msgspec.structs.replace(EXACT, n_batch=64))
    assert isinstance(report, ModelReport)
    first = session.ask(PROMPT, links=NGRAMS, max_tokens=60)
    again = session.ask(PROMPT, max_tokens=60)
    assert again.token_ids == first.token_ids
    n_prompt = first.stats.prompt_tokens
    assert n_prompt > 70
    if kind in ("attention", "sliding window"):
        assert again.stats.reused_tokens == n_prompt - 1
    else:
        assert again.stats.reused_tokens == (n_prompt - 1) // 64 * 64


def test_a_cancelled_answer_leaves_a_memory_that_can_be_used(session: Session, path: Path) -> None:
    session.load(path, options=EXACT)
    long = session.client.generate(chat(PROMPT), max_tokens=1500)
    session.until(lambda event: isinstance(event, Chunk))
    session.client.cancel(long)
    partial = session.terminal(long)
    assert isinstance(partial, Done)
    after = session.ask(chat(PROMPT, "one fish", "more"), links=NGRAMS, max_tokens=60)
    session.load(path, options=EXACT)
    assert after.token_ids == session.ask(chat(PROMPT, "one fish", "more"), max_tokens=60).token_ids


def test_automatic_mode_says_the_same(session: Session, path: Path) -> None:
    session.load(path, options=EXACT)
    plain = session.ask(PROMPT, max_tokens=LONG)
    done = session.ask(PROMPT, links=NGRAMS, mode="auto", max_draft=48, max_tokens=LONG)
    assert done.token_ids == plain.token_ids


@pytest.mark.all_cores
def test_exact_mode_holds_or_is_refused_with_the_reason(session: Session, path: Path, kind: str) -> None:
    """In F16 and with flash attention, where default mode promises less."""
    session.load(path, options=EngineOptions(n_ctx=2048))
    plain = session.ask(PROMPT, max_tokens=LONG, exact=True)
    drafted = session.ask(PROMPT, links=NGRAMS, max_draft=12, max_tokens=LONG, exact=True)
    lines = [line for event in session.seen if isinstance(event, Started) for line in event.notices]
    assert drafted.stats.drafted > drafted.stats.accepted
    if kind == "recurrent":
        assert lines == ["Exact mode is off: this model's memory cannot drop single tokens."] * 2
    else:
        assert lines == []
        assert drafted.token_ids == plain.token_ids


@pytest.mark.parametrize("write", [write_qwen35, write_lfm2])
def test_hidden_states_follow_a_hybrid_memory(
    session: Session, tmp_path: Path, write: Callable[[Path, Tiny], Path]
) -> None:
    """An EAGLE-3 head reads what the target computed where it now stands."""
    tiny = Tiny(n_layer=4)
    target = write(tmp_path / "target.gguf", tiny)
    report = session.load(target, write_eagle3(tmp_path / "head.gguf", tiny), EXACT)
    assert report.draft_model_path is not None
    plain = session.ask(PROMPT, max_tokens=LONG)
    alone = session.ask(PROMPT, links=("eagle3",), max_tokens=LONG)
    behind = session.ask(PROMPT, links=(*NGRAMS, "eagle3"), max_tokens=LONG)
    assert alone.token_ids == behind.token_ids == plain.token_ids
    assert alone.stats.by_drafter["eagle3"].drafted > 100
    assert set(behind.stats.by_drafter) > {"eagle3"}
