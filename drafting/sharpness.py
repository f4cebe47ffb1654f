"""How sharply a neural drafter draws, learned from what would have been accepted."""

from __future__ import annotations

import numpy as np

from drafting.distribution import Distribution

_EXPONENTS = np.array([1.0, 1.4, 2.0, 2.8, 4.0, 8.0, 32.0])  # the last leaves little but the favourite
_KEPT = 0.995  # of what was learned, from place to place: about an answer counts
_LARGEST = 1024  # distributions over more tokens take too long to learn from


class Sharpness:
    """The exponent of q's probabilities, 1 until there is a better one.

    A token drawn from q is accepted with probability sum(min(p, q)) (Leviathan et al. 2023). Where a
    drafter is less sure than its target, a q made by the target's own sampler settings spreads over
    tokens that p hardly has; a drafter that knows the target well loses by anything sharper. So each
    exponent is judged by the sum it would have had, at every place where p became known.
    """

    def __init__(self) -> None:
        self._accepted = np.zeros(len(_EXPONENTS))

    @property
    def exponent(self) -> float:
        return float(_EXPONENTS[self._accepted.argmax()])

    def sharpened(self, q: Distribution) -> Distribution:
        """What to draw from instead of ``q``: the same tokens."""
        exponent = self.exponent
        if exponent == 1.0:
            return q
        weights = (q.probs / q.probs.max()) ** exponent
        return Distribution(q.ids, weights / weights.sum())

    def learn(self, q: Distribution, p: Distribution) -> None:
        """At a place where the drafter's settings made ``q`` the target's distribution was ``p``."""
        if max(len(q.ids), len(p.ids)) > _LARGEST:
            return
        weights = (q.probs / q.probs.max()) ** _EXPONENTS[:, np.newaxis]
        weights /= weights.sum(axis=1, keepdims=True)
        self._accepted *= _KEPT
        self._accepted += np.minimum(weights, p.at(q.ids)).sum(axis=1)
