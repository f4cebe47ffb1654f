"""Modes of drafting through the engine: floor, clamps, exact and reproducible, and why nothing is drafted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from app.protocol import (
    ChatMessage,
    Chunk,
    DraftingParams,
    FromWorker,
    Generate,
    Load,
    SamplingParams,
    Started,
)
from app.worker.engine import Engine
from app.worker.fake_model import Part
from app.worker.fake_script import FakeReply, FakeScript
from app.worker.loaded_model import NoExact
from drafting.controller import Controller
from drafting.cost import CostCurve
from drafting.drafter import Draft, Drafter, Draw
from drafting.exact import ExactRows
from drafting.target import Row
from tests.app.test_engine import FAST, HELLO, Bench, Broken, Model, done
from tests.drafting.test_auto import worst_window
from tests.drafting.toy import Idle

PLAIN_S = 1.0
PER_DRAFTED_S = 0.15
CHANGE, TOKENS = 200, 600


class Guesser(Idle):
    """Its token at a place of the answer is right with the chance that a function gives."""

    def __init__(self, part: Part, chance: Callable[[int], float], seed: int) -> None:
        super().__init__("map-k")
        self._part = part
        rng = random.Random(seed)
        self._right = [rng.random() < chance(place) for place in range(TOKENS + 100)]
        self._n_prompt = 0

    def begin(self, tokens: Sequence[int]) -> None:
        super().begin(tokens)
        self._n_prompt = len(tokens)

    def propose(self, limit: int, draw: Draw) -> Draft:
        at = len(self.history)
        return Draft(
            [
                self._part.line(at + i) if self._right[at - self._n_prompt + i] else 1
                for i in range(min(48, limit))
            ]
        )


class Timed(Model):
    """Passes take scripted time: 1.0 and 0.15 for each drafted token, on a clock of its own."""

    n_rows = 0
    now = 0.0
    chance: Callable[[int], float] = staticmethod(lambda place: 0.05 if place < CHANGE else 0.9)
    seed = 0

    def decode(self, rows: Sequence[Row]) -> None:
        super().decode(rows)
        self.now += PLAIN_S + PER_DRAFTED_S * (sum(row.output for row in rows) - 1)

    def links(self, slot: int, drafting: DraftingParams, sampling: SamplingParams) -> Sequence[Drafter]:
        part = self.play(slot)
        return [Guesser(part, self.chance, self.seed)] if drafting.links else []


def b01(drafting: DraftingParams, seed: int) -> tuple[list[Chunk], FromWorker]:
    model: list[Timed] = []

    def load(request: Load, progress: Callable[[float], bool]) -> Timed:
        pieces = tuple(f"{n} " for n in range(TOKENS))
        script = FakeScript(replies=(FakeReply(pieces=pieces, tokens_per_second=FAST),))
        model.append(Timed(script, request, progress))
        model[0].seed = seed
        model[0].controller = Controller(CostCurve({1: 1.0, 2: 1.15, 65: 1.0 + 64 * PER_DRAFTED_S}))
        return model[0]

    engine = Engine(load, "fake", clock=lambda: model[0].now if model else 0.0)
    engine.load(Load(request_id=1, model_path="/m/fake.gguf"), lambda fraction: None)
    engine.start(Generate(request_id=2, messages=(ChatMessage("user", "Hi"),), drafting=drafting))
    events: list[FromWorker] = []
    while engine.busy:
        events += engine.step()
    return [event for event in events if isinstance(event, Chunk)], events[-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("drafting", "reason"),
    [
        (DraftingParams(mode="manual", floor=0.2), "paused: low acceptance"),
        (DraftingParams(mode="auto"), "a draft would not pay"),
        (DraftingParams(mode="auto", floor=0.2), "a draft would not pay"),
    ],
    ids=["manual", "auto", "auto with a floor"],
)
def test_case_b01(drafting: DraftingParams, reason: str, seed: int) -> None:
    chunks, end = b01(drafting, seed)
    said: list[float] = []
    drafted: list[int] = []
    reasons: list[str | None] = []
    for chunk in chunks:
        said += [chunk.elapsed_s] * chunk.tokens
        drafted += [chunk.drafted] * chunk.tokens
        reasons += [chunk.silence.reason if chunk.silence else None] * chunk.tokens
    assert len(said) == TOKENS + 1
    assert worst_window(said) >= 0.9
    assert reason in reasons[:CHANGE]
    paused = [line for chunk in chunks for line in chunk.notices if "paused: low acceptance" in line]
    assert len(paused) == (reasons[:CHANGE].count("paused: low acceptance") > 0)
    assert sum(drafted[CHANGE - 50 : CHANGE]) <= 30
    assert sum(drafted[CHANGE + 150 :]) > 200  # and it drafts again
    stats = done([end]).stats
    assert stats.undrafted[reason] == sum(1 for c in chunks if c.silence and c.silence.reason == reason)
    # What the window shows while it streams ends at what the whole answer comes to.
    assert chunks[-1].speedup == stats.speedup
    known = [chunk.speedup for chunk in chunks if chunk.speedup is not None]
    assert len(known) == len(chunks) - 1 and known[-1] > 1


def test_a_script_says_what_plain_decoding_would_reach() -> None:
    reply = FakeReply(text="word " * 60, tokens_per_second=FAST, drafts=((4, 3),), drafters=("map-k",))
    bench = Bench(reply, plain_tokens_per_second=50.0)
    bench.load()
    stats = done(bench.ask("Hi")).stats
    assert stats.plain_s == pytest.approx((stats.completion_tokens - stats.first_pass_tokens) / 50)
    assert stats.speedup is not None and stats.speedup > 1


# ---- the floor


WRONG = FakeReply(text="word " * 60, tokens_per_second=FAST, drafts=((8, 0),), drafters=("map-k",))
MANUAL = DraftingParams(mode="manual", floor=0.2)


def notices(events: Sequence[FromWorker]) -> list[str]:
    return [line for event in events if isinstance(event, Chunk | Started) for line in event.notices]


def test_a_person_is_told_once_of_a_pause_and_the_next_answer_knows_of_it() -> None:
    bench = Bench(WRONG)
    bench.load()
    events = bench.ask("Hi", drafting=MANUAL)
    told = notices(events)
    assert len(told) == 1 and told[0].startswith("map-k is paused: low acceptance (0 % of about ")
    drafted = done(events).stats.drafted
    assert 40 <= drafted < 80
    again = bench.ask("Hi", drafting=MANUAL)
    assert done(again).stats.drafted < drafted / 3
    assert "paused" not in "".join(notices(again))
    bench.load()
    assert done(bench.ask("Hi", drafting=MANUAL)).stats.drafted == drafted


def test_a_floor_of_0_pauses_nobody() -> None:
    bench = Bench(WRONG)
    bench.load()
    events = bench.ask("Hi", drafting=DraftingParams(mode="manual"))
    assert done(events).stats.undrafted.keys() <= {"no room for a draft"}
    lines = notices(events)
    assert lines == ["map-k does not fit: none of its 104 drafted tokens was accepted."]


# ---- why nothing is drafted


def reasons(events: Sequence[FromWorker]) -> set[str]:
    return {event.silence.reason for event in events if isinstance(event, Chunk) and event.silence}


def test_a_reason_comes_with_every_pass_that_has_no_draft() -> None:
    bench = Bench()
    bench.load()
    assert reasons(bench.ask("Hi", drafting=DraftingParams(links=()))) == {"switched off"}
    assert "no drafter has an offer" in reasons(bench.ask("Hi"))


def test_when_all_links_have_failed_their_reasons_are_said_in_later_answers_too() -> None:
    """A18."""
    bench = Bench(FakeReply(text=HELLO.text, tokens_per_second=FAST, drafts=((0, 0),)))
    model = bench.load()
    model.extra_links = [Broken("mod"), Broken("cache")]
    off = DraftingParams(links=())  # but for the extra ones
    for _ in range(2):
        silent = [e.silence for e in bench.ask("Hi", drafting=off) if isinstance(e, Chunk) and e.silence]
        assert silent[-1].reason == "all drafters are off"
        assert silent[-1].detail == "mod: ValueError: boom; cache: ValueError: boom."


# ---- a draft that must fit the pass (A09)


@pytest.mark.parametrize(
    ("n_batch", "exact", "line"),
    [
        (512, None, None),
        (8, None, "Drafts hold at most 7 tokens, not 48: a pass has room for no more."),
        (2, None, "Drafts hold at most 1 token, not 48: a pass has room for no more."),
        (1, None, "Nothing is drafted: a pass has room for one token only."),
        (
            512,
            ExactRows(2, 6),
            "Drafts hold at most 5 tokens, not 48: exact mode needs passes of about one size.",
        ),
        (512, ExactRows(1, 0), None),
    ],
)
def test_the_length_that_is_left_is_said(n_batch: int, exact: ExactRows | None, line: str | None) -> None:
    bench = Bench(WRONG)
    model = bench.load()
    model.n_batch, model.n_outputs = n_batch, min(65, n_batch)
    if exact is not None:
        model.exact_rows = lambda: exact  # type: ignore[method-assign]
    events = bench.ask("Hi", drafting=DraftingParams(mode="manual"), exact=exact is not None)
    assert events[0].notices == ((line,) if line else ())
    longest = max((e.drafted for e in events if isinstance(e, Chunk)), default=0)
    assert longest == min(8, n_batch - 1, (exact.most - 1 if exact and exact.most else 64))
    off = bench.ask("Hi", drafting=DraftingParams(links=()), exact=exact is not None)
    assert off[0].notices == ()


# ---- exact and reproducible


def test_what_exact_mode_needs_and_is_not_to_be_had_is_said_and_the_answer_given() -> None:
    bench = Bench()
    model = bench.load()

    def refuse() -> ExactRows:
        raise NoExact("It is not to be had: for a reason.")

    model.exact_rows = refuse  # type: ignore[method-assign]
    events = bench.ask("Hi", exact=True)
    assert events[0].notices == ("It is not to be had: for a reason.",)
    assert done(events).text == HELLO.text


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "rejection"),
        ({"seed": 5}, "reproducible"),
        ({"reproducible": True}, "reproducible"),
        ({"exact": True}, "reproducible"),
    ],
)
def test_what_makes_an_answer_reproducible(options: dict[str, object], mode: str) -> None:
    bench = Bench()
    bench.load()
    bench.start("Hi", **options)
    assert bench.engine._requests[0].sequence.mode == mode
    bench.finish()
