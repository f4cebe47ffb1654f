"""Every kind of neural drafter on tiny models: whatever it says, the text is the target's own."""

from __future__ import annotations

import collections.abc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from app.protocol import (
    ChatMessage,
    Chunk,
    Done,
    DraftingParams,
    Generate,
    Load,
    SamplingParams,
)
from app.worker.engine import Engine
from app.worker.llama_model import LlamaModel
from drafting.dflash import DFlash
from drafting.distribution import DRAFTER, Distribution, Noise
from drafting.drafter import Draft, Draw
from drafting.dspark import DSpark
from drafting.mtp_assistant import MtpAssistant
from drafting.neural import NeuralDrafter
from drafting.sequence import Sequence
from drafting.silence import NO_OFFER
from drafting.target import Row
from drafting.verification import verify
from native.sampler import SamplerChain, SamplerOptions
from tests.drafting.chi_square import assert_follows
from tests.session import EXACT, GREEDY, Session
from tests.tiny_gguf import EOS, IM_END, Tiny, write_llama
from tests.weights.neural import (
    CHATS,
    KINDS,
    LENGTH,
    LONGEST,
    N_VOCAB,
    PROMPT,
    Files,
    Floats,
    Kind,
    Pair,
    answer,
    apart,
    by_id,
    draft_after_stops,
    first_id,
    only,
)


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(KINDS[request.param], tmp_path_factory.mktemp("pair"))
    yield pair
    pair.close()


@pytest.mark.parametrize("n_max", range(1, LONGEST + 1))
def test_the_same_ids_over_two_hundred_tokens(pair: Pair, n_max: int) -> None:
    drafted = answer(pair.target, pair.drafter(n_max), PROMPT, LENGTH)
    assert drafted.tokens == pair.plain
    # The last passes have no room for as many.
    longest = min(n_max, pair.kind.longest)
    assert drafted.stats.drafted >= (drafted.stats.target_passes - 1 - longest) * longest
    assert drafted.stats.by_drafter[pair.kind.link].drafted == drafted.stats.drafted


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_the_same_ids_where_tokens_are_drawn(pair: Pair, temperature: float) -> None:
    plain = answer(pair.target, None, PROMPT, LENGTH, temperature)
    assert plain.tokens != pair.plain
    drafted = answer(pair.target, pair.drafter(8, temperature), PROMPT, LENGTH, temperature)
    assert drafted.tokens == plain.tokens
    assert drafted.stats.drafted > 100


# ---- what it has read is what was committed


class Told:
    """Drafts with a real drafter that is told what to draw: so many right tokens, as planned, then wrong
    ones. ``drawn``: the tokens and their q, by the length of the text before."""

    def __init__(self, drafter: NeuralDrafter, text: list[int], plan: collections.abc.Sequence[int]) -> None:
        self.name = drafter.name
        self.drawn: dict[int, list[tuple[int, Distribution]]] = {}
        self._drafter, self._text, self._plan = drafter, text, plan
        self._length = 0

    def begin(self, tokens: collections.abc.Sequence[int]) -> None:
        self._length = len(tokens)
        self._drafter.begin(tokens)

    def commit(self, tokens: collections.abc.Sequence[int]) -> None:
        self._length += len(tokens)
        self._drafter.commit(tokens)

    def judged(self, drafted: int, accepted: int) -> None:
        """It knows."""

    def propose(self, limit: int, draw: Draw) -> Draft:
        right = self._plan[len(self.drawn) % len(self._plan)]
        drawn: list[tuple[int, Distribution]] = []

        def say(q: Distribution, position: int) -> int:
            true = self._text[position] if position < len(self._text) else 0
            token = true if position - self._length < right else (true + 1) % N_VOCAB
            drawn.append((token, q))
            return token

        draft = self._drafter.propose(limit, say)
        if draft:
            self.drawn[self._length] = drawn
        return draft


