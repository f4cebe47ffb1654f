"""The generation loop over a toy target: the drafted text is the plain text, and ends where it should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting.chain import Chain
from drafting.cost import CostCurve
from drafting.distribution import Distribution
from drafting.drafter import Draft, Drafter, Draw, Interrupted
from drafting.loop import Loop
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap
from drafting.ngram_mod import ModTable, NgramMod
from drafting.sequence import FinishReason
from drafting.verification import Mode
from tests.drafting.chi_square import assert_follows
from tests.drafting.toy import (
    MEMORY,
    VOCAB,
    Idle,
    Oracle,
    Ticks,
    ToyDraftModel,
    ToyTarget,
    answer,
    next_token,
    run,
    sequence,
)

PROMPT = [3, 1, 4, 1, 5]


def plain_answer(
    *,
    greedy: bool = True,
    seed: int = 0,
    mode: Mode = "rejection",
    max_new: int | None = 40,
    prompt: list[int] = PROMPT,
    n_ctx: int = 1000,
) -> list[int]:
    one = sequence(ToyTarget(greedy=greedy, n_ctx=n_ctx), prompt, seed=seed, mode=mode, max_new=max_new)
    run(one.source, one)
    return answer(one)


PLANS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=8)


@given(plan=PLANS, greedy=st.booleans(), seed=st.integers(0, 50), mode=st.sampled_from(Mode.__args__))
def test_drafted_text_is_the_plain_text(
    plan: list[tuple[int, int]], greedy: bool, seed: int, mode: Mode
) -> None:
    """Whatever is right and wrong in the drafts, for greedy and for seeded sampling."""
    text = plain_answer(greedy=greedy, seed=seed, mode=mode)
    target = ToyTarget(greedy=greedy)
    one = sequence(target, PROMPT, Oracle(text, plan, start=len(PROMPT)), seed=seed, mode=mode)
    run(target, one)
    assert answer(one) == text
    assert target.kv[0] == one.tokens[: one.computed]


@pytest.mark.parametrize("seed", range(5))
def test_neural_drafts_do_not_change_a_seeds_text(seed: int) -> None:
    text = plain_answer(greedy=False, seed=seed, mode="reproducible", max_new=100)
    target = ToyTarget(greedy=False)
    one = sequence(target, PROMPT, ToyDraftModel(), seed=seed, mode="reproducible", max_new=100)
    run(target, one)
    assert answer(one) == text
    assert 0 < one.stats.accepted < one.stats.drafted


@pytest.mark.parametrize(
    "make",
    [NgramCache, lambda: NgramMap(n=2), lambda: NgramMod(ModTable(n=2, bits=12), shortest=1, longest=8)],
    ids=["cache", "map-k", "mod"],
)
def test_ngram_drafters_do_not_change_the_text(make: Callable[[], Drafter]) -> None:
    text = plain_answer(max_new=200)  # greedy over three tokens of memory: soon it goes in circles
    target = ToyTarget()
    one = sequence(target, PROMPT, make(), max_new=200)
    run(target, one)
    assert answer(one) == text
    assert one.stats.accepted > 50
    assert one.stats.target_passes < 150


def test_plain_decoding_says_one_token_a_pass() -> None:
    target = ToyTarget()
    one = sequence(target, PROMPT, Idle(), max_new=20)
    run(target, one)
    assert one.stats.tokens_per_pass == 1.0
    assert one.stats.target_passes == len(target.passes) == 20
    assert one.stats.acceptance_rate is None
    assert one.stats.by_drafter == {}


def test_a_drafter_is_told_what_it_was_judged_by() -> None:
    """The target's distribution at each place up to the first wrong token, or behind the last."""
    told: list[list[Distribution]] = []
    starts: list[list[int]] = []

    class Curious(ToyDraftModel):
        def propose(self, limit: int, draw: Draw) -> Draft:
            draft = super().propose(limit, draw)
            starts.append(list(self.history))
            return replace(draft, learn=lambda targets: told.append(list(targets)))

    one = sequence(ToyTarget(greedy=False), PROMPT, Curious(), max_new=60)
    run(one.source, one)
    assert one.stats.accepted > 0 and len(told) == len(starts) > 5
    for start, targets in zip(starts, told, strict=True):
        said = one.tokens[len(start) :]
        for i, p in enumerate(targets):
            context = tuple([*start, *said[:i]][-MEMORY:])
            assert np.array_equal(p.probs, next_token(context, False).probs)
    counts = one.stats.by_drafter["draft"]
    assert sum(map(len, told)) == counts.accepted + counts.proposals


