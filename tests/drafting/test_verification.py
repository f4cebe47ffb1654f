"""Verification is lossless: what is said follows p, whoever drafted and whatever was drafted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting.distribution import DRAFTER, TARGET, Distribution, Noise
from drafting.drafter import NO_DRAFT, Draft
from drafting.verification import Mode, Verified, verify
from tests.drafting.chi_square import assert_close, assert_follows

N = 5000


def over(probs: list[float]) -> Distribution:
    """A distribution over the tokens that have a probability above 0."""
    array = np.array(probs)
    ids = np.flatnonzero(array)
    return Distribution(ids.astype(np.int32), array[ids])


# p, q: q may draft ids that p cuts off, and ids beyond the target's vocabulary (a padded one)
PAIRS = {
    "near": ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2]),
    "equal": ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
    "far": ([0.1, 0.2, 0.7], [0.7, 0.2, 0.1]),
    "q has support outside p": ([0.6, 0.4, 0.0, 0.0], [0.2, 0.2, 0.3, 0.3]),
    "p has support outside q": ([0.25, 0.25, 0.25, 0.25], [0.0, 0.9, 0.1, 0.0]),
    "a padded id": ([0.55, 0.45], [0.3, 0.3, 0.0, 0.0, 0.0, 0.4]),
    "nothing in common": ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]),
}


def draw_draft(qs: list[Distribution], noise: Noise, position: int, stream: int = DRAFTER) -> Draft:
    return Draft([noise.draw(q, position + i, stream) for i, q in enumerate(qs)], qs)


@pytest.mark.parametrize("case", PAIRS)
def test_rejection_sampling_follows_p_and_accepts_as_often_as_it_should(case: str) -> None:
    p, q = over(PAIRS[case][0]), over(PAIRS[case][1])
    noise = Noise(1)
    accepted, said = 0, []
    for position in range(0, 2 * N, 2):
        verified = verify(draw_draft([q], noise, position), lambda i: p, noise, position, "rejection")
        said.append(verified.tokens[0])
        accepted += verified.accepted
    width = max(len(PAIRS[case][0]), len(PAIRS[case][1]))
    assert_follows(said, np.pad(PAIRS[case][0], (0, width - len(PAIRS[case][0]))))
    overlap = sum(min(p.probability(x), q.probability(x)) for x in range(width))
    assert_close(accepted / N, overlap, (overlap * (1 - overlap)) ** 0.5, N)


def test_bonus_token_follows_p_when_all_was_accepted() -> None:
    p, q = over([0.5, 0.3, 0.2]), over([0.4, 0.4, 0.2])
    noise = Noise(2)
    bonus = []
    for position in range(0, 2 * N, 2):
        verified = verify(draw_draft([q], noise, position), lambda i: p, noise, position, "rejection")
        if verified.accepted == 1:
            bonus.append(verified.tokens[1])
    assert_follows(bonus, np.array([0.5, 0.3, 0.2]))


def test_two_tokens_follow_the_joint_distribution() -> None:
    """The second token's p depends on the first, and is only asked for where the first was kept."""
    first = over([0.6, 0.4])
    second = {0: over([0.2, 0.8]), 1: over([0.7, 0.3])}
    q = over([0.3, 0.7])
    noise = Noise(3)
    said = []
    for position in range(0, 3 * N, 3):
        draft = draw_draft([q, q], noise, position)
        verified = verify(
            draft, lambda i, d=draft: first if i == 0 else second[d.tokens[0]], noise, position, "rejection"
        )
        if len(verified.tokens) == 1:  # the next pass says the second, with nothing drafted
            [token] = verified.tokens
            following = verify(NO_DRAFT, lambda i, t=token: second[t], noise, position + 1, "rejection")
            verified = Verified([token, *following.tokens], 0)
        said.append(verified.tokens[0] * 2 + verified.tokens[1])
    assert_follows(said, np.array([0.6 * 0.2, 0.6 * 0.8, 0.4 * 0.7, 0.4 * 0.3]))


@pytest.mark.parametrize("token", [0, 1, 2, 3])
def test_an_ngram_draft_is_accepted_with_the_probability_of_its_token(token: int) -> None:
    p = [0.55, 0.3, 0.15, 0.0]
    noise = Noise(4)
    results = [verify(Draft([token]), lambda i: over(p), noise, at, "rejection") for at in range(0, 2 * N, 2)]
    accepted = sum(r.accepted for r in results)
    assert_close(accepted / N, p[token], (p[token] * (1 - p[token])) ** 0.5, N)
    assert_follows((r.tokens[0] for r in results), np.array(p))


