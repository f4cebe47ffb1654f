"""Automatic mode: drafts where it pays, leaves off where it does not, notices changes quickly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from drafting.auto_chain import AutoChain
from drafting.controller import PLAIN, Acceptance, Controller, Delivery
from drafting.cost import CostCurve
from drafting.draft_cost import DraftCost
from drafting.drafter import Draft, Drafter, Draw
from drafting.follower_counts import FollowerCounts, key_arrays
from drafting.history import History
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.suffix import Suffix
from tests.drafting.scripted import CURVES, F16, GPU, Q4_1, Scripted, oracle, play, script
from tests.drafting.test_chain import no_draw

ADVERSARIAL = [(0.0, 500), (0.95, 500)] + [(rate, 50) for _ in range(10) for rate in (0.0, 0.95)]


def worst_window(said: list[float], tokens: int = 200) -> float:
    """The lowest speed over plain of any so many tokens in a row."""
    return tokens / max(said[i + tokens] - said[i] for i in range(len(said) - tokens))


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_never_slower_than_plain_when_acceptance_turns_against_it(curve: str, seed: int) -> None:
    right = script(ADVERSARIAL, seed)
    said = play(right, CURVES[curve])
    assert worst_window(said) >= 0.95
    assert oracle(right, CURVES[curve]) / said[-1] >= 0.85


@pytest.mark.parametrize("curve", CURVES)
def test_hopeless_drafts_cost_next_to_nothing(curve: str) -> None:
    said = play(script([(0.05, 1000)]), CURVES[curve])
    assert 1000 / said[-1] >= 0.97


@pytest.mark.parametrize(("curve", "least"), [(Q4_1, 1.35), (F16, 2.0), (GPU, 6.0)])
def test_perfect_drafts_bring_what_the_machine_can_give(curve: dict[int, float], least: float) -> None:
    assert 1000 / play([True] * 1000, curve)[-1] >= least


def test_a_length_that_costs_no_more_is_taken() -> None:
    """F16: four and five rows cost the same, so a third draft token always brings the fourth."""
    controller = Controller(CostCurve(F16))
    for n in range(40):
        for confidence in (0.3 + 0.015 * n,):
            assert controller.choose("x", [confidence] * 4).length != 3


def test_plain_where_no_draft_beats_it() -> None:
    controller = Controller(CostCurve(Q4_1))
    assert controller.choose("x", [0.3] * 8) == PLAIN
    assert controller.choose("x", []) == PLAIN
    assert controller.choose("x", [0.95] * 8).gain > 1
    assert controller.choose("x", [0.95] * 8, DraftCost(5.0)) == PLAIN


def test_confidence_is_believed_until_the_outcomes_say_otherwise() -> None:
    acceptance = Acceptance()
    for link in ("x", "y"):
        acceptance.introduce(link, doubt=1.0)
    first = acceptance.rate("x", 0.9)
    assert 0.7 < first < 0.9  # it still has to prove itself
    for _ in range(20):
        acceptance.record("x", 0.9, False)
    assert acceptance.rate("x", 0.9) < 0.3
    assert acceptance.rate("y", 0.9) == first  # another link is another matter
    assert acceptance.rate("x", 0.3) < acceptance.rate("y", 0.3)  # what else it says is believed less
    for _ in range(20):
        acceptance.record("x", 0.9, True)
    assert acceptance.rate("x", 0.9) > 0.8


def test_tokens_behind_the_first_wrong_one_say_nothing() -> None:
    controller = Controller(CostCurve(GPU))
    other = Controller(CostCurve(GPU))
    controller.record("x", [0.9, 0.9, 0.4], 1)
    other.record("x", [0.9, 0.9], 1)
    rate = controller.acceptance.rate("x", 0.4)
    assert rate == other.acceptance.rate("x", 0.4)
    assert controller.acceptance.rate("x", 0.9) < 0.8
    controller.record("x", [0.4], 1)  # accepted to its end: at least that long
    assert controller.acceptance.rate("x", 0.4) > rate


def test_the_first_long_guess_risks_no_more_than_the_stake() -> None:
    """A target whose passes of 48 rows take 11 plain ones lost 13 % of an answer to one wrong copy."""
    controller = Controller(CostCurve({1: 1.0, 49: 13.0}))
    first = controller.choose("x", [0.999] * 48).length
    assert 3 < controller.extra_seconds(first) <= 4
    for _ in range(8):
        controller.record("x", [0.999] * first, first)
    assert controller.choose("x", [0.999] * 48).length > first  # what was saved may be risked
    for _ in range(20):
        controller.record("x", [0.5] * 48, 0)
    assert controller.extra_seconds(controller.choose("x", [0.999] * 48).length) <= 4


def test_drafts_that_miss_what_they_promise_are_promised_less_until_time_has_passed() -> None:
    delivery = Delivery()
    assert delivery.share("x") == 1.0
    for _ in range(5):
        delivery.record("x", expected=4.0, right=1)
    assert delivery.share("x") < 0.6 and delivery.share("y") == 1.0
    low = delivery.share("x")
    for _ in range(300):
        delivery.passed()
    assert delivery.share("x") > 0.9 > low
    for _ in range(5):
        delivery.record("x", expected=4.0, right=6)
    assert delivery.share("x") == 1.0  # more than promised is no reason to expect more than is said


class Named(Scripted):
    def __init__(self, name: str, right: Sequence[bool]) -> None:
        super().__init__(right)
        self.name = name


def test_the_better_of_two_links_speaks_also_when_they_change_places() -> None:
    """The one that is not taken is judged all the same, so nothing is risked to find out."""
    n = 400
    a = Named("a", [True] * n + [False] * n)
    b = Named("b", [False] * n + [True] * n)
    chain = AutoChain([a, b], Controller(CostCurve(Q4_1)), clock=lambda: 0.0)
    chain.begin([])
    at, speakers = 0, []
    while at < 2 * n - 50:
        draft, name = chain.propose(8, no_draw)
        right = a._right if at < n else b._right
        accepted = len(draft) if name == ("a" if at < n else "b") else 0
        assert right[at]
        speakers.append((at, name))
        chain.commit([1] * (accepted + 1), len(draft), accepted)
        at += accepted + 1
    assert {name for at, name in speakers if 50 < at < n} == {"a"}
    assert {name for at, name in speakers if at > n + 30} == {"b"}


class Slow:
    """A drafter whose proposals take time on a scripted clock."""

    name = "draft"
    costly = True
    doubt = 1.0

    def __init__(self, seconds_each: float, right: bool, seconds_row: float = 0.0) -> None:
        self.now = 0.0
        self.calls = 0
        self.behind = 0
        self._each, self._right, self._row = seconds_each, right, seconds_row

    def begin(self, tokens: Sequence[int]) -> None:
        self.behind = len(tokens)

    def commit(self, tokens: Sequence[int]) -> None:
        self.behind += len(tokens)

    def catch_up(self) -> None:
        self.now += self._row * self.behind
        self.behind = 1

    def judged(self, drafted: int, accepted: int) -> None: ...

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.calls += 1
        self.behind = 1
        self.now += self._each * limit
        return Draft([int(self._right)] * limit, confidence=[0.9] * limit)


@pytest.mark.parametrize(
    ("each", "right", "pays"), [(0.05, True, True), (0.05, False, False), (2.0, True, False)]
)
def test_a_costly_link_is_asked_where_it_pays_and_else_seldom(each: float, right: bool, pays: bool) -> None:
    slow = Slow(each, right)
    chain = AutoChain([slow], Controller(CostCurve(Q4_1)), clock=lambda: slow.now)
    chain.begin([])
    tokens = passes = 0
    while passes < 1000:
        draft, _ = chain.propose(8, no_draw)
        accepted = len(draft) if right else 0
        chain.commit([1] * (accepted + 1), len(draft), accepted)
        tokens, passes = tokens + accepted + 1, passes + 1
    if pays:
        assert slow.calls > 900
    else:
        assert 1 <= slow.calls <= 25
        assert slow.now < 10  # of about 1,000 plain passes


def answer(chain: AutoChain, passes: int, right: bool, prompt: int = 10) -> int:
    """So many passes of an answer; how many rows beside the last token they had."""
    chain.begin([1] * prompt)
    rows = 0
    for _ in range(passes):
        draft, _ = chain.propose(8, no_draw)
        accepted = len(draft) if right else 0
        chain.commit([1] * (accepted + 1), len(draft), accepted)
        rows += len(draft)
    return rows


def test_what_drafts_take_is_known_to_the_next_answer() -> None:
    slow = Slow(2.0, right=True)
    controller = Controller(CostCurve(Q4_1))
    answer(AutoChain([slow], controller, clock=lambda: slow.now), 20, right=True)
    assert slow.calls >= 1
    slow.calls = 0
    answer(AutoChain([slow], controller.fresh(), clock=lambda: slow.now), 500, right=True)
    assert slow.calls == 0, "a token that takes two passes never pays"


def test_catching_up_is_not_taken_for_drafting() -> None:
    slow = Slow(0.05, right=True, seconds_row=0.01)
    controller = Controller(CostCurve(Q4_1))
    answer(AutoChain([slow], controller, clock=lambda: slow.now), 5, right=True, prompt=500)
    cost = controller.draft_cost("draft")
    assert cost.seconds_each == pytest.approx(0.05)
    assert cost.seconds_row == pytest.approx(0.01)


def test_reading_a_long_prompt_waits_until_it_is_worth_it() -> None:
    """Known costs, drafts that would pay little, and a prompt that takes 100 passes to read."""
    slow = Slow(0.05, right=True, seconds_row=0.1)
    controller = Controller(CostCurve(Q4_1), {"draft": DraftCost(0.05, 0.1)})
    controller.draft_cost("draft").confidence = 0.9
    answer(AutoChain([slow], controller, clock=lambda: slow.now), 60, right=True, prompt=1000)
    assert slow.calls == 0
    answer(AutoChain([slow], controller.fresh(), clock=lambda: slow.now), 60, right=True, prompt=10)
    assert slow.calls > 50


@pytest.mark.parametrize("prompt", [10, 1000])
def test_probes_take_one_fiftieth_of_the_time(prompt: int) -> None:
    passes = 4000
    slow = Slow(0.2, right=False, seconds_row=0.002)
    controller = Controller(CostCurve(Q4_1), {"draft": DraftCost(0.2, 0.002)})
    rows = answer(AutoChain([slow], controller, clock=lambda: slow.now), passes, right=False, prompt=prompt)
    assert slow.calls >= 3, "text may change: it is tried again"
    assert slow.now + 0.7 * rows < 0.025 * passes


class Block(Slow):
    """Drafts that take as long whatever their length, the less sure the longer."""

    lengths: list[int]

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.calls += 1
        self.behind = 1
        self.now += self._each
        self.lengths.append(limit)
        confidence = [0.9 if place < 4 else 0.02 for place in range(limit)]
        return Draft([int(self._right)] * limit, confidence=confidence)


def test_a_block_is_paid_once_whatever_its_length() -> None:
    """Token by token they would take longer than plain passes, and never pay."""
    each = 1.2
    slow, block = Slow(each, right=True), Block(each, right=True)
    block.lengths = []
    costs = {"draft": DraftCost(each), "block": DraftCost(each, drafts_blocks=True)}
    block.name = "block"
    for link in (slow, block):
        answer(AutoChain([link], Controller(CostCurve(GPU), costs), lambda link=link: link.now), 200, True)
    assert slow.calls < 10
    assert block.calls > 150
    assert set(block.lengths[20:]) == {8}, "all that it says is asked for, and then cut"
    assert costs["block"].seconds_each == pytest.approx(each)
    assert costs["block"].seconds(8) == pytest.approx(each)


def test_a_block_is_judged_by_its_beginning() -> None:
    """It runs on to its end where it is unsure; that must not talk down what it says first."""
    block = Block(0.1, right=True)
    block.lengths = []
    costs = {"draft": DraftCost(0.1, drafts_blocks=True)}
    rows = answer(AutoChain([block], Controller(CostCurve(Q4_1), costs), lambda: block.now), 200, True)
    assert costs["draft"].confidence > 0.8
    assert 150 < rows < 200 * 8


def test_a_link_that_sees_no_more_than_another_is_left_out() -> None:
    history = History()
    suffix = Suffix(history)
    links: list[Drafter] = [NgramCache(history), NgramSimple(history), NgramMod(ModTable(bits=8)), suffix]
    controller = Controller(CostCurve(Q4_1))
    assert AutoChain(links, controller, lambda: 0.0, history).names == ["mod", "suffix"]
    without = AutoChain(links[:3], controller.fresh(), lambda: 0.0, history)
    assert without.names == ["cache", "simple", "mod"]  # each counts where suffix is switched off
    one, two, three = (np.array([n], np.int32) for n in (1, 2, 3))
    table = NgramCache(history, static=FollowerCounts(key_arrays([one])[-1], two, three))
    assert AutoChain([table, suffix], controller.fresh(), lambda: 0.0, history).names == ["cache", "suffix"]


@pytest.mark.parametrize("others", [0, 1, 3, 7])
def test_beside_others_a_draft_is_taken_only_where_all_together_gain(others: int) -> None:
    """By brute force: tokens of all sequences over the time of the whole pass."""
    seconds = {1: 1.0, 2: 1.5, 3: 1.9, 5: 2.2, 9: 5.0, 17: 10.0, 33: 20.0}
    costs = CostCurve(seconds)
    taken = set()
    for confidence in (0.3, 0.5, 0.7, 0.9, 0.97, 0.999):
        controller = Controller(costs)
        controller.beside(others, float(others))
        stated = [confidence] * 16
        choice = controller.choose("link", stated)
        rate = controller.acceptance.rate("link", confidence)
        plain = (others + 1) / costs.seconds(others + 1)

        def gain(length: int, rate: float = rate, plain: float = plain) -> float:
            tokens = others + 1 + sum(rate**i for i in range(1, length + 1))
            return tokens / costs.seconds(others + 1 + length) / plain

        best = max(range(17), key=gain)
        assert choice.length == best, (confidence, choice, gain(best))
        assert choice.gain == pytest.approx(max(1.0, gain(best)))
        taken.add(bool(choice.length))
    if others == 7:
        assert taken == {False}  # eight rows cost so much more each that no guess is worth one
    if others == 0:
        assert taken == {False, True}


def test_a_draft_of_one_is_counted_by_those_that_come_after_it() -> None:
    chain = AutoChain([Named("a", [True] * 9)], Controller(CostCurve(GPU)), clock=lambda: 0.0)
    chain.begin([])
    assert chain.expected == 1.0
    draft, name = chain.propose(3, no_draw)
    assert name == "a" and draft
    assert 1.0 < chain.expected <= 1.0 + len(draft)