@pytest.mark.parametrize("padded", [False, True])
def test_neural_drafts_do_not_bend_what_is_said(padded: bool) -> None:
    """Over many seeds the first token follows p, whether the draft was kept or replaced.

    q has most of p's favourite, little of the rest, and much where p has little or (in a padded
    vocabulary) nothing: a draw for the replacement that knows of the draft's would show.
    """
    context = (1, 2, 3)
    p = next_token(context, greedy=False)
    favourite, least = int(p.probs.argmax()), int(p.probs.argmin())
    weights = np.append(p.probs * 0.05, 0.0)
    weights[favourite] *= 14
    weights[-1 if padded else least] += 1 - weights.sum()
    q = Distribution(np.append(p.ids, VOCAB + 3).astype(np.int32), weights)

    class Guesses(Idle):
        def propose(self, limit: int, draw: Draw) -> Draft:
            return Draft([draw(q, len(self.history))], [q])

    said = []
    for seed in range(4000):
        target = ToyTarget(greedy=False)
        one = sequence(target, context, Guesses(), seed=seed, max_new=2)
        one.computed = 2
        target.kv[0] = [1, 2]
        loop = Loop(target, Ticks())
        loop.add(one)
        [step] = loop.step()
        said.append(step.tokens[0])
        assert (step.drafted, one.stats.drafted) == (1, 1)
    order = np.argsort(p.probs)  # rare tokens are counted as one
    rare = order[np.cumsum(p.probs[order]) < 0.02]
    probs = p.probs.copy()
    probs[rare[0]] = p.probs[rare].sum()
    probs[rare[1:]] = 0
    assert_follows((int(rare[0]) if t in rare else t for t in said), probs)


def test_unknown_ids_are_never_decoded_and_end_the_draft() -> None:
    text = plain_answer()
    target = ToyTarget()  # which refuses ids it does not know

    class Padded(Oracle):
        def propose(self, limit: int, draw: Draw) -> Draft:
            right = super().propose(limit, draw).tokens
            return Draft([*right, VOCAB, *right])

    one = sequence(target, PROMPT, Padded(text, [(2, 0)], start=len(PROMPT)))
    steps = run(target, one)
    assert answer(one) == text
    assert max(step.drafted for step in steps) == 3
    assert max(step.accepted for step in steps) == 2


# ---- where an answer ends


@pytest.mark.parametrize("ends", [[9], [9, 8]])
def test_end_token_inside_a_draft(ends: list[int]) -> None:
    """A03: what follows an end token inside an accepted draft never happened."""
    a, b, c, d = 2, 7, 5, 6
    end = ends[-1]
    said = iter([a, b, end, c, d, 0])
    places: list[int] = []

    class Accepting(ToyTarget):
        """Would say exactly what is drafted."""

        def at(self, output: int, last: int | None) -> Distribution:
            return Distribution.certain(next(said))

    class Follows(Idle):
        def propose(self, limit: int, draw: Draw) -> Draft:
            places.append(len(self.history))
            return Draft([a, b, end, c, d])

    drafter = Follows("draft")
    target = Accepting()
    one = sequence(target, PROMPT, drafter, end=ends)
    target.kv[0] = PROMPT[:-1]
    one.computed = len(PROMPT) - 1
    [step] = run(target, one)
    assert one.finished == "stop"
    assert answer(one) == step.tokens == [a, b, end]
    assert drafter.history == [*PROMPT, a, b, end]
    assert drafter.verdicts == [(5, 5)]  # the target agreed with all of it
    assert target.kv[0] == [*PROMPT, a, b, end]
    assert (one.stats.completion_tokens, one.stats.drafted, one.stats.accepted) == (3, 5, 3)
    assert places == [len(PROMPT)]