@pytest.mark.parametrize(("a", "length"), [(0.7, 4), (0.9, 8), (0.3, 2), (0.7, 1)])
def test_expected_yield_of_a_pass(a: float, length: int) -> None:
    """(1 - a^(g+1)) / (1 - a) tokens a pass; 2.77 for a = 0.7 and g = 4."""
    expected = (1 - a ** (length + 1)) / (1 - a)
    if (a, length) == (0.7, 4):
        assert expected == pytest.approx(2.77, abs=0.01)
    p, q = over([a, 1 - a, 0.0]), over([a, 0.0, 1 - a])  # they overlap by a
    noise = Noise(5)
    step = length + 1
    n = 2000
    drafts_with_q = (draw_draft([q] * length, noise, at * step) for at in range(n))
    drafts_without = (Draft([0] * length) for _ in range(n))
    for drafts in (drafts_with_q, drafts_without):
        yields = [
            len(verify(draft, lambda i: p, noise, at * step, "rejection").tokens)
            for at, draft in enumerate(drafts)
        ]
        assert_close(float(np.mean(yields)), expected, float(np.std(yields)), n)


def test_reproducible_mode_accepts_often_when_drafted_with_the_same_noise() -> None:
    """At least (1 - d) / (1 + d), d the total variation distance (Daliri et al. 2024)."""
    p, q = over([0.5, 0.3, 0.2]), over([0.4, 0.4, 0.2])
    noise = Noise(6)
    accepted = sum(
        verify(draw_draft([q], noise, at, TARGET), lambda i: p, noise, at, "reproducible").accepted
        for at in range(0, 2 * N, 2)
    )
    assert accepted / N > (1 - 0.1) / (1 + 0.1) - 0.02


POSITION = st.integers(0, 10**6)
TOKENS = st.lists(st.integers(0, 5), max_size=6)


def step_by_step(length: int, noise: Noise, position: int) -> list[int]:
    """What would be said without drafts; p depends on the place alone."""
    return [noise.draw(at_place(position + i), position + i) for i in range(length)]


def at_place(place: int) -> Distribution:
    weights = np.random.default_rng(place).random(5)
    return over(list(weights / weights.sum()))


@given(seed=st.integers(0, 2**64), position=POSITION, drafted=TOKENS, neural=st.booleans())
def test_reproducible_text_is_the_same_whatever_is_drafted(
    seed: int, position: int, drafted: list[int], neural: bool
) -> None:
    noise = Noise(seed)
    qs = [at_place(position + i + 999) for i in range(len(drafted))]
    draft = draw_draft(qs, noise, position, TARGET) if neural else Draft(drafted)
    verified = verify(draft, lambda i: at_place(position + i), noise, position, "reproducible")
    assert verified.tokens == step_by_step(len(verified.tokens), noise, position)
    assert verified.tokens[: verified.accepted] == draft.tokens[: verified.accepted]
    assert len(verified.tokens) == verified.accepted + 1


@given(seed=st.integers(0, 2**64), position=POSITION, drafted=TOKENS)
def test_an_ngram_draft_never_changes_a_seeds_text(seed: int, position: int, drafted: list[int]) -> None:
    noise = Noise(seed)
    verified = verify(Draft(drafted), lambda i: at_place(position + i), noise, position, "rejection")
    assert verified.tokens == step_by_step(len(verified.tokens), noise, position)


@pytest.mark.parametrize("mode", ["rejection", "reproducible"])
@pytest.mark.parametrize("with_q", [False, True])
@pytest.mark.parametrize(
    ("drafted", "tokens", "accepted"),
    [
        ([], [3], 0),
        ([3, 1, 4], [3, 1, 4, 1], 3),
        ([3, 1, 5], [3, 1, 4], 2),
        ([9, 1, 4], [3], 0),
    ],
)
def test_greedy_keeps_what_equals_the_argmax(
    mode: Mode, with_q: bool, drafted: list[int], tokens: list[int], accepted: int
) -> None:
    best = [3, 1, 4, 1]
    q = [Distribution.certain(t) for t in drafted] if with_q else None
    verified = verify(Draft(drafted, q), lambda i: Distribution.certain(best[i]), Noise(0), 100, mode)
    assert verified == Verified(tokens, accepted)


@pytest.mark.parametrize("mode", ["rejection", "reproducible"])
def test_target_is_asked_in_order_and_no_further_than_the_draft_holds(mode: Mode) -> None:
    asked: list[int] = []

    def target(i: int) -> Distribution:
        asked.append(i)
        return Distribution.certain([5, 6, 7, 8][i])

    draft = Draft([5, 9, 9], [Distribution.certain(t) for t in (5, 9, 9)])
    assert verify(draft, target, Noise(0), 0, mode).tokens == [5, 6]
    assert asked == [0, 1]
