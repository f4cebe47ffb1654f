"""A next-token distribution, and noise that depends on nothing but seed, position and token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Distribution:
    """Tokens that can come next: ``ids`` (int) and ``probs`` (float, summing to 1), equal length."""

    ids: npt.NDArray[np.int32]
    probs: npt.NDArray[np.float64]

    @classmethod
    def certain(cls, token: int) -> Self:
        """All mass on one token: what greedy decoding means."""
        return cls(np.array([token], dtype=np.int32), np.ones(1))

    def probability(self, token: int) -> float:
        return float(self.probs[self.ids == token].sum())

    def at(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """The probabilities of ``ids``, 0 for tokens that cannot come next."""
        order = np.argsort(self.ids)
        places = order[np.searchsorted(self.ids, ids, sorter=order).clip(max=len(order) - 1)]
        return np.where(self.ids[places] == ids, self.probs[places], 0.0)

    def minus(self, other: Distribution) -> Distribution:
        """norm(max(0, self - other)): where a rejected draft's token is drawn from instead.

        Returns ``self`` where nothing is left, which only rounding can bring about.
        """
        rest = np.maximum(0.0, self.probs - other.at(self.ids))
        total = rest.sum()
        return Distribution(self.ids, rest / total) if total > 0 else self


# Streams keep draws of one position apart that must not know of each other.
TARGET, DRAFTER, ACCEPTANCE = range(3)

_U64 = np.uint64
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea, Flood 2014): each input bit stirs each output bit."""
    x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    return x ^ (x >> _U64(31))


class Noise:
    """Counter-based randomness: the same seed, position, token and stream give the same number.

    So a draw does not depend on how many drafts were thrown away before it, and two distributions
    drawn from with the same noise tend to the same token (Gumbel coupling, Daliri et al. 2024).
    """

    def __init__(self, seed: int) -> None:
        """``seed``: any integer from 0; its low 64 bits count."""
        self._seed = seed & _MASK

    def _uniform(self, position: int, tokens: npt.NDArray[np.int32], stream: int) -> npt.NDArray[np.float64]:
        key = np.array([(self._seed + _GOLDEN * (4 * position + stream + 1)) & _MASK], dtype=_U64)
        bits = _mix(_mix(key) + tokens.astype(_U64) * _U64(_GOLDEN))
        return ((bits >> _U64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def uniform(self, position: int, stream: int) -> float:
        """One number in (0, 1)."""
        return float(self._uniform(position, np.zeros(1, dtype=np.int32), stream)[0])

    def draw(self, distribution: Distribution, position: int, stream: int = TARGET) -> int:
        """A token of ``distribution`` by the Gumbel-max trick: argmax(log p - log(-log u))."""
        if len(distribution.ids) == 1:
            return int(distribution.ids[0])
        u = self._uniform(position, distribution.ids, stream)
        with np.errstate(divide="ignore"):  # log 0 is -inf: never the maximum, which is right
            score = np.log(distribution.probs) - np.log(-np.log(u))
        return int(distribution.ids[score.argmax()])
