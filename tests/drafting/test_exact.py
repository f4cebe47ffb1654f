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
        ([False, False, False, False, True], ExactRows(6, 8)),
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
    """Not while the prompt is read either, and not at the end of the context."""
    n_ctx = prompt_length + 30
    prompt = [random.Random(seed).randrange(4) for _ in range(prompt_length)]
    plain_target = ToyTarget(n_batch=16, n_ctx=n_ctx)
    plain = sequence(plain_target, prompt, Idle(), max_new=None)
    run(plain_target, plain)
    target = ToyTarget(n_batch=16, n_ctx=n_ctx)
    exact = sequence(target, prompt, Guesses(seed), max_new=None)
    exact.least_rows, exact.most_rows = 3, 6
    run(target, exact)
    assert len(answer(exact)) == 29  # the last place of the context is for padding alone
    assert answer(exact) == answer(plain)[:29]
    assert all(3 <= len(rows) <= 6 for rows in target.passes)
    outputs = [sum(row.output for row in rows) for rows in target.passes]
    assert all(n == 0 or n >= 3 for n in outputs), "the output layer sees the rows with logits alone"


def test_two_sequences_share_the_group() -> None:
    plain, together = [], ToyTarget(n_batch=16)
    for seed in (1, 2):
        target = ToyTarget(n_batch=16)
        alone = sequence(target, [seed] * 9, Idle())
        run(target, alone)
        plain.append(answer(alone))
    pair = [sequence(together, [seed] * 9, Guesses(seed), seq=seed) for seed in (1, 2)]
    for one in pair:
        one.least_rows, one.most_rows = 3, 6
    run(together, *pair)
    assert [answer(one) for one in pair] == plain
    assert all(3 <= len(rows) <= 6 for rows in together.passes)


def test_padding_makes_a_short_draft_free() -> None:
    controller = Controller(CostCurve(Q4_1))
    assert controller.choose("x", [0.5]) == PLAIN
    controller.least_rows = 2
    assert controller.choose("x", [0.5]).length == 1