@pytest.mark.parametrize("n_max", [5, LONGEST])
def test_partial_acceptance_at_every_place_leaves_the_true_state(pair: Pair, n_max: int) -> None:
    """Drafts of which no, one, two ... all tokens are right, up and down again. Each q, of all places, is
    that of a drafter which has read the committed text and nothing else."""
    n_max = min(n_max, pair.kind.longest)
    plan = [*range(n_max + 1), *range(n_max - 1, 0, -1)]
    text = pair.plain
    drafter = Told(telling(pair, n_max), text, plan)
    drafted = answer(pair.target, drafter, PROMPT, LENGTH)
    assert drafted.tokens == text
    counts = drafted.stats.by_drafter[pair.kind.link]
    assert len(counts.accepted_at) == n_max
    held = -np.diff([counts.proposals, *counts.accepted_at, 0])
    assert held.min() > 0, "drafts of which so many tokens were right"
    again = telling(pair, n_max)
    answer(pair.target, None, PROMPT, LENGTH)
    # Gemma's GELU is looked up in a table of 16-bit numbers: where the last bit of a sum makes a step there,
    # it grows along the draft.
    looks_into_target = isinstance(again, MtpAssistant)
    near, places = (0.1, 6) if looks_into_target else (1e-3, LONGEST)
    firsts = []
    for begin, drawn in sorted(drafter.drawn.items(), reverse=True):
        if looks_into_target:
            pair.target.rewind(0, begin - 1)
        read_anew(again, text[:begin])
        tokens = iter([token for token, _ in drawn])
        draft = again.propose(len(drawn), lambda q, position, tokens=tokens: next(tokens))
        assert draft.q is not None
        for (_, expected), q in list(zip(drawn, draft.q, strict=True))[:places]:
            assert apart(expected, q) < near, begin
        firsts.append(drawn[0][1])
    assert np.median([apart(a, b) for a, b in pairwise(firsts)]) > max(0.1, 3 * near), "q tells states apart"


def telling(pair: Pair, n_max: int) -> NeuralDrafter:
    """A drafter that goes on behind whatever is drawn."""
    drafter = pair.drafter(n_max, temperature=1.0)
    if isinstance(drafter, DSpark):  # which would end its draft behind what is no favourite
        drafter._extend = partial(DFlash._extend, drafter)  # type: ignore[method-assign]
    return drafter


def read_anew(drafter: NeuralDrafter, text: list[int]) -> None:
    """Let it read ``text`` from its first token on."""
    drafter.begin([PROMPT[0] + 1] * 2)
    drafter.catch_up()
    drafter.begin(text)


def test_a_draft_that_is_stopped_can_be_made_again(pair: Pair) -> None:
    drafter = pair.drafter()
    answer(pair.target, None, PROMPT, 40)
    text = pair.plain[: len(PROMPT) + 40]
    n = min(5, pair.kind.longest)
    drafter.begin(text)
    expected = drafter.propose(n, first_id).tokens
    assert len(expected) == n
    read_anew(drafter, text)
    stops = (0,) if drafter.drafts_blocks else (0, 1, 2)
    assert draft_after_stops(drafter, n, stops) == expected
    assert drafter.propose(n, first_id).tokens == expected


# ---- what is said follows the target's distribution


def test_two_tokens_follow_the_target_together(pair: Pair) -> None:
    """Rejection sampling over drafts that were drawn, where the first token decides about the second.

    Chi-square over the pairs of tokens, in groups of those that q favours about as much.
    """
    runs, options = 1500, SamplerOptions(temperature=2.0)
    drafter = pair.drafter(2)
    drafter.set_sampling(options)
    tokens = answer(pair.target, None, PROMPT, 40).tokens
    first, seconds = target_distributions(pair, tokens, options)
    drafter.begin(tokens)
    ones, twos = favoured(drafter, first, seconds)
    noise = Noise(5)
    accepted, said, drawn = 0, [], []
    for run in range(runs):
        at = 10 * run

        def draw(q: Distribution, position: int, at: int = at) -> int:
            return noise.draw(q, at + position - len(tokens), DRAFTER)

        draft = drafter.propose(2, draw)
        rows = [first, *(seconds[token] for token in draft.tokens[:1]), first]
        verified = verify(draft, rows.__getitem__, noise, at, "rejection")
        accepted += verified.accepted
        one, *others = verified.tokens
        two = others[0] if others else noise.draw(seconds[one], at + 5)
        said.append((one, two))
        drawn.append((draft.tokens[0], noise.draw(seconds[draft.tokens[0]], at + 7)))
    assert accepted > runs / 5
    joint = np.zeros((ones.max() + 1, _TWOS))
    for one, p in enumerate(map(by_id, seconds)):
        joint[ones[one]] += by_id(first)[one] * np.bincount(twos[one], p, _TWOS)

    def cells(pairs: list[tuple[int, int]]) -> Iterator[int]:
        return (_TWOS * ones[one] + twos[one][two] for one, two in pairs)

    assert_follows(cells(said), joint.ravel())
    with pytest.raises(AssertionError):  # the draws could have told q from p
        assert_follows(cells(drawn), joint.ravel())


