"""What llama.cpp's samplers should compute, written down as plainly as can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from native.sampler import Logits, SamplerOptions


def shaped(logits: Logits, said: Sequence[int], options: SamplerOptions) -> npt.NDArray[np.float64]:
    """Bias, then the penalties for what was said within the window."""
    result = logits.astype(np.float64)
    for token, bias in options.logit_bias.items():
        result[token] += bias
    window = list(said) if options.penalty_last_n < 0 else list(said)[-options.penalty_last_n :]
    for token, count in Counter(window if options.penalty_last_n else []).items():
        divided = result[token] / options.repeat_penalty
        result[token] = divided if result[token] > 0 else result[token] * options.repeat_penalty
        result[token] -= count * options.frequency_penalty + options.presence_penalty
    return result


def distribution(logits: Logits, said: Sequence[int], options: SamplerOptions) -> dict[int, float]:
    """The whole chain: shaped, top-k, top-p, min-p, temperature."""
    scores = shaped(logits, said, options)
    order = np.argsort(-scores)[: options.top_k or len(scores)]
    weights = np.exp(scores[order] - scores[order[0]])
    if options.top_p < 1:
        order = order[: int(np.searchsorted(np.cumsum(weights / weights.sum()), options.top_p)) + 1]
    order = order[scores[order] >= scores[order[0]] + (math.log(options.min_p) if options.min_p else -1e9)]
    weights = np.exp((scores[order] - scores[order[0]]) / options.temperature)
    return dict(zip(order.tolist(), weights / weights.sum(), strict=True))
