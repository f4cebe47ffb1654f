"""The engine over the scripted model: one terminal event per request, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType

import pytest

from app.protocol import (
    ChatMessage,
    Chunk,
    Done,
    DraftingParams,
    Failed,
    FromWorker,
    Generate,
    Load,
    Piece,
    PrefillProgress,
    SamplingParams,
    Started,
)
from app.worker.engine import Engine
from app.worker.fake_model import FakeModel
from app.worker.fake_script import FakeReply, FakeScript
from app.worker.loaded_model import EngineError
from drafting.drafter import Draft, Drafter, Draw
from drafting.target import Row
from tests.drafting.toy import Idle

FAST = 1e9  # tokens per second
HELLO = FakeReply(text="Hello there, how are you today?", tokens_per_second=FAST)


class Model(FakeModel):
    """The scripted model, with a hook that is called with the number of each pass before it runs."""

    before_pass: Callable[[int], None] = staticmethod(lambda number: None)
    extra_links: Sequence[Drafter] = ()

    def __init__(self, script: FakeScript, request: Load, progress: Callable[[float], bool]) -> None:
        self.passes = 0  # that ran to their end
        self._asked = 0
        self.closed = False
        super().__init__(script, request, progress)

    def decode(self, rows: Sequence[Row]) -> None:
        self._asked += 1
        self.before_pass(self._asked)
        super().decode(rows)
        self.passes += 1

    def links(self, slot: int, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        return [*self.extra_links, *super().links(slot, drafting, sampling)]

    def close(self) -> None:
        self.closed = True


class Bench:
    """An engine with a loaded scripted model, and requests numbered from 1."""

    def __init__(self, *replies: FakeReply, n_ctx: int = 100_000, **script: object) -> None:
        self._script = FakeScript(replies=replies or (HELLO,), n_ctx=n_ctx, **script)
        self.models: list[Model] = []
        self.engine = Engine(self._make, "fake")
        self._last = 0

    def _make(self, request: Load, progress: Callable[[float], bool]) -> Model:
        model = Model(self._script, request, progress)
        self.models.append(model)
        return model

    def load(self) -> Model:
        self.engine.load(Load(request_id=self.next_id(), model_path="/m/fake.gguf"), lambda fraction: None)
        return self.models[-1]

    def next_id(self) -> int:
        self._last += 1
        return self._last

    def request(self, *turns: str, **options: object) -> Generate:
        """A request whose turns are the person's and the model's, in turn."""
        messages = tuple(ChatMessage("assistant" if i % 2 else "user", turn) for i, turn in enumerate(turns))
        return Generate(request_id=self.next_id(), messages=messages, **options)

    def start(self, *turns: str, **options: object) -> Started:
        return self.engine.start(self.request(*turns, **options))

    def finish(self) -> list[FromWorker]:
        """Step until nothing is left to do."""
        events: list[FromWorker] = []
        for _ in range(10_000):
            if not self.engine.busy:
                return events
            events += self.engine.step()
        raise AssertionError("the engine does not end")

    def ask(self, *turns: str, **options: object) -> list[FromWorker]:
        started = self.start(*turns, **options)
        return [started, *self.finish()]


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.load()
    return bench


def terminal(events: list[FromWorker]) -> Done | Failed:
    """The one event that ends a request; it is the last."""
    last = [event for event in events if isinstance(event, Done | Failed)]
    assert len(last) == 1
    assert events[-1] is last[0]
    return last[0]


def done(events: list[FromWorker]) -> Done:
    event = terminal(events)
    assert isinstance(event, Done), event
    return event


def streamed(events: list[FromWorker]) -> str:
    return "".join(p.text for e in events if isinstance(e, Chunk) for p in e.pieces if not p.reasoning)


def refusal(bench: Bench, *turns: str, **options: object) -> EngineError:
    with pytest.raises(EngineError) as caught:
        bench.start(*turns, **options)
    assert not bench.engine.busy
    return caught.value


# ---- an answer


def test_what_is_streamed_is_what_was_said(bench: Bench) -> None:
    events = bench.ask("Hi")
    end = done(events)
    assert isinstance(events[0], Started)
    assert {getattr(event, "request_id", None) for event in events} == {end.request_id}
    assert end.text == streamed(events) == "Hello there, how are you today?"
    assert end.finish_reason == "stop"
    assert len(end.token_ids) + 1 == end.stats.completion_tokens
    assert sum(event.tokens for event in events if isinstance(event, Chunk)) == end.stats.completion_tokens


@pytest.mark.parametrize("drafts", [((4, 4),), ((4, 2), (0, 0), (8, 8), (3, 0)), ((64, 64),)])
def test_drafts_do_not_change_the_answer(drafts: tuple[tuple[int, int], ...]) -> None:
    """A03: a draft may run past the end token; nothing of that is said or counted."""
    bench = Bench(FakeReply(text=HELLO.text, drafts=drafts, tokens_per_second=FAST))
    bench.load()
    events = bench.ask("Hi", drafting=DraftingParams(max_draft=64))
    end = done(events)
    assert end.text == streamed(events) == HELLO.text
    chunks = [event for event in events if isinstance(event, Chunk)]
    assert sum(chunk.drafted for chunk in chunks) == end.stats.drafted > 0
    assert sum(chunk.accepted for chunk in chunks) == end.stats.accepted
    assert all(chunk.accepted <= min(chunk.tokens, chunk.drafted) for chunk in chunks)
    drafted_text = "".join(p.text for c in chunks for p in c.pieces if p.drafter is not None)
    assert bool(drafted_text) == (end.stats.accepted > 0)


def test_a_stop_string_inside_an_accepted_run() -> None:
    """A04: it comes before the cap, and nothing behind it is shown."""
    pieces = ("ten", "eleven", "STOP", "20", "21", "22")
    bench = Bench(FakeReply(pieces=pieces, drafts=((8, 6),), tokens_per_second=FAST))
    bench.load()
    events = bench.ask("Hi", stop=("STOP",), max_tokens=5)
    end = done(events)
    assert end.finish_reason == "stop"
    assert end.text == streamed(events) == "teneleven"
    assert len(end.token_ids) == 2
    assert end.stats.completion_tokens == 3


@pytest.mark.parametrize("max_tokens", [1, 3, 7])
def test_max_tokens(bench: Bench, max_tokens: int) -> None:
    end = done(bench.ask("Hi", max_tokens=max_tokens))
    assert end.finish_reason == "length"
    assert end.stats.completion_tokens == len(end.token_ids) == max_tokens
    assert HELLO.text.startswith(end.text)


def test_one_byte_a_token() -> None:
    """D01: and a cut in the middle of a character."""
    text = "👩‍💻漢字é"
    pieces = tuple(bytes([b]).decode("utf-8", "surrogateescape") for b in text.encode())
    bench = Bench(FakeReply(pieces=pieces, tokens_per_second=FAST))
    bench.load()
    events = bench.ask("Hi")
    assert done(events).text == streamed(events) == text
    cut = len("👩‍💻".encode()) + 2
    events = bench.ask("Hi", max_tokens=cut)
    assert done(events).text == streamed(events) == "👩‍💻"
    assert len(done(events).token_ids) == cut - 2
    assert done(events).stats.completion_tokens == cut


def test_thoughts_cut_by_the_cap_are_marked() -> None:
    bench = Bench(FakeReply(pieces=("<think>", "one", " two", "</think>", "Answer"), tokens_per_second=FAST))
    bench.load()
    cut = done(bench.ask("Hi", max_tokens=3))
    assert (cut.reasoning, cut.text, cut.cut_in_reasoning) == ("one two", "", True)
    whole = done(bench.ask("Hi"))
    assert (whole.reasoning, whole.text, whole.cut_in_reasoning) == ("one two", "Answer", False)


def test_a_named_seed_is_kept_and_others_are_drawn(bench: Bench) -> None:
    assert done(bench.ask("Hi", seed=0)).seed == 0
    drawn = {done(bench.ask("Hi")).seed for _ in range(4)}
    assert len(drawn) == 4
    assert max(drawn) < 2**53


def test_the_next_turn_reads_only_what_is_new(bench: Bench) -> None:
    first = done(bench.ask("Hi"))
    prompt = first.stats.prompt_tokens
    started = bench.start("Hi", "other words", "and?")
    assert 0 < started.reused_tokens <= prompt
    assert done(bench.finish()).stats.reused_tokens == started.reused_tokens
    again = bench.start("Hi")
    assert again.reused_tokens == prompt - 1  # its last token's logits start the answer


def test_exact_mode_reuses_only_what_it_would_compute_to_the_last_bit(bench: Bench) -> None:
    """Passes of another size compute other last bits: blocks that it read as a prompt, or the same prompt."""
    words, block = "word " * 900, 512

    def reused(*turns: str, exact: bool = True) -> int:
        return done(bench.ask(*turns, exact=exact)).stats.reused_tokens

    prompt = done(bench.ask(words)).stats.prompt_tokens
    assert block < prompt < 2 * block
    assert reused(words) == 0, "read in default mode"
    assert reused(words) == prompt - 1
    assert reused(words, "an answer", "and on") == block
    assert reused(words) == block, "a part of a block was read with what followed it"
    other = words[:-5] + "else "
    assert reused(other) == block, "of the same length, but another prompt"
    assert reused(other, exact=False) == prompt - 1
    assert reused(other) == 0


def test_a_long_prompt_reports_progress() -> None:
    bench = Bench(FakeReply(tokens_per_second=FAST))
    bench.load()
    events = bench.ask("word " * 1500)
    progress = [event for event in events if isinstance(event, PrefillProgress)]
    total = done(events).stats.prompt_tokens
    assert [p.done for p in progress] == list(range(512, total, 512))
    assert {p.total for p in progress} == {total}


# ---- requests that cannot be served


def test_no_model() -> None:
    bench = Bench()
    assert refusal(bench, "Hi").kind == "no_model"
    bench.load()
    bench.engine.unload()
    assert refusal(bench, "Hi").kind == "no_model"


@pytest.mark.parametrize("turns", [(), ("",), (" \n\t",), ("Hi", "Hello", "")])
def test_an_empty_message(bench: Bench, turns: tuple[str, ...]) -> None:
    error = refusal(bench, *turns)
    assert (error.kind, str(error)) == ("bad_input", "The message is empty.")
    assert done(bench.ask("Hi")).text == HELLO.text


def test_a_prompt_longer_than_the_context() -> None:
    """A10: refused before any pass, with the numbers; one token less leaves room for one."""
    bench = Bench(n_ctx=64)
    model = bench.load()
    words = "x" * 4
    full = next(n for n in range(1, 80) if len(model.prepare(bench.request(words * n)).tokens) == 64)
    error = refusal(bench, words * full)
    assert error.kind == "too_long"
    assert "64 tokens, where 63 fit" in str(error)
    assert model.passes == 0
    end = done(bench.ask(words * (full - 1)))
    assert (end.finish_reason, end.stats.completion_tokens) == ("length", 1)
    assert done(bench.ask("Hi")).finish_reason == "stop"


def test_a_context_that_fills_up_ends_the_answer_exactly() -> None:
    bench = Bench(FakeReply(text="word " * 100, drafts=((8, 8),), tokens_per_second=FAST), n_ctx=64)
    bench.load()
    end = done(bench.ask("Hi"))
    assert end.finish_reason == "length"
    assert end.stats.prompt_tokens + end.stats.completion_tokens == 64


# ---- loading


def test_a_load_that_fails_leaves_no_model() -> None:
    bench = Bench(load_fail="not a GGUF")
    with pytest.raises(EngineError, match="not a GGUF"):
        bench.load()
    assert refusal(bench, "Hi").kind == "no_model"


def test_a_cancelled_load() -> None:
    bench = Bench()
    seen: list[float] = []

    def progress(fraction: float) -> None:
        seen.append(fraction)
        if len(seen) == 3:
            bench.engine.cancel(7)

    with pytest.raises(EngineError) as caught:
        bench.engine.load(Load(request_id=7, model_path="/m"), progress)
    assert caught.value.kind == "cancelled"
    assert len(seen) == 3
    assert bench.load().report.name == "fake"


def test_the_model_before_is_closed(bench: Bench) -> None:
    bench.load()
    assert [model.closed for model in bench.models] == [True, False]
    bench.engine.close()
    assert bench.models[-1].closed


# ---- cancel


def test_a_request_that_nobody_waits_for_any_more_costs_no_chat_its_place(bench: Bench) -> None:
    """It was cancelled in the queue: the only slot keeps what it holds of another chat."""
    bench.ask("word " * 300)
    request = bench.request("another")
    assert bench.engine.given_up(request) is None
    bench.engine.cancel(request.request_id)
    end = bench.engine.given_up(request)
    assert end is not None and (end.finish_reason, end.text) == ("cancelled", "")
    assert bench.engine.given_up(request) is None, "it has ended"
    assert bench.start("word " * 300).reused_tokens > 290


def test_cancel_before_the_start(bench: Bench) -> None:
    """The request waits in the queue while it is cancelled."""
    request = bench.request("Hi")
    bench.engine.cancel(request.request_id)
    bench.engine.start(request)
    end = done(bench.finish())
    assert (end.finish_reason, end.text) == ("cancelled", "")
    assert bench.models[-1].passes == 0
    assert done(bench.ask("Hi")).text == HELLO.text


@pytest.mark.parametrize("pass_number", [1, 2, 3])
def test_cancel_in_the_middle_of_the_prompt(bench: Bench, pass_number: int) -> None:
    """I05: the running pass ends at once, and what was read before it is still there."""
    model = bench.models[-1]
    request = bench.request("word " * 1500)

    def cancel(number: int) -> None:
        if number == pass_number:
            bench.engine.cancel(request.request_id)

    model.before_pass = cancel
    bench.engine.start(request)
    end = done(bench.finish())
    assert end.finish_reason == "cancelled"
    assert model.passes == pass_number - 1
    assert end.stats.completion_tokens == 0
    assert bench.start("word " * 1500).reused_tokens == 512 * (pass_number - 1)
    assert done(bench.finish()).text == HELLO.text


def test_cancel_in_the_middle_of_the_answer(bench: Bench) -> None:
    model = bench.models[-1]
    request = bench.request("Hi")
    model.before_pass = lambda number: bench.engine.cancel(request.request_id) if number == 4 else None
    bench.engine.start(request)
    events = bench.finish()
    end = done(events)
    assert end.finish_reason == "cancelled"
    assert end.text == streamed(events) != ""
    assert HELLO.text.startswith(end.text)
    assert len(end.token_ids) == end.stats.completion_tokens == 3
    model.before_pass = lambda number: None
    assert done(bench.ask("Hi")).text == HELLO.text


def test_cancel_from_another_thread_ends_a_long_pass() -> None:
    bench = Bench(FakeReply(prefill_s=3600.0))
    model = bench.load()
    request = bench.request("Hi")
    running = threading.Event()
    model.before_pass = lambda number: running.set()
    bench.engine.start(request)

    def cancel() -> None:
        assert running.wait(30)
        bench.engine.cancel(request.request_id)

    thread = threading.Thread(target=cancel)
    thread.start()
    assert done(bench.finish()).finish_reason == "cancelled"
    thread.join()


def test_cancel_of_another_or_an_ended_request_changes_nothing(bench: Bench) -> None:
    first = done(bench.ask("Hi"))
    bench.engine.cancel(first.request_id)
    bench.engine.cancel(first.request_id)
    request = bench.request("Hi")
    bench.models[-1].before_pass = lambda number: bench.engine.cancel(9999)
    bench.engine.start(request)
    assert done(bench.finish()).text == HELLO.text


class WatchedLock:
    """A lock that calls back each time it was given up."""

    def __init__(self, released: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._released = released

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
        self._released()


@pytest.mark.parametrize("moment", [1, 2])
def test_cancel_between_two_looks_is_not_lost(bench: Bench, moment: int) -> None:
    """The reader thread may cancel at any moment of a step; no whole pass may run after it."""
    engine, model = bench.engine, bench.models[-1]
    request = bench.request("Hi")
    engine.start(request)
    releases = 0

    def released() -> None:
        nonlocal releases
        releases += 1
        if releases == moment:
            engine.cancel(request.request_id)

    engine._lock = WatchedLock(released)  # type: ignore[assignment]
    engine.step()
    if releases >= moment:
        assert model.passes == 0
    engine._lock = threading.Lock()
    bench.finish()


# ---- failures


def test_a_failed_pass_ends_the_request_and_the_next_one_works() -> None:
    bench = Bench(FakeReply(text=HELLO.text, fail="the GPU is gone", at=3, tokens_per_second=FAST), HELLO)
    bench.load()
    events = bench.ask("Hi")
    failed = terminal(events)
    assert isinstance(failed, Failed)
    assert "the GPU is gone" in failed.message
    assert (failed.kind, failed.recoverable) == ("internal", True)
    assert streamed(events) != ""
    started = bench.start("Hi")
    assert started.reused_tokens == 0  # nothing is known of the KV cache after a failure
    assert done(bench.finish()).text == HELLO.text


def test_a_failure_for_want_of_memory_says_so(bench: Bench) -> None:
    def fail(number: int) -> None:
        raise MemoryError

    bench.models[-1].before_pass = fail
    failed = terminal(bench.ask("Hi"))
    assert isinstance(failed, Failed)
    assert failed.kind == "out_of_memory"


@pytest.mark.parametrize(
    "method",
    ["prepare", "links", "source"],
)
def test_a_start_that_fails_takes_nothing_with_it(
    bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("boom")

    with monkeypatch.context() as patch:
        patch.setattr(Model, method, fail)
        with pytest.raises(RuntimeError):
            bench.start("Hi")
    assert not bench.engine.busy
    assert done(bench.ask("Hi")).text == HELLO.text


# ---- links that fail


class Broken(Idle):
    def propose(self, limit: int, draw: Draw) -> Draft:
        raise ValueError("boom")


def test_a_link_that_failed_stays_off_for_the_session(bench: Bench) -> None:
    """A18: one visible line, and the answer is the same."""
    link = Broken("mod")
    bench.models[-1].extra_links = [link]
    events = bench.ask("Hi")
    notices = [line for event in events if isinstance(event, Chunk) for line in event.notices]
    assert notices == ["Drafting with mod is off: ValueError: boom"]
    assert done(events).text == HELLO.text
    link.history = []
    events = bench.ask("Hi")
    assert link.history == []  # it was not even told of the request
    assert not any(event.notices for event in events if isinstance(event, Chunk))


def test_a_new_load_gives_a_failed_link_another_chance(bench: Bench) -> None:
    bench.models[-1].extra_links = [Broken("mod")]
    bench.ask("Hi")
    again = Idle("mod")
    bench.load().extra_links = [again]
    bench.ask("Hi")
    assert again.history != []


def test_drafting_off_means_no_links(bench: Bench) -> None:
    end = done(bench.ask("Hi", drafting=DraftingParams(links=())))
    assert end.stats.by_drafter == {}


def test_text_held_back_belongs_to_who_said_it_last() -> None:
    """A possible stop that never came is shown with the last chunk."""
    bench = Bench(FakeReply(pieces=("a", "#"), tokens_per_second=FAST))
    bench.load()
    events = bench.ask("Hi", stop=("##",))
    last = [event for event in events if isinstance(event, Chunk)][-1]
    assert last.pieces == (Piece("#"),)
    assert done(events).text == streamed(events) == "a#"