def target_distributions(
    pair: Pair, tokens: list[int], options: SamplerOptions
) -> tuple[Distribution, list[Distribution]]:
    """What the target says behind ``tokens``, and behind each token that may come next."""
    target, last = pair.target, len(tokens) - 1

    def behind(token: int, place: int) -> Distribution:
        """The logits of one of two rows. As not all are wanted, a recurrent memory can drop both."""
        target.decode([Row(0, tokens[-1], last, place == 0), Row(0, token, last + 1, place == 1)])
        p = Distribution(*chain.distribution(target.context.logits()[0]))
        assert target.rewind(0, last) == last
        return p

    with SamplerChain(N_VOCAB, options) as chain:
        return behind(0, 0), [behind(token, 1) for token in range(N_VOCAB)]


_ONES, _TWOS = 6, 3  # groups of first and of second tokens
Groups = npt.NDArray[np.int64]


def favoured(
    drafter: NeuralDrafter, first: Distribution, seconds: list[Distribution]
) -> tuple[Groups, list[Groups]]:
    """The groups of first tokens, and of the second behind each: there by p alone where none is drafted."""
    ones, twos = np.zeros(N_VOCAB, dtype=np.int64), []
    for one, p in enumerate(seconds):
        draft = drafter.propose(2, lambda q, position, one=one: one)
        assert draft.q is not None
        ones = grouped(by_id(first), by_id(draft.q[0]), _ONES)
        q = by_id(draft.q[1]) if len(draft) > 1 else np.full(N_VOCAB, 1.0 / N_VOCAB)
        twos.append(grouped(by_id(p), q, _TWOS))
    return np.unique(ones, return_inverse=True)[1], twos


def grouped(p: Floats, q: Floats, n: int) -> Groups:
    """The group of each token, 0 to n - 1, by how much q favours it; as likely by p as can be."""
    order = np.argsort(q / p)
    groups = np.empty(len(p), dtype=np.int64)
    groups[order] = np.minimum((np.cumsum(p[order]) - p[order] / 2.0) * n, n - 1).astype(np.int64)
    return groups