@pytest.mark.parametrize("max_new", [1, 2, 3, 5, 9, 10])
def test_max_tokens_inside_a_draft(max_new: int) -> None:
    text = plain_answer(max_new=40)
    target = ToyTarget()
    drafter = Oracle(text, [(8, 0)], start=len(PROMPT))
    one = sequence(target, PROMPT, drafter, max_new=max_new)
    run(target, one)
    assert answer(one) == text[:max_new]
    assert drafter.limits == [min(8, max_new - 2)] * (max_new > 2)  # the last token is the target's own
    assert one.finished == "length"
    assert one.stats.completion_tokens == max_new
    assert one.stats.accepted == one.stats.drafted  # nothing was drafted that had no place


def test_a_stop_wins_over_the_length_cap_it_comes_with() -> None:
    text = plain_answer()
    target = ToyTarget()
    one = sequence(target, PROMPT, max_new=4, take=lambda token: "stop" if token == text[3] else None)
    run(target, one)
    assert one.finished == "stop"


@pytest.mark.parametrize("n_prompt", [50, 62, 63])
@pytest.mark.parametrize("max_draft", [0, 1, 10])
def test_the_context_ends_an_answer_exactly(n_prompt: int, max_draft: int) -> None:
    """A10: n_ctx 64, no other limit, drafts to the very end."""
    prompt = [i % VOCAB for i in range(n_prompt)]
    text = plain_answer(prompt=prompt, n_ctx=64, max_new=None)
    target = ToyTarget(n_ctx=64)
    drafter = Oracle([*text, *range(10)], [(10, 0), (3, 2)], start=n_prompt)
    one = sequence(target, prompt, drafter, max_new=None, max_draft=max_draft)
    run(target, one)
    assert len(one.tokens) == 64
    assert answer(one) == text
    assert one.finished == "length"


@pytest.mark.parametrize(("n_batch", "n_outputs"), [(8, 8), (8, 3), (2, 2), (1, 1), (512, 1)])
def test_a_draft_never_exceeds_the_pass(n_batch: int, n_outputs: int) -> None:
    """A09; the toy target fails on a pass that is too large."""
    prompt = [0, 1, 2] * 20
    text = plain_answer(prompt=prompt)
    target = ToyTarget(n_batch=n_batch, n_outputs=n_outputs)
    drafter = Oracle(text, [(10, 0)], start=len(prompt))
    one = sequence(target, prompt, drafter, max_draft=10)
    steps = run(target, one)
    assert answer(one) == text
    most = min(n_batch, n_outputs) - 1
    assert max(step.drafted for step in steps) == min(most, 10)
    assert all(limit <= most for limit in drafter.limits)


# ---- prefill


@pytest.mark.parametrize("n_batch", [1, 2, 7, 20, 64])
def test_a_prompt_is_read_in_pieces(n_batch: int) -> None:
    prompt = [i * 5 % VOCAB for i in range(20)]
    target = ToyTarget(n_batch=n_batch)
    one = sequence(target, prompt, max_new=3)
    steps = run(target, one)
    reading = [step.prefilled for step in steps if not step.tokens]
    assert reading == list(range(n_batch, 20, n_batch))
    assert answer(one) == plain_answer(prompt=prompt, max_new=3)
    asked = [row for rows in target.passes for row in rows if row.output]
    assert [row.pos for row in asked] == [19, 20, 21]


def test_what_is_already_computed_is_not_read_again() -> None:
    prompt = [i * 5 % VOCAB for i in range(20)]
    target = ToyTarget()
    target.kv[0] = prompt[:15]
    one = sequence(target, prompt, max_new=2)
    one.computed = 15
    run(target, one)
    assert [row.pos for row in target.passes[0]] == [15, 16, 17, 18, 19]
    assert answer(one) == plain_answer(prompt=prompt, max_new=2)


# ---- a memory that refuses to rewind


@pytest.mark.parametrize("n_batch", [64, 4])
def test_a_refused_rewind_reads_the_prefix_again_and_ends_drafting(n_batch: int) -> None:
    """A06: the text is the same, and the reason is there to be shown."""
    text = plain_answer()
    target = ToyTarget(rewinds=False, n_batch=n_batch)
    plan = [(2, 0), (1, 1), (2, 0)]
    one = sequence(target, PROMPT, Oracle(text, plan, start=len(PROMPT)), Idle("other"))
    steps = run(target, one)
    assert answer(one) == text
    assert target.forgotten == [0]
    assert one.chain.names == []
    assert set(one.chain.failures) == {"oracle", "other"}
    assert "rejected" in one.chain.failures["oracle"]
    assert one.stats.drafted == 4
    assert all(step.prefilled <= len(PROMPT) for step in steps)


