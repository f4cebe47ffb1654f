"""The floor: who is paused, for how long, and what a person is told."""

from __future__ import annotations

import pytest

from drafting.chain import Chain
from drafting.drafter import Draft, Draw
from drafting.floor import Floor
from drafting.silence import NO_OFFER, NO_ROOM, OFF, PAUSED
from tests.drafting.test_chain import Raises, Says, no_draw
from tests.drafting.toy import Idle, Oracle, ToyTarget, answer, run, sequence


def paused(floor: Floor, link: str = "a", drafted: int = 48) -> int:
    """Let wrong drafts fail until the link is paused; the tokens that took."""
    spent = 0
    while floor.paused(link) is None:
        length = min(drafted, floor.limit(link))
        floor.record(link, length, 0)
        spent += length
        assert spent < 1000
    return spent


def pauses(floor: Floor) -> list[str]:
    """What is told of pauses since the last look."""
    return [line for line in floor.news() if "is paused: low acceptance (" in line]


def passes_to_probe(floor: Floor, link: str = "a") -> int:
    passes = 0
    while not floor.limit(link):
        floor.passed()
        passes += 1
    return passes


def test_one_bad_draft_shortens_the_next_and_pauses_nobody() -> None:
    floor = Floor(0.2)
    floor.record("a", 64, 0)
    assert floor.paused("a") is None
    assert floor.limit("a") == 16
    assert floor.limit("b") > 1000
    floor.record("a", 16, 16)
    assert floor.limit("a") == 32  # and a good one lets it grow again
    assert floor.news() == ()


@pytest.mark.parametrize("drafted", [1, 2, 8, 48, 64])
def test_a_link_that_is_never_right_is_paused_after_some_tens_of_tokens(drafted: int) -> None:
    floor = Floor(0.2)
    assert 40 <= paused(floor, drafted=drafted) <= 112
    assert floor.limit("a") == 0
    assert len(pauses(floor)) == 1
    assert floor.news() == ()


@pytest.mark.parametrize(("accepted", "is_paused"), [(1, True), (2, False), (8, False)])
def test_the_rate_decides(accepted: int, is_paused: bool) -> None:
    floor = Floor(0.2)
    for _ in range(50):
        floor.record("a", min(8, floor.limit("a")), accepted)
        if floor.paused("a"):
            break
    assert (floor.paused("a") is not None) == is_paused


def test_recent_drafts_count_more_than_a_good_past() -> None:
    floor = Floor(0.2)
    for _ in range(1000):
        floor.record("a", 8, 8)
    assert paused(floor, drafted=8) < 250


def test_it_is_tried_again_ever_more_seldom_and_briefly() -> None:
    floor = Floor(0.2)
    paused(floor)
    waits = []
    for _ in range(6):
        waits.append(passes_to_probe(floor))
        assert floor.limit("a") == 4
        floor.record("a", 4, 0)
    assert waits == [16, 32, 64, 128, 128, 128]
    assert len(pauses(floor)) == 1  # it is one pause


def test_it_comes_back_with_a_good_probe_on_probation() -> None:
    floor = Floor(0.2)
    paused(floor)
    passes_to_probe(floor)
    floor.record("a", 4, 1)
    assert floor.paused("a") is None
    assert floor.limit("a") == 8
    assert len(pauses(floor)) == 1
    floor.record("a", 8, 0)
    assert floor.paused("a") is None
    floor.record("a", 8, 0)
    assert floor.paused("a") is not None  # it does not take some tens of tokens again
    assert passes_to_probe(floor) == 16
    assert pauses(floor) == []  # that was luck, and still the same pause


def test_once_it_has_proved_itself_it_is_as_before() -> None:
    floor = Floor(0.2)
    paused(floor)
    passes_to_probe(floor)
    floor.record("a", 4, 3)
    for length in (8, 16, 32, 64, 128, 256):
        assert floor.limit("a") == length
        floor.record("a", 8, 8)
    pauses(floor)
    assert paused(floor) >= 40
    assert passes_to_probe(floor) == 16
    assert len(pauses(floor)) == 1


def test_a_new_answer_is_a_new_chance() -> None:
    floor = Floor(0.2)
    paused(floor)
    for _ in range(5):
        passes_to_probe(floor)
        floor.record("a", 4, 0)
    floor.begin()
    assert passes_to_probe(floor) == 16


