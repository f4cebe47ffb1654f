"""Earlier answers from plain lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drafting.past_answers import PastAnswers


def held(answers: Sequence[Sequence[int]]) -> PastAnswers:
    return PastAnswers([np.array(answer, np.int32) for answer in answers])
