"""How sharply a drafter draws: as its target does, or more sharply where more of that is accepted."""

from __future__ import annotations

import numpy as np
import pytest

from drafting.distribution import DRAFTER, Distribution, Noise
from drafting.drafter import Draft
from drafting.sharpness import Sharpness
from drafting.verification import verify
from tests.drafting.chi_square import assert_follows

N_VOCAB = 12


def softmax(logits: np.ndarray) -> Distribution:
    weights = np.exp(logits - logits.max())
    return Distribution(np.arange(len(logits), dtype=np.int32), weights / weights.sum())


def overlap(p: Distribution, q: Distribution) -> float:
    """The probability that a token drawn from q is accepted."""
    return float(np.minimum(p.at(q.ids), q.probs).sum())


def places(error: float, target: float, count: int = 400) -> list[tuple[Distribution, Distribution]]:
    """p and q where the drafter sees the target's logits with an error, and the target is so many times
    as sure of them."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(count):
        logits = rng.normal(0.0, 2.0, N_VOCAB)
        seen = logits + rng.normal(0.0, error, N_VOCAB)
        found.append((softmax(target * logits), softmax(seen)))
    return found


def learned(pairs: list[tuple[Distribution, Distribution]]) -> Sharpness:
    sharpness = Sharpness()
    for p, q in pairs:
        sharpness.learn(q, p)
    return sharpness


def test_a_drafter_that_is_the_target_draws_as_it_does() -> None:
    pairs = places(error=0.0, target=1.0)
    sharpness = learned(pairs)
    assert sharpness.exponent == 1.0
    assert all(sharpness.sharpened(q) is q for _, q in pairs)


def test_before_anything_is_known_it_draws_as_the_target_does() -> None:
    (_, q), *_ = places(error=1.0, target=3.0)
    assert Sharpness().sharpened(q) is q


@pytest.mark.parametrize("target", [1.0, 2.0, 5.0, 50.0])
def test_more_is_accepted_than_of_q_itself_or_of_its_favourite(target: float) -> None:
    """The favourite alone is what a drafter drafts whose draft is compared and not weighed."""
    pairs = places(error=1.5, target=target)
    sharpness = learned(pairs)
    more = places(error=1.5, target=target, count=800)[400:]
    rates = {
        "learned": np.mean([overlap(p, sharpness.sharpened(q)) for p, q in more]),
        "as it is": np.mean([overlap(p, q) for p, q in more]),
        "favourite": np.mean([p.probability(int(q.ids[q.probs.argmax()])) for p, q in more]),
    }
    assert rates["learned"] >= max(rates.values()) - 0.005, rates
    if target >= 5.0:
        assert sharpness.exponent > 1.0 and rates["learned"] > rates["as it is"] + 0.03, rates


def test_it_follows_a_text_that_becomes_another() -> None:
    sharp, vague = places(error=1.0, target=8.0), places(error=0.3, target=1.0)
    sharpness = learned(sharp * 3)
    assert sharpness.exponent >= 4.0
    for p, q in vague * 2:
        sharpness.learn(q, p)
    assert sharpness.exponent < 2.0


def test_a_sharpened_q_has_the_same_tokens_in_the_same_order_of_likelihood() -> None:
    sharpness = learned(places(error=1.0, target=3.0))
    q = Distribution(np.array([7, 3, 5], dtype=np.int32), np.array([0.2, 0.5, 0.3]))
    drawn = sharpness.sharpened(q)
    assert drawn.ids.tolist() == [7, 3, 5] and drawn.probs.sum() == pytest.approx(1.0)
    assert drawn.probability(3) > 0.5 and 0.2 > drawn.probability(7) > 0.0


def test_distributions_over_very_many_tokens_are_drawn_from_as_they_are() -> None:
    probs = np.full(1025, 1 / 2050)
    probs[0] += 0.5
    q = Distribution(np.arange(1025, dtype=np.int32), probs)
    assert learned([(Distribution.certain(0), q)] * 5).exponent == 1.0
    q = Distribution(q.ids[:1000], probs[:1000] / probs[:1000].sum())
    assert learned([(Distribution.certain(0), q)] * 5).exponent > 1.0


def test_what_is_said_follows_p_while_it_learns() -> None:
    """Each draw's q depends on all that was said before it, and on nothing that comes."""
    pairs = places(error=1.5, target=2.0, count=4)
    noise, sharpness = Noise(3), Sharpness()
    said: dict[int, list[int]] = {i: [] for i in range(len(pairs))}
    for position in range(20_000):
        i = position % len(pairs)
        p, made = pairs[i]
        q = sharpness.sharpened(made)
        token = noise.draw(q, 2 * position, DRAFTER)
        verified = verify(Draft([token], [q]), lambda _, p=p: p, noise, 2 * position, "rejection")
        said[i].append(verified.tokens[0])
        sharpness.learn(made, p)
    assert sharpness.exponent > 1.0
    for i, (p, _) in enumerate(pairs):
        common = p.probs > 0.002
        cells = np.where(common, np.cumsum(common), 0)  # the rare ones together
        odds = np.bincount(cells, weights=p.probs)
        assert_follows([int(cells[token]) for token in said[i]], odds)
