"""The suffix drafter's second place to look: this person's earlier answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drafting.drafter import Draft
from drafting.parameters import SuffixParameters
from drafting.past_answers import PastAnswers
from drafting.suffix import Suffix
from tests.drafting.past import held
from tests.drafting.test_chain import no_draw

ANSWER = [30, 31, 32, 33, 34, 35, 36, 37]


def draft(text: list[int], past: PastAnswers | None, limit: int = 8) -> Draft:
    drafter = Suffix(past=past)
    drafter.configure(SuffixParameters(p_min=0.0))
    drafter.begin(text)
    return drafter.propose(limit, no_draw)


def test_an_earlier_answer_goes_on_to_its_end() -> None:
    assert draft([1, 30, 31, 32], None).tokens == []
    assert draft([1, 30, 31, 32], held([ANSWER])).tokens == ANSWER[3:]
    assert draft([1, 30, 31, 32], held([ANSWER]), 2).tokens == ANSWER[3:5]
    assert draft([1, 36, 37], held([ANSWER])).tokens == []  # nothing came after


def test_a_long_match_in_an_earlier_answer_beats_a_short_one_in_this_chat() -> None:
    text = [33, 99, 1, 30, 31, 32, 33]
    assert draft(text, None).tokens[:1] == [99]
    assert draft(text, held([ANSWER])).tokens == ANSWER[4:]


def test_this_chat_is_believed_where_its_match_is_as_long() -> None:
    text = [30, 31, 32, 33, 99, 1, 30, 31, 32, 33]
    assert draft(text, held([ANSWER])) == draft(text, None)
    # three tokens of another chat are not worth more than one of this
    text = [33, 99, 1, 31, 32, 33]
    assert draft(text, held([ANSWER])) == draft(text, None)


def test_earlier_answers_are_believed_less_and_more_where_they_agree() -> None:
    def confidence(past: PastAnswers | None, text: list[int]) -> list[float]:
        return draft(text, past, 2).confidence or []

    text = [1, *ANSWER[:4]]
    alone = confidence(held([ANSWER]), text)
    agreed = confidence(held([ANSWER, ANSWER]), text)
    contested = confidence(held([ANSWER, [*ANSWER[:5], 99]]), text)
    in_chat = confidence(None, [*ANSWER, *text])
    assert contested[0] == agreed[0] > alone[0] > contested[1]
    assert in_chat[0] > alone[0]
    # shorter by half: has no say
    assert confidence(held([[7, 33, 99], ANSWER]), text) == alone


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 8))
def test_with_an_empty_archive_nothing_changes(text: list[int], limit: int) -> None:
    assert draft(text, held([]), limit) == draft(text, None, limit)