@pytest.mark.parametrize("n_batch", [64, 4])
def test_a_memory_that_goes_back_to_before_the_pass_computes_again_and_goes_on_drafting(n_batch: int) -> None:
    text = plain_answer()
    target = ToyTarget(rewinds=False, checkpoints=True, n_batch=n_batch)
    plan = [(2, 0), (1, 2), (0, 1), (3, 0)]
    one = sequence(target, PROMPT, Oracle(text, plan, start=len(PROMPT)))
    run(target, one)
    assert answer(one) == text
    assert one.chain.failures == {} and target.forgotten == []
    assert one.stats.drafted > one.stats.accepted > 5
    wrong = [i for i, rows in enumerate(target.passes[:-1]) if target.passes[i + 1][0].pos == rows[0].pos]
    assert wrong
    for i in wrong:
        # What was accepted, and the token that was said in place of the wrong one; no draft on top.
        again = target.passes[i + 1]
        assert [row.token for row in again[:-1]] == [row.token for row in target.passes[i][: len(again) - 1]]
        assert [row.output for row in again] == [False] * (len(again) - 1) + [True]


def test_computing_again_is_counted_to_the_wrong_draft() -> None:
    text = plain_answer()
    counts = []
    for checkpoints in (False, True):
        target = ToyTarget(rewinds=not checkpoints, checkpoints=checkpoints)
        one = sequence(target, PROMPT, Oracle(text, [(1, 2)], start=len(PROMPT)))
        costs = CostCurve({1: 1.0, 2: 1.5, 4: 2.5, 8: 4.5})
        ticks = Ticks()
        loop = Loop(target, ticks, costs)
        loop.add(one)
        while loop.busy:
            loop.step()
        assert answer(one) == text
        oracle = one.stats.by_drafter["oracle"]
        counts.append((oracle.verify_s, oracle.proposals))
    (plain, plain_proposals), (again, proposals) = counts
    assert again / proposals > plain / plain_proposals


def test_a_fully_accepted_draft_needs_no_rewind() -> None:
    text = plain_answer()
    target = ToyTarget(rewinds=False)
    one = sequence(target, PROMPT, Oracle([*text, *text], [(3, 0)], start=len(PROMPT)))
    run(target, one)
    assert answer(one) == text
    assert one.chain.failures == {}
    assert target.forgotten == []


# ---- stopped passes


@given(
    interrupted=st.frozensets(st.integers(0, 30), max_size=8),
    plan=PLANS,
    n_batch=st.integers(2, 12),
    rewinds=st.booleans(),
    checkpoints=st.booleans(),
)
def test_a_stopped_pass_leaves_everything_able_to_go_on(
    interrupted: frozenset[int], plan: list[tuple[int, int]], n_batch: int, rewinds: bool, checkpoints: bool
) -> None:
    text = plain_answer()
    target = ToyTarget(interrupted=interrupted, n_batch=n_batch, rewinds=rewinds, checkpoints=checkpoints)
    one = sequence(target, PROMPT, Oracle(text, plan, start=len(PROMPT)))
    run(target, one)
    assert answer(one) == text
    assert one.stats.completion_tokens == len(text)


def test_a_drafter_that_is_stopped_stops_the_step_before_the_target() -> None:
    class Stopped(Idle):
        def propose(self, limit: int, draw: Draw) -> Draft:
            raise Interrupted("stopped")

    target = ToyTarget()
    one = sequence(target, PROMPT, Stopped("draft"))
    loop = Loop(target, Ticks())
    loop.add(one)
    loop.step()
    before = list(one.tokens)
    with pytest.raises(Interrupted):
        loop.step()
    assert (one.tokens, len(target.passes)) == (before, 1)
    assert loop.busy
    loop.remove(one)
    loop.remove(one)  # harmless
    assert not loop.busy


# ---- several sequences


