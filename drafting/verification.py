"""Verification: which drafted tokens the target would have said, and what it says next.

It sees tokens, the target's distributions and, for neural drafts, q. It never sees how a draft was
made or how the target computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from drafting.distribution import ACCEPTANCE, TARGET, Distribution, Noise
from drafting.drafter import Draft

Mode = Literal["rejection", "reproducible"]
"""How drafts with a q are judged. At temperature 0 both are greedy: p has one token."""


class Verified(NamedTuple):
    """``tokens`` are the ``accepted`` drafted ones and one corrected or bonus token."""

    tokens: list[int]
    accepted: int


def verify(
    draft: Draft,
    target: Callable[[int], Distribution | int],
    noise: Noise,
    position: int,
    mode: Mode,
) -> Verified:
    """Judge a draft that starts at absolute ``position``, so that the output follows p exactly.

    ``target(i)`` gives p after the first i drafted tokens, a bare token where that is certain
    (greedy); it is asked in order and only as far as the draft holds.

    Where a draft has no q (it was certain of its token), or in reproducible mode, the target's own
    token is drawn and compared. For a certain draft that is rejection sampling: x is kept with
    probability p(x), and a token that differs is distributed as p without x. In reproducible mode
    the drafter drew with the same noise, so that the two often agree, and the text depends on
    target, prompt and seed alone (Daliri et al. 2024).

    Otherwise x is accepted with probability min(1, p(x)/q(x)), and the first rejected token is
    replaced by one from norm(max(0, p - q)) (Leviathan et al. 2023, Chen et al. 2023).
    """
    if not draft.tokens:  # most passes: as little work as can be
        p = target(0)
        return Verified([p if isinstance(p, int) else noise.draw(p, position, TARGET)], 0)
    tokens: list[int] = []
    for i, drafted in enumerate(draft.tokens):
        p, here = target(i), position + i
        if isinstance(p, int):
            token = p
        elif draft.q is None or mode == "reproducible":
            token = noise.draw(p, here, TARGET)
        else:
            q = draft.q[i]
            if noise.uniform(here, ACCEPTANCE) * q.probability(drafted) < p.probability(drafted):
                token = drafted
            else:
                token = noise.draw(p.minus(q), here, TARGET)
                # Rounding could bring the rejected token back; it was rejected all the same.
                return Verified([*tokens, token], i)
        tokens.append(token)
        if token != drafted:
            return Verified(tokens, i)
    p = target(len(draft))
    bonus = p if isinstance(p, int) else noise.draw(p, position + len(draft), TARGET)
    return Verified([*tokens, bonus], len(draft))