# ---- through the worker


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One for all tests here: starting it takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(tmp_path_factory.mktemp("home")))
        with Session() as session:
            yield session


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def files(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return kind.write(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def fresh(session: Session) -> Callable[[Path], list[tuple[int, ...]]]:
    """What a model says in CHATS that was loaded for each; several kinds have the same target."""
    known: dict[bytes, list[tuple[int, ...]]] = {}

    def answers(target: Path) -> list[tuple[int, ...]]:
        said = known.setdefault(target.read_bytes(), [])
        for messages in CHATS[len(said) :]:
            session.load(target, None, EXACT)
            said.append(session.ask(messages, max_tokens=60).token_ids)
        return said

    return answers


def test_chats_in_turn_and_an_edited_message_answer_as_fresh_ones(
    session: Session, kind: Kind, files: Files, fresh: Callable[[Path], list[tuple[int, ...]]]
) -> None:
    report = session.load(*files, EXACT)
    assert {d.name: d.reason for d in report.drafters}[kind.link] is None
    assert report.draft_model_path == (str(files.drafter) if files.drafter else None)
    warm = []
    for i, messages in enumerate(CHATS):
        # The one in the middle is answered without it: it must notice what it missed.
        links = () if i == 2 else (kind.link,)
        done = session.ask(messages, links=links, parameters=only(kind.link), max_draft=16, max_tokens=60)
        assert (done.stats.drafted > 20) == bool(links)
        warm.append(done.token_ids)
    assert warm == fresh(files.target)


def test_the_context_is_used_to_its_last_token(session: Session, kind: Kind, files: Files) -> None:
    """Where a drafter has no room for a draft it pauses, a block drafter before others."""
    session.load(*files, msgspec.structs.replace(EXACT, n_ctx=64))
    frame = session.ask("!", max_tokens=1).stats.prompt_tokens - 1
    for n_prompt in (50, 62, 63):
        prompt = "!" * (n_prompt - frame)
        plain = session.ask(prompt, max_tokens=None)
        drafted = session.ask(prompt, links=(kind.link,), max_draft=10, max_tokens=None)
        assert drafted.finish_reason == "length"
        assert n_prompt + drafted.stats.completion_tokens == 64
        assert drafted.token_ids == plain.token_ids
        if n_prompt != 62:  # where there is just room for a draft, or just not
            assert bool(drafted.stats.drafted) == (n_prompt == 50)


ENDLESS = SamplingParams(temperature=0, logit_bias={EOS: -100.0, IM_END: -100.0})
GO = [ChatMessage("user", "go")]


def drafting_by(kind: Kind) -> DraftingParams:
    return DraftingParams(mode="manual", links=(kind.link,), parameters=only(kind.link, 64), max_draft=64)


def test_a_cancel_while_it_drafts(session: Session, kind: Kind, files: Files) -> None:
    """At moments that are as they come; drafts take most of the time."""
    session.load(*files, EXACT)
    fresh = session.ask("hi")
    for wait in (0.0, 0.004, 0.011):
        request = session.client.generate(GO, sampling=ENDLESS, drafting=drafting_by(kind))
        session.until(lambda e, id=request: isinstance(e, Chunk) and e.request_id == id and e.drafted > 0)
        time.sleep(wait)
        session.client.cancel(request)
        stopped = session.terminal(request)
        assert isinstance(stopped, Done) and stopped.finish_reason == "cancelled" and stopped.stats.drafted
        after = session.ask("hi", links=(kind.link,), parameters=only(kind.link))
        assert after.stats.drafted and after.token_ids == fresh.token_ids


def test_a_cancel_behind_each_of_the_first_drafted_tokens(
    kind: Kind, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine without its process, so that the moment is certain."""
    draw = Sequence.draw_draft
    engine = Engine(LlamaModel, "")
    drawn = stop_at = 0

    def cancelling(self: Sequence, q: Distribution, position: int) -> int:
        nonlocal drawn
        drawn += 1
        if drawn == stop_at:
            engine.cancel(1)
        return draw(self, q, position)

    def ask(request: Generate) -> Done:
        engine.start(request)
        while True:
            for event in engine.step():
                if isinstance(event, Done):
                    return event

    monkeypatch.setattr(Sequence, "draw_draft", cancelling)
    drafter = str(files.drafter) if files.drafter else None
    engine.load(
        Load(request_id=0, model_path=str(files.target), draft_model_path=drafter, options=EXACT),
        lambda fraction: None,
    )
    try:
        hi = Generate(request_id=2, messages=(ChatMessage("user", "hi"),), sampling=GREEDY, max_tokens=40)
        plain = ask(msgspec.structs.replace(hi, drafting=DraftingParams(links=())))
        for stop_at in range(1, 9):
            drawn = 0
            go = Generate(request_id=1, messages=tuple(GO), sampling=ENDLESS, drafting=drafting_by(kind))
            stopped = ask(go)
            assert stopped.finish_reason == "cancelled" and drawn >= stop_at
            stop_at = 0
            after = ask(msgspec.structs.replace(hi, drafting=drafting_by(kind)))
            assert after.stats.drafted and after.token_ids == plain.token_ids
    finally:
        engine.close()


def test_automatic_mode_says_the_same(session: Session, kind: Kind, files: Files) -> None:
    session.load(*files, EXACT)
    plain = session.ask("tell me", max_tokens=200)
    auto = session.ask("tell me", mode="auto", links=(kind.link,), max_tokens=200)
    assert auto.token_ids == plain.token_ids


def test_a_draft_model_pauses_when_its_own_context_is_full(session: Session, tmp_path: Path) -> None:
    target = write_llama(tmp_path / "target.gguf")
    drafter = write_llama(tmp_path / "drafter.gguf", Tiny(n_layer=1, n_ctx_train=64))
    session.load(target, drafter, EXACT)
    plain = session.ask("hi", sampling=ENDLESS, max_tokens=120)
    drafted = session.ask("hi", sampling=ENDLESS, links=("draft",), parameters=only("draft"), max_tokens=120)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.drafted > 0
    past = plain.stats.prompt_tokens + 120 - 64
    assert drafted.stats.undrafted[NO_OFFER.reason] >= past - 3 > 40
