"""Rejection sampling on the starter's own logits, with a toy drafter that is right part of the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from drafting.distribution import DRAFTER, Distribution, Noise
from drafting.drafter import Draft
from drafting.verification import verify
from native.context import Context, ContextOptions, Logits
from native.model import Model
from native.sampler import SamplerChain, SamplerOptions
from tests.drafting.chi_square import assert_follows

N = 30_000
PROMPT = "The most beautiful thing about the sea is"


@pytest.fixture(scope="module")
def row(starter: Path) -> Iterator[Logits]:
    """The logits behind PROMPT."""
    with Model(starter) as model, Context(model, ContextOptions(n_ctx=64, n_outputs=1)) as context:
        tokens = model.tokenize(PROMPT, parse_special=False)
        context.decode([(0, token, i, i == len(tokens) - 1) for i, token in enumerate(tokens)])
        yield context.logits()[0].copy()


def toy_drafter(p: Distribution, seed: int) -> Distribution:
    """q: p with its odds stirred, without some of its tokens, with some that p never says."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate([p.ids[::2], np.setdiff1d(np.arange(20, dtype=np.int32), p.ids)])
    odds = np.concatenate(
        [
            p.probs[::2] * np.exp(rng.normal(0.0, 0.7, len(p.probs[::2]))),
            np.full(len(ids) - len(p.ids[::2]), 0.004),
        ]
    )
    return Distribution(ids.astype(np.int32), odds / odds.sum())


def overlap(p: Distribution, q: Distribution) -> float:
    return sum(
        min(float(probability), q.probability(int(token)))
        for token, probability in zip(p.ids, p.probs, strict=True)
    )


@pytest.mark.parametrize("temperature", [0.8, 1.0])
@pytest.mark.parametrize("penalised", [False, True])
def test_what_is_said_follows_p_and_is_accepted_as_often_as_it_should(
    row: Logits, temperature: float, penalised: bool
) -> None:
    """Chi-square over the first token; the acceptance rate within 2 % (relative) of sum(min(p, q))."""
    options = SamplerOptions(
        temperature=temperature, top_k=60, top_p=0.98, repeat_penalty=1.3 if penalised else 1.0
    )
    with SamplerChain(len(row), options) as chain:
        chain.begin([int(token) for token in np.argsort(-row)[:6:2]])
        p = Distribution(*chain.distribution(row))
    q = toy_drafter(p, seed=3)
    expected = overlap(p, q)
    assert 0.2 < expected < 0.8  # partly
    noise = Noise(11)
    accepted, said = 0, []
    for position in range(0, 2 * N, 2):
        draft = Draft([noise.draw(q, position, DRAFTER)], [q])
        verified = verify(draft, lambda i: p, noise, position, "rejection")
        said.append(verified.tokens[0])
        accepted += verified.accepted
    assert accepted / N == pytest.approx(expected, rel=0.02)
    bins, odds = binned(p)
    assert len(odds) > 10
    assert_follows((bins[token] for token in said), odds)
    with pytest.raises((AssertionError, KeyError)):  # the draws could have told q from p
        assert_follows((bins[noise.draw(q, 3 * i, DRAFTER)] for i in range(N)), odds)


def binned(p: Distribution) -> tuple[dict[int, int], np.ndarray]:
    """A bin for each token that is drawn often enough, the last one for all that are not as well."""
    order = np.argsort(-p.probs)
    last = int((p.probs * N >= 10).sum()) - 1
    bins = {int(token): min(place, last) for place, token in enumerate(p.ids[order])}
    return bins, np.append(p.probs[order][:last], p.probs[order][last:].sum())
