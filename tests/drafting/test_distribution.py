"""Distributions and counter-based noise: uniform, independent, repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from drafting import distribution
from drafting.distribution import ACCEPTANCE, DRAFTER, TARGET, Distribution, Noise
from tests.drafting.chi_square import assert_close, assert_follows

P = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
DRAWN_WITH_42 = [2, 0, 0, 1, 0, 3, 0, 0, 0, 1, 4, 0]
UNIFORM_0_0_TARGET = 0.28176129772258507


def over(probs: np.ndarray, ids: list[int] | None = None) -> Distribution:
    return Distribution(np.array(ids or range(len(probs)), dtype=np.int32), probs)


@pytest.mark.parametrize("stream", [TARGET, DRAFTER, ACCEPTANCE])
@pytest.mark.parametrize("seed", [0, 1, 2**53])
def test_uniform_is_uniform(seed: int, stream: int) -> None:
    noise = Noise(seed)
    cells = [int(noise.uniform(position, stream) * 20) for position in range(4000)]
    assert_follows(cells, np.full(20, 0.05))


def test_numbers_of_neighbouring_tokens_are_uniform() -> None:
    u = Noise(3)._uniform(17, np.arange(20_000, dtype=np.int32), TARGET)
    assert_follows((u * 50).astype(int), np.full(50, 0.02))


def cells_of_pairs(a: list[float], b: list[float]) -> list[int]:
    return [int(x * 5) * 5 + int(y * 5) for x, y in zip(a, b, strict=True)]


def test_streams_are_independent() -> None:
    noise = Noise(1)
    streams = [[noise.uniform(i, s) for i in range(3000)] for s in (TARGET, DRAFTER, ACCEPTANCE)]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert_follows(cells_of_pairs(streams[a], streams[b]), np.full(25, 0.04))


def test_positions_and_seeds_are_independent() -> None:
    here = [Noise(7).uniform(i, TARGET) for i in range(3000)]
    next_position = [Noise(7).uniform(i + 1, TARGET) for i in range(3000)]
    next_seed = [Noise(8).uniform(i, TARGET) for i in range(3000)]
    assert_follows(cells_of_pairs(here, next_position), np.full(25, 0.04))
    assert_follows(cells_of_pairs(here, next_seed), np.full(25, 0.04))


def test_same_inputs_give_the_same_numbers() -> None:
    a, b = Noise(42), Noise(42)
    b.uniform(5, TARGET)  # earlier draws leave no trace
    b.draw(over(P), 5)
    for position in range(50):
        assert a.uniform(position, ACCEPTANCE) == b.uniform(position, ACCEPTANCE)
        assert a.draw(over(P), position) == b.draw(over(P), position)


def test_numbers_do_not_change_between_versions() -> None:
    """A seed stored with a message must give the same text after an update."""
    assert [Noise(42).draw(over(P), i) for i in range(12)] == DRAWN_WITH_42
    assert Noise(0).uniform(0, TARGET) == UNIFORM_0_0_TARGET


def test_a_token_has_the_same_noise_whatever_else_can_come() -> None:
    """Truncation that drops a token that would not have been drawn changes nothing."""
    noise = Noise(9)
    for position in range(200):
        drawn = noise.draw(over(P), position)
        keep = [i for i in range(len(P)) if i == drawn or i % 2]
        fewer = over(P[keep] / P[keep].sum(), keep)
        assert noise.draw(fewer, position) == drawn
        order = keep[::-1]
        assert noise.draw(over(P[order] / P[order].sum(), order), position) == drawn


def test_draws_follow_the_distribution() -> None:
    noise = Noise(5)
    assert_follows((noise.draw(over(P), i) for i in range(6000)), P)


def test_a_token_without_probability_is_never_drawn() -> None:
    p = np.array([0.0, 0.7, 0.0, 0.3])
    noise = Noise(5)
    assert_follows((noise.draw(over(p), i) for i in range(2000)), p)


def test_one_noise_makes_two_distributions_agree_often() -> None:
    """Daliri et al. 2024: at least (1 - d) / (1 + d) of the time, d the total variation distance."""
    q = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    distance = 0.5 * np.abs(P - q).sum()
    noise = Noise(2)
    n = 3000
    same = sum(noise.draw(over(P), i) == noise.draw(over(q), i) for i in range(n)) / n
    assert same > (1 - distance) / (1 + distance) - 0.03
    apart = sum(noise.draw(over(P), i) == noise.draw(over(q), i, DRAFTER) for i in range(n)) / n
    assert_close(apart, float((P * q).sum()), 0.5, n)


def test_uniform_lies_strictly_between_0_and_1(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits, low, high in ((0, 0.0, 1e-15), (2**64 - 1, 1 - 1e-15, 1.0)):
        monkeypatch.setattr(distribution, "_mix", lambda x, bits=bits: x * np.uint64(0) + np.uint64(bits))
        assert low < Noise(0).uniform(0, TARGET) < high


def test_seeds_count_modulo_64_bits() -> None:
    assert Noise(2**64 + 5).uniform(3, TARGET) == Noise(5).uniform(3, TARGET)
    assert Noise(2**63).uniform(3, TARGET) != Noise(0).uniform(3, TARGET)


def test_certain_is_drawn_at_any_noise() -> None:
    assert {Noise(s).draw(Distribution.certain(7), s) for s in range(20)} == {7}


def test_minus_is_the_normalised_positive_difference() -> None:
    p = over(np.array([0.2, 0.5, 0.3]), [4, 1, 9])
    q = over(np.array([0.1, 0.6, 0.3]), [9, 4, 77])  # another order, and an id that p lacks
    rest = p.minus(q)
    assert rest.ids.tolist() == [4, 1, 9]
    assert rest.probs == pytest.approx([0.0, 0.5 / 0.7, 0.2 / 0.7])


def test_minus_itself_leaves_what_there_was() -> None:
    p = over(P)
    assert p.minus(over(P.copy())).probs.tolist() == P.tolist()


def test_probability_of_an_unknown_id_is_0() -> None:
    assert over(P).probability(99) == 0.0
    assert over(P, [3, 5, 7, 9, 11]).probability(5) == 0.25
