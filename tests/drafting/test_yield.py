"""What a drafter of known acceptance brings, through loop and verification: the formula's tokens a pass."""

from __future__ import annotations

import math
import random

import pytest

from drafting.drafter import Draft, Draw
from drafting.loop import Loop
from tests.drafting.chi_square import Z
from tests.drafting.toy import MEMORY, VOCAB, Idle, Ticks, ToyTarget, answer, next_token, sequence

TOLERANCE = 0.05


class Coins(Idle):
    """Drafts as long as it may; each token is right with a set probability, whatever the others are."""

    def __init__(self, acceptance: float, seed: int) -> None:
        super().__init__("coins")
        self._acceptance = acceptance
        self._rng = random.Random(seed)

    def propose(self, limit: int, draw: Draw) -> Draft:
        context = tuple(self.history[-MEMORY:])
        tokens: list[int] = []
        for _ in range(limit):
            right = int(next_token(context, True).ids[0])
            is_right = self._rng.random() < self._acceptance
            tokens.append(right if is_right else (right + 1) % VOCAB)
            context = (*context, right)[-MEMORY:]
        return Draft(tokens)


def passes_needed(acceptance: float, length: int) -> tuple[float, int]:
    """The expected yield of a pass (Leviathan et al. 2023), and passes whose mean is that close to it
    but for one time in ten thousand."""
    expected = (1 - acceptance ** (length + 1)) / (1 - acceptance)
    chances = [acceptance**n * (1 - acceptance) for n in range(length)] + [acceptance**length]
    variance = sum(p * (n + 1 - expected) ** 2 for n, p in enumerate(chances))
    return expected, math.ceil(variance * (Z / (TOLERANCE * expected)) ** 2)


@pytest.mark.parametrize("length", range(1, 17))
@pytest.mark.parametrize("acceptance", [0.3, 0.5, 0.7, 0.9])
def test_tokens_a_pass_follow_the_formula(acceptance: float, length: int) -> None:
    expected, n = passes_needed(acceptance, length)
    target = ToyTarget(n_ctx=100_000)
    # A prompt of one token: even the first pass has a draft.
    one = sequence(target, [1], Coins(acceptance, seed=length), max_new=None, max_draft=length)
    loop = Loop(target, Ticks())
    loop.add(one)
    for _ in range(n):
        [step] = loop.step()
        assert step.drafted == length
    said = len(answer(one))
    assert abs(said / n - expected) < TOLERANCE * expected
    counts = one.stats
    assert (counts.target_passes, counts.completion_tokens, counts.drafted) == (n, said, n * length)
    assert counts.accepted == said - n, "each pass says one token beside the accepted ones"
