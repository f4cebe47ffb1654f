"""llama.cpp's samplers against the formulas: bias, penalties, their window, and the order of it all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from native.errors import NativeError
from native.sampler import Logits, SamplerChain, SamplerOptions
from tests.native.reference import distribution, shaped

N = 64
PENALISED = SamplerOptions(
    repeat_penalty=1.4, frequency_penalty=0.3, presence_penalty=-0.2, penalty_last_n=12
)


def random_logits(seed: int, scale: float = 3.0) -> Logits:
    return (np.random.default_rng(seed).standard_normal(N) * scale).astype(np.float32)


def random_tokens(seed: int, length: int) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, 20, length)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("last_n", [-1, 0, 1, 12, 64])
def test_penalties_and_bias_follow_the_formula_with_the_history_of_each_place(seed: int, last_n: int) -> None:
    options = SamplerOptions(
        repeat_penalty=1.4,
        frequency_penalty=0.3,
        presence_penalty=-0.2,
        penalty_last_n=last_n,
        logit_bias={3: 1.5, 5: -4.0, 40: 100.0},
    )
    prompt, answer = random_tokens(seed, 30), random_tokens(seed + 99, 30)
    with SamplerChain(N, options, n_ctx=100) as chain:
        chain.begin(prompt)
        for said in range(len(answer) + 1):
            logits = random_logits(seed * 100 + said)
            expected = shaped(logits, [*prompt, *answer[:said]], options)
            np.testing.assert_allclose(chain.shaped(logits), expected, rtol=1e-5, atol=1e-5)
            assert chain.best(logits) == int(expected.argmax())
            if said < len(answer):
                chain.accept(answer[said])


@pytest.mark.parametrize("seed", range(30))
def test_the_whole_chain_in_llama_cpps_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = SamplerOptions(
        temperature=float(rng.uniform(0.3, 2.0)),
        top_k=int(rng.integers(0, 20)),
        top_p=float(rng.choice([1.0, 0.9, 0.5])),
        min_p=float(rng.choice([0.0, 0.02, 0.2])),
        repeat_penalty=float(rng.uniform(0.8, 2.0)),
        frequency_penalty=float(rng.uniform(-1, 1)),
        presence_penalty=float(rng.uniform(-1, 1)),
        penalty_last_n=10,
        logit_bias={int(rng.integers(N)): -math.inf, int(rng.integers(N)): 3.0},
    )
    logits, said = random_logits(seed), random_tokens(seed, 25)
    with SamplerChain(N, options) as chain:
        chain.begin(said)
        ids, probs = chain.distribution(logits)
    expected = distribution(logits, said, options)
    assert {i for i, p in zip(ids.tolist(), probs, strict=True) if p > 0} == {
        t for t, p in expected.items() if p
    }
    for token, probability in zip(ids.tolist(), probs, strict=True):
        assert probability == pytest.approx(expected.get(token, 0.0), rel=1e-3, abs=1e-9)


def test_truncation_comes_after_the_penalties() -> None:
    """Top-k counts the favourites that are left by then, not those of the bare logits."""
    logits = np.zeros(N, dtype=np.float32)
    logits[7], logits[8] = 5.0, 4.0
    with SamplerChain(N, SamplerOptions(temperature=1.0, top_k=1, repeat_penalty=2.0)) as chain:
        chain.begin([7])
        assert chain.distribution(logits)[0].tolist() == [8]


def test_the_bias_comes_before_the_penalties() -> None:
    logits = np.full(N, 2.0, dtype=np.float32)
    with SamplerChain(N, SamplerOptions(repeat_penalty=2.0, logit_bias={7: -3.0})) as chain:
        chain.begin([7])
        assert chain.shaped(logits)[7] == pytest.approx((2.0 - 3.0) * 2.0)


def test_a_trial_leaves_no_trace() -> None:
    logits = random_logits(1)
    with SamplerChain(N, PENALISED) as chain:
        chain.begin(random_tokens(1, 30))
        before = chain.shaped(logits)
        with chain.trial():
            for token in random_tokens(2, 30):
                chain.accept(token)
            tried = chain.shaped(logits)
        np.testing.assert_array_equal(chain.shaped(logits), before)
        assert not np.array_equal(tried, before)
        with pytest.raises(ZeroDivisionError), chain.trial():
            chain.accept(5)
            raise ZeroDivisionError
        np.testing.assert_array_equal(chain.shaped(logits), before)


def test_an_answer_begins_with_the_prompt_alone() -> None:
    logits = random_logits(4)
    with SamplerChain(N, PENALISED) as chain:
        chain.begin(random_tokens(1, 50))
        chain.accept(60)
        chain.begin([3, 4])
        np.testing.assert_allclose(chain.shaped(logits), shaped(logits, [3, 4], PENALISED), rtol=1e-5)


def test_ids_beyond_the_vocabulary_do_no_harm() -> None:
    """A draft model may have fewer tokens than its target."""
    logits = random_logits(5)
    options = SamplerOptions(repeat_penalty=1.5, logit_bias={5000: 3.0})
    with SamplerChain(N, options) as chain:
        chain.begin([5000, 2])
        chain.accept(100_000)
        np.testing.assert_allclose(
            chain.shaped(logits), shaped(logits, [2], SamplerOptions(repeat_penalty=1.5))
        )


def test_nothing_is_copied_where_nothing_is_changed() -> None:
    logits = random_logits(6)
    for options in (SamplerOptions(), SamplerOptions(temperature=1.0, top_k=3, penalty_last_n=5)):
        with SamplerChain(N, options) as chain:
            assert chain.shaped(logits) is logits
            assert not chain.remembers


def test_what_is_plain_greedy_decoding() -> None:
    assert SamplerOptions().plain_greedy
    assert SamplerOptions(top_k=40, penalty_last_n=7).plain_greedy
    assert SamplerOptions(repeat_penalty=1.3, penalty_last_n=0).plain_greedy
    for options in (SamplerOptions(temperature=0.1), SamplerOptions(logit_bias={1: 1.0}), PENALISED):
        assert not options.plain_greedy


def test_a_distribution_needs_a_temperature_and_an_open_chain() -> None:
    with SamplerChain(N, SamplerOptions()) as chain, pytest.raises(NativeError):
        chain.distribution(random_logits(0))
    chain = SamplerChain(N, SamplerOptions(temperature=1.0))
    chain.close()
    chain.close()
    with pytest.raises(NativeError):
        chain.distribution(random_logits(0))
