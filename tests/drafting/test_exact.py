"""Exact mode's pure parts: choosing the group, and passes that never leave it."""

from __future__ import annotations

import random

import pytest

from drafting.controller import PLAIN, Controller
from drafting.cost import CostCurve
from drafting.drafter import Draft, Draw
from drafting.exact import ExactRows, best_group
from tests.drafting.scripted import Q4_1
from tests.drafting.toy import Idle, ToyTarget, answer, run, sequence

SIZES = (1, 2, 3, 4, 6, 8)


@pytest.mark.parametrize(
    ("same", "group"),
    [
        ([True] * 5, ExactRows(1, 8)),
        ([False, True, True, True, True], ExactRows(2, 8)),
        ([False, True, False, True, True], ExactRows(2, 3)),
        ([False, False, False, True, True], ExactRows(4, 8)),
        ([False, False, False, False, True], None),
        ([False] * 5, None),
    ],
)
def test_the_group_with_the_least_padding(same: list[bool], group: ExactRows | None) -> None:
    assert best_group(SIZES, same) == group


class Guesses(Idle):
    """Drafts of random lengths that are often wrong."""

    def __init__(self, seed: int) -> None:
        super().__init__("guesses")
        self._rng = random.Random(seed)

    def propose(self, limit: int, draw: Draw) -> Draft:
        return Draft([self._rng.randrange(4) for _ in range(self._rng.randrange(min(limit, 9) + 1))])


@pytest.mark.parametrize("prompt_length", [1, 2, 4, 5, 7, 8, 9, 17])
@pytest.mark.parametrize("seed", range(5))
def test_no_pass_leaves_the_group_and_the_text_stays(prompt_length: int, seed: int) -> None:
    """Not at the end of the context either. A prompt is read up to its last token, in blocks."""
    n_ctx = prompt_length + 30
    prompt = [random.Random(seed).randrange(4) for _ in range(prompt_length)]
    plain_target = ToyTarget(n_batch=8, n_ctx=n_ctx)
    plain = sequence(plain_target, prompt, Idle(), max_new=None)
    run(plain_target, plain)
    target = ToyTarget(n_batch=8, n_ctx=n_ctx)
    exact = sequence(target, prompt, Guesses(seed), max_new=None)
    exact.least_rows, exact.most_rows = 3, 6
    run(target, exact)
    assert len(answer(exact)) == 29  # the last place of the context is for padding alone
    assert answer(exact) == answer(plain)[:29]
    reading = -(-(prompt_length - 1) // 8)
    assert [rows[0].pos for rows in target.passes[: reading + 1]] == [
        *range(0, prompt_length - 1, 8),
        prompt_length - 1,
    ]
    assert all(3 <= len(rows) <= 6 for rows in target.passes[reading:])
    assert all(row.output for rows in target.passes[reading:] for row in rows)


@pytest.mark.parametrize("computed", [8, 16, 20])
def test_what_is_reused_does_not_move_the_blocks(computed: int) -> None:
    target = ToyTarget(n_batch=8)
    prompt = [1] * 21
    target.kv[0] = prompt[:computed]
    one = sequence(target, prompt, Idle())
    one.least_rows, one.most_rows, one.computed = 2, 6, computed
    run(target, one)
    starts = [rows[0].pos for rows in target.passes if rows[0].pos <= 20]
    assert starts == [at for at in (0, 8, 16, 20) if at >= computed]


def test_padding_makes_a_short_draft_free() -> None:
    controller = Controller(CostCurve(Q4_1))
    assert controller.choose("x", [0.5]) == PLAIN
    controller.least_rows = 2
    assert controller.choose("x", [0.5]).length == 1