def test_without_a_rate_nobody_is_paused() -> None:
    floor = Floor()
    for _ in range(50):
        floor.record("a", 48, 0)
    assert floor.limit("a") > 1000 and floor.paused("a") is None


def test_a_drafter_that_does_not_fit_is_called_so_once() -> None:
    """B02: nothing accepted of at least 100 drafted tokens, over answers and with any floor."""
    floor = Floor()
    floor.record("a", 99, 0)
    floor.begin()
    assert floor.news() == ()
    floor.record("a", 1, 0)
    assert floor.news() == ("a does not fit: none of its 100 drafted tokens was accepted.",)
    floor.record("a", 200, 0)
    assert floor.news() == ()
    for drafted, accepted in ((99, 0), (9, 1), (200, 0)):
        floor.record("b", drafted, accepted)
    assert floor.news() == ()


# ---- in a chain


class Wrong(Says):
    def __init__(self, name: str = "wrong", length: int = 16) -> None:
        super().__init__(name, [1] * length)


def play(chain: Chain, passes: int) -> list[str | None]:
    """So many passes that accept nothing; who spoke in each."""
    speakers = []
    for _ in range(passes):
        draft, name = chain.propose(64, no_draw)
        chain.commit([2], len(draft), 0)
        speakers.append(name)
    return speakers


def test_a_paused_link_is_not_asked_and_the_next_one_speaks() -> None:
    floor = Floor(0.2)
    wrong, second = Wrong("wrong"), Says("second", [2])
    chain = Chain([wrong, second], floor=floor)
    chain.begin([])
    speakers = play(chain, 20)
    first = speakers.index("second")
    assert set(speakers[:first]) == {"wrong"} and 3 <= first <= 6
    assert speakers[first : first + 10] == ["second"] * 10
    assert len(wrong.limits) == speakers.count("wrong")
    assert wrong.limits[:3] == [64, 8, 8]


def test_the_next_answer_knows_who_was_paused() -> None:
    floor = Floor(0.2)
    play(Chain([Wrong()], floor=floor), 10)
    chain = Chain([Wrong()], floor=floor)
    chain.begin([])
    assert play(chain, 4) == [None] * 4


def test_why_nothing_is_drafted() -> None:
    assert Chain([]).silence == OFF
    idle = Chain([Idle("a")])
    idle.propose(0, no_draw)
    assert idle.silence == NO_ROOM
    idle.propose(4, no_draw)
    assert idle.silence == NO_OFFER
    failed = Chain([Raises("a", "propose")])
    failed.propose(4, no_draw)
    assert failed.silence.detail == "a: ValueError: boom."
    low = Chain([Wrong(), Idle("b")], floor=Floor(0.2))
    play(low, 8)
    assert low.silence.reason == PAUSED == "paused: low acceptance"
    assert low.silence.detail.startswith("wrong: 0 % of about ")
    assert low.silence.detail.endswith(" recent drafted tokens were right, the floor is 20 %.")


class Asked(Idle):
    """Notes in which order links are asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        super().__init__(name)
        self._log = log

    def propose(self, limit: int, draw: Draw) -> Draft:
        self._log.append(self.name)
        return super().propose(limit, draw)


def test_links_are_asked_in_the_order_given() -> None:
    log: list[str] = []
    Chain([Asked(name, log) for name in "bca"]).propose(4, no_draw)
    assert log == ["b", "c", "a"]


def test_every_pass_has_a_draft_or_a_reason() -> None:
    plain = sequence(ToyTarget(), [1, 2, 3], max_new=40)
    run(plain.source, plain)
    assert plain.stats.undrafted == {OFF.reason: 39}  # the first token came with the prompt
    half = sequence(
        ToyTarget(), [1, 2, 3], Oracle(answer(plain), [(2, 1), (0, 0)], start=3), max_new=40, max_draft=8
    )
    steps = run(half.source, half)
    assert answer(half) == answer(plain)
    assert [step.drafter is None for step in steps[1:]] == [step.silence is not None for step in steps[1:]]
    assert half.stats.by_drafter["oracle"].proposals + sum(half.stats.undrafted.values()) == len(steps) - 1
    assert half.stats.undrafted[NO_OFFER.reason] >= 8
    report = half.stats.as_report()
    assert report["undrafted"] == half.stats.undrafted
