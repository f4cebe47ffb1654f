"""Where an axis ends: at round numbers, so that it stays while its curve grows."""

from __future__ import annotations

import math

_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


def round_end(most: float, least: float) -> float:
    """The first round number that is neither below ``most`` nor below ``least``, both above 0."""
    wanted = max(most, least)
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in _STEPS if step * power >= wanted * (1 - 1e-9))
