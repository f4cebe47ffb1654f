"""Several answers in one batch: each says what it says alone, whoever drafts for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.protocol import (
    DRAFTERS,
    ChatMessage,
    Chunk,
    Done,
    DrafterName,
    DraftingParams,
    DraftMode,
    EngineOptions,
    Failed,
    FromWorker,
    Gbnf,
    Generate,
    Load,
    SamplingParams,
)
from app.worker.engine import Engine
from app.worker.llama_model import LlamaModel
from tests.models.mamba import write_mamba
from tests.session import EXACT
from tests.weights.neural import KINDS, Kind

SLOTS = 4
PROMPTS = [f"{word} and {word} again, {word} and {word} again, then" for word in ("one", "two", "sea", "sun")]
TOGETHER = msgspec.structs.replace(EXACT, n_parallel=SLOTS, n_ctx=512)


class Answers:
    """An engine in this process, so that who is in which pass is always the same."""

    def __init__(self, target: Path, drafter: Path | None, options: EngineOptions) -> None:
        self.engine = Engine(LlamaModel, "test")
        draft = str(drafter) if drafter is not None else None
        self.report = self.engine.load(
            Load(request_id=0, model_path=str(target), draft_model_path=draft, options=options),
            lambda _: None,
        )
        self._ids = 0

    def start(self, prompt: str, links: tuple[DrafterName, ...], mode: DraftMode, **options: object) -> int:
        self._ids += 1
        message = Generate(
            request_id=self._ids,
            messages=(ChatMessage("user", prompt),),
            drafting=DraftingParams(mode=mode, links=links, max_draft=8),
            **{"max_tokens": 48, "sampling": SamplingParams(temperature=0), **options},  # type: ignore[arg-type]
        )
        self.engine.start(message)
        return self._ids

    def finish(self) -> dict[int, FromWorker]:
        """The terminal event of each request that is under way."""
        ends: dict[int, FromWorker] = {}
        while self.engine.busy:
            for event in self.engine.step():
                if isinstance(event, Done | Failed):
                    ends[event.request_id] = event
        return ends


@pytest.fixture
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Answers]:
    files = KINDS[request.param].write(tmp_path)
    made = Answers(files.target, files.drafter, TOGETHER)
    yield made
    made.engine.close()


def ids(event: FromWorker) -> tuple[int, ...]:
    assert isinstance(event, Done), event
    return event.token_ids


@pytest.mark.parametrize("answers", list(KINDS), indirect=True)
def test_together_as_alone(answers: Answers, request: pytest.FixtureRequest) -> None:
    kind: Kind = KINDS[request.node.callspec.params["answers"]]
    alone = []
    for prompt in PROMPTS:
        one = answers.start(prompt, (), "manual")
        alone.append(ids(answers.finish()[one]))
    for links in ((), (kind.link,), DRAFTERS):
        started = [answers.start(prompt, links, "manual") for prompt in PROMPTS]
        assert not answers.engine.has_room
        ends = answers.finish()
        assert [ids(ends[one]) for one in started] == alone, links
        if links == (kind.link,):
            drafted = [
                end.stats.by_drafter[kind.link].drafted for end in ends.values() if isinstance(end, Done)
            ]
            assert len(drafted) == SLOTS and all(drafted), "each slot has a drafter of its own"
    # And in automatic mode, where how much is drafted depends on the clock.
    started = [answers.start(prompt, DRAFTERS, "auto") for prompt in PROMPTS]
    ends = answers.finish()
    assert [ids(ends[one]) for one in started] == alone


def test_recurrent_states_are_kept_apart(tmp_path: Path) -> None:
    answers = Answers(write_mamba(tmp_path / "mamba.gguf"), None, TOGETHER)
    try:
        assert answers.report.recurrent
        alone = []
        for prompt in PROMPTS:
            one = answers.start(prompt, (), "manual")
            alone.append(ids(answers.finish()[one]))
        started = [answers.start(prompt, DRAFTERS, "manual") for prompt in PROMPTS]
        ends = answers.finish()
        assert [ids(ends[one]) for one in started] == alone
    finally:
        answers.engine.close()


@pytest.fixture
def draft_answers(tmp_path: Path) -> Iterator[Answers]:
    files = KINDS["draft"].write(tmp_path)
    made = Answers(files.target, files.drafter, TOGETHER)
    yield made
    made.engine.close()


def test_what_goes_wrong_with_one_is_no_others_trouble(draft_answers: Answers) -> None:
    good = draft_answers.start(PROMPTS[0], (), "manual")
    nothing = SamplingParams(
        temperature=0, logit_bias=dict.fromkeys(range(draft_answers.report.n_vocab), -100.0)
    )
    dead = draft_answers.start(PROMPTS[1], (), "manual", grammar=Gbnf("root ::= [a-z]+"), sampling=nothing)
    ends = draft_answers.finish()
    assert isinstance(ends[good], Done) and len(ids(ends[good])) == 48
    assert isinstance(ends[dead], Failed) and ends[dead].kind == "bad_input"
    assert draft_answers.engine.has_room


def test_a_cancelled_one_ends_with_the_next_pass(draft_answers: Answers) -> None:
    engine = draft_answers.engine
    stays, goes = (draft_answers.start(prompt, (), "manual") for prompt in PROMPTS[:2])
    while not any(isinstance(event, Chunk) and event.request_id == goes for event in engine.step()):
        pass
    engine.cancel(goes)
    events = engine.step()
    assert [e.finish_reason for e in events if isinstance(e, Done) and e.request_id == goes] == ["cancelled"]
    assert isinstance(draft_answers.finish()[stays], Done)


def test_exact_mode_says_that_it_is_off(draft_answers: Answers) -> None:
    message = Generate(request_id=1, messages=(ChatMessage("user", "hi"),), exact=True, max_tokens=4)
    started = draft_answers.engine.start(message)
    assert any("several answers" in notice for notice in started.notices)
    draft_answers.finish()
