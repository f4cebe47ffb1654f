"""The chain: who speaks, and what happens to a link that fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drafting.chain import Chain
from drafting.distribution import Distribution
from drafting.drafter import Draft, Draw, Interrupted
from tests.drafting.toy import Idle, Oracle, ToyTarget, answer, run, sequence


def no_draw(distribution: Distribution, position: int) -> int:
    raise AssertionError("nothing here draws")


class Says(Idle):
    def __init__(self, name: str, tokens: list[int]) -> None:
        super().__init__(name)
        self._tokens = tokens

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.limits.append(limit)
        return Draft(list(self._tokens))


class Raises(Idle):
    """Raises on a call to the method named, from the n-th on."""

    def __init__(self, name: str, where: str, nth: int = 1, error: Exception | None = None) -> None:
        super().__init__(name)
        self._where, self._left = where, nth
        self._error = error or ValueError("boom")

    def _reach(self, where: str) -> None:
        if where == self._where:
            self._left -= 1
            if self._left <= 0:
                raise self._error

    def begin(self, tokens: Sequence[int]) -> None:
        super().begin(tokens)
        self._reach("begin")

    def commit(self, tokens: Sequence[int]) -> None:
        super().commit(tokens)
        self._reach("commit")

    def judged(self, drafted: int, accepted: int) -> None:
        super().judged(drafted, accepted)
        self._reach("judged")

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.limits.append(limit)
        self._reach("propose")
        return Draft([1]) if self._where == "judged" else Draft()


def test_first_link_with_something_to_say_speaks() -> None:
    empty, first, second = Idle("a"), Says("b", [1, 2]), Says("c", [3])
    chain = Chain([empty, first, second])
    assert chain.propose(8, no_draw) == (Draft([1, 2]), "b")
    assert empty.limits == [8]
    assert second.limits == []


def test_only_the_speaker_is_judged_and_all_links_follow() -> None:
    links = [Idle("a"), Says("b", [1, 2]), Says("c", [3])]
    chain = Chain(links)
    chain.begin([7])
    chain.propose(8, no_draw)
    chain.commit([1, 9], drafted=2, accepted=1)
    assert [link.verdicts for link in links] == [[], [(2, 1)], []]
    assert [link.history for link in links] == [[7, 1, 9]] * 3
    chain.commit([4], drafted=0, accepted=0)  # nobody spoke in between
    assert links[1].verdicts == [(2, 1)]


def test_a_draft_is_cut_to_the_limit_with_its_q() -> None:
    q = [Distribution.certain(t) for t in (1, 2, 3)]

    class Neural(Idle):
        def propose(self, limit: int, draw: Draw) -> Draft:
            return Draft([1, 2, 3], q)

    draft, _ = Chain([Neural()]).propose(2, no_draw)
    assert draft.tokens == [1, 2]
    assert draft.q == q[:2]


def test_no_room_means_nobody_is_asked() -> None:
    link = Says("a", [1])
    assert Chain([link]).propose(0, no_draw) == (Draft(), None)
    assert Chain([link]).propose(-3, no_draw) == (Draft(), None)
    assert link.limits == []


@pytest.mark.parametrize("where", ["begin", "propose", "judged", "commit"])
def test_a_link_that_raises_is_off_with_one_reason(where: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    bad, good = Raises("bad", where), Says("good", [5])
    chain = Chain([bad, good])
    for _ in range(3):
        chain.begin([1, 2])
        chain.propose(4, no_draw)
        chain.commit([5, 6], 1, 1)
    assert chain.failures == {"bad": "ValueError: boom"}
    assert chain.names == ["good"]
    assert chain.propose(4, no_draw) == (Draft([5]), "good")
    assert len(caplog.records) == 1


def test_interrupted_passes_through_and_is_nobodys_fault() -> None:
    link = Raises("draft", "propose", error=Interrupted("stopped"))
    chain = Chain([link])
    with pytest.raises(Interrupted):
        chain.propose(4, no_draw)
    assert chain.names == ["draft"]
    assert chain.failures == {}


def test_switch_off_all_silences_every_link() -> None:
    chain = Chain([Says("a", [1]), Says("b", [2])])
    chain.switch_off_all("no memory")
    assert chain.failures == {"a": "no memory", "b": "no memory"}
    assert chain.propose(4, no_draw) == (Draft(), None)
    chain.begin([1])
    chain.commit([1], 0, 0)


def test_fall_through_and_failure_of_one_link_in_an_answer() -> None:
    """A18: link 1 says nothing, link 2 raises on its third call, link 3 works; 50 tokens."""
    plain = sequence(ToyTarget(), [1, 2, 3], max_new=50)
    run(plain.source, plain)
    drafted = sequence(
        ToyTarget(),
        [1, 2, 3],
        Idle("one"),
        Raises("two", "propose", nth=3),
        Oracle(answer(plain), [(2, 1), (0, 0)], "three", start=3),
        max_new=50,
    )
    run(drafted.source, drafted)
    assert answer(drafted) == answer(plain)
    assert len(answer(drafted)) == 50
    assert drafted.chain.failures == {"two": "ValueError: boom"}
    assert drafted.chain.names == ["one", "three"]
    assert set(drafted.stats.by_drafter) == {"three"}
    counts = drafted.stats.by_drafter["three"]
    assert counts.accepted > 0
    assert counts.drafted > counts.accepted