@pytest.mark.parametrize(("n_batch", "n_outputs"), [(64, 32), (9, 9), (5, 4), (3, 3)])
def test_sequences_in_one_batch_say_what_they_say_alone(n_batch: int, n_outputs: int) -> None:
    prompts = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11, 12], [13, 14]]
    lengths = [30, 11, 20]
    target = ToyTarget(n_batch=n_batch, n_outputs=n_outputs, greedy=False)
    together, alone = [], []
    for seq, (prompt, max_new) in enumerate(zip(prompts, lengths, strict=True)):
        text = plain_answer(greedy=False, seed=seq, prompt=prompt, max_new=max_new)
        alone.append(text)
        drafter = Oracle(text, [(seq, 1), (2, seq)], start=len(prompt))
        together.append(sequence(target, prompt, drafter, seq=seq, seed=seq, max_new=max_new))
    run(target, *together)
    assert [answer(one) for one in together] == alone
    assert all(one.finished == "length" for one in together)


class Listening(Chain):
    """Notes what it is told of the pass, and says that its drafts bring half a token each."""

    def __init__(self, links: list[Drafter]) -> None:
        super().__init__(links)
        self.heard: list[tuple[int, float]] = []
        self._drafted = 0

    def beside(self, rows: int, tokens: float) -> None:
        self.heard.append((rows, tokens))

    def propose(self, limit: int, draw: Draw) -> tuple[Draft, str | None]:
        draft, name = super().propose(limit, draw)
        self._drafted = len(draft)
        return draft, name

    @property
    def expected(self) -> float:
        return 1.0 + 0.5 * self._drafted


def test_each_chain_hears_what_else_the_pass_holds() -> None:
    target = ToyTarget(n_batch=16)
    texts = [plain_answer(prompt=prompt) for prompt in ([1, 2], [3, 4])]
    sequences = [
        sequence(target, [2 * i + 1, 2 * i + 2], Oracle(text, [(4, 0)], start=2), seq=i)
        for i, text in enumerate(texts)
    ]
    for one in sequences:
        one.chain = Listening(one.chain._links)
    reader = sequence(target, [5] * 20, seq=2)
    loop = Loop(target, Ticks())
    for one in sequences:
        loop.add(one)
    loop.step()
    loop.add(reader)
    loop.step()  # one row each, and 14 of the prompt: no room for drafts
    loop.step()  # six more of it
    first, second = (one.chain.heard for one in sequences)
    assert first == [(15, 1.0), (7, 2.0)]
    # The four rows that the first drafts are there by then, and should bring two tokens.
    assert second == [(15, 1.0), (11, 4.0)]


def test_a_sequence_can_join_later() -> None:
    target = ToyTarget()
    first, second = sequence(target, PROMPT, max_new=20), sequence(target, [7, 7], seq=1, max_new=5)
    loop = Loop(target, Ticks())
    loop.add(first)
    for _ in range(4):
        loop.step()
    loop.add(second)
    while loop.busy:
        loop.step()
    assert answer(first) == plain_answer(max_new=20)
    assert answer(second) == plain_answer(prompt=[7, 7], max_new=5)


def test_equal_sequences_are_not_mistaken_for_each_other() -> None:
    target = ToyTarget()
    first, second = sequence(target, PROMPT, seq=0), sequence(target, PROMPT, seq=0)
    second.chain, second.source, second.noise, second.take = (
        first.chain,
        first.source,
        first.noise,
        first.take,
    )
    loop = Loop(target, Ticks())
    loop.add(first)
    loop.remove(second)
    assert loop.busy


# ---- numbers


def test_statistics_of_partly_accepted_drafts() -> None:
    """B02: 4 drafted 2 kept, 0 drafted, 4 drafted 4 kept, 3 drafted and a stop at the first of them."""
    text = plain_answer()
    plan = [(2, 2), (0, 0), (4, 0), (3, 0)]
    # after the prompt's own token: 3, 1, 5 tokens, then one that stops
    stop_at = 1 + 3 + 1 + 5
    count = 0

    def take(token: int) -> FinishReason | None:
        nonlocal count
        count += 1
        return "stop" if count == stop_at + 1 else None

    target = ToyTarget()
    one = sequence(target, PROMPT, Oracle(text, plan, start=len(PROMPT)), take=take)
    steps = run(target, one)
    assert [(s.drafted, s.accepted, len(s.tokens)) for s in steps] == [
        (0, 0, 1),
        (4, 2, 3),
        (0, 0, 1),
        (4, 4, 5),
        (3, 1, 1),
    ]
    stats = one.stats
    assert (stats.drafted, stats.accepted) == (11, 7)
    assert stats.acceptance_rate == pytest.approx(7 / 11)
    assert (stats.completion_tokens, stats.target_passes) == (11, 5)
    assert stats.tokens_per_pass == pytest.approx(11 / 5)
    counts = stats.by_drafter["oracle"]
    assert (counts.proposals, counts.drafted, counts.accepted) == (3, 11, 7)
    assert counts.drafted_at == [3, 3, 3, 2]
    assert counts.accepted_at == [3, 2, 1, 1]


def test_times_come_from_the_clock() -> None:
    """Each step reads the clock four times: began, drafted, decoded, ended."""
    target = ToyTarget(n_batch=3)
    one = sequence(target, PROMPT, max_new=4)
    run(target, one)
    stats = one.stats
    assert stats.prefill_s == 7.0  # two passes: 0 to 7
    assert stats.decode_s == 12.0  # three more: 7 to 19
    assert (stats.draft_s, stats.verify_s) == (3.0, 3.0)
    assert (stats.completion_tokens, stats.first_pass_tokens) == (4, 1)
    assert stats.tokens_per_second == pytest.approx(3 / 12)
    assert one.started == 0.0


def test_speedup_is_told_from_what_plain_decoding_would_have_cost() -> None:
    """The clock says one second for each part of a pass, the curve two for a plain row."""
    text = plain_answer()
    one = sequence(ToyTarget(), PROMPT, Oracle(text, [(2, 0), (0, 0), (1, 1)], start=len(PROMPT)), max_new=7)
    loop = Loop(one.source, Ticks(), _Known({1: 2.0, 2: 2.0, 3: 2.0}))
    loop.add(one)
    while loop.busy:
        loop.step()
    stats, counts = one.stats, one.stats.by_drafter["oracle"]
    # the prompt's own token, then 3, 1 and 2 tokens of three passes, which take 4 seconds each
    assert (stats.completion_tokens, stats.target_passes, stats.decode_s) == (7, 4, 12.0)
    # two drafted passes by the curve, the plain one by itself
    assert (stats.plain_s, stats.rest_s) == (11.0, 6.0)
    assert stats.speedup == pytest.approx((11 + 6) / 12)
    assert (counts.pass_tokens, counts.plain_s) == (5, 10.0)
    assert (counts.draft_s, counts.verify_s, counts.rest_s) == (2.0, 2.0, 2.0)
    assert counts.speedup == pytest.approx((10 + 2) / 6)
    assert stats.as_report()["speedup"] == stats.speedup


def test_speedup_is_unknown_where_no_plain_pass_was_measured() -> None:
    one = sequence(ToyTarget(), PROMPT, Oracle(plain_answer(), [(2, 0)], start=len(PROMPT)))
    run(one.source, one)
    assert one.stats.speedup is None and one.stats.by_drafter["oracle"].speedup is None


class _Known(CostCurve):
    """Learns nothing more."""

    def observe(self, rows: int, seconds: float) -> None:
        pass


def test_speed_is_unknown_before_there_was_any_decoding() -> None:
    target = ToyTarget()
    one = sequence(target, PROMPT, max_new=1)
    assert one.stats.tokens_per_pass is None
    run(target, one)
    assert one.stats.tokens_per_second is None
    assert one.stats.decode_s == 0.0


def test_report_has_what_the_command_line_promises() -> None:
    text = plain_answer()
    target = ToyTarget()
    one = sequence(target, PROMPT, Oracle(text, [(2, 1)], start=len(PROMPT)))
    run(target, one)
    report = one.stats.as_report()
    assert {
        "prompt_tokens",
        "reused_tokens",
        "completion_tokens",
        "prefill_s",
        "decode_s",
        "tokens_per_second",
        "target_passes",
        "drafted",
        "accepted",
        "acceptance_rate",
        "tokens_per_pass",
        "by_drafter",
    } <= set(report)
    assert report["drafted"] == one.stats.drafted > report["accepted"] > 0
    by_drafter = report["by_drafter"]
    assert isinstance(by_drafter, dict)
    assert {"drafted", "accepted", "proposals"} <= set(by_drafter["oracle"])
    untouched = sequence(ToyTarget(), PROMPT).stats
    assert untouched.by_drafter == {}  # answers do not share their counts
