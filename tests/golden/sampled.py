"""Exact and reproducible: a seed gives one text, whoever drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from native.quantize import WeightType
from tests.golden.matrix import LENGTHS, LONGEST, Covered
from tests.golden.prompts import long_answer
from tests.golden.runs import AUTO, CHAIN, LINKS, OFF, Answer, Mode, Run, Runs, compare


def check_seeds(
    runs: Runs,
    model: WeightType,
    temperature: float,
    seeds: Sequence[int],
    max_tokens: int,
    told: Callable[[Covered, int], None] = lambda covered, seed: None,
    alone: Mode | None = None,
) -> Covered:
    """Each seed without drafts, with the chain, automatically, and with one link, in rotation; or with
    no mode but the one that drafts ``alone``.

    Raises Difference. ``told`` is called after each seed.
    """
    covered = Covered(model)
    text = long_answer()
    for number, seed in enumerate(seeds):

        def run(mode: Mode, max_draft: int, seed: int = seed) -> tuple[Run, Answer]:
            asked = Run(
                model=model,
                prompt="long answer",
                mode=mode.name,
                max_draft=max_draft,
                max_tokens=max_tokens,
                temperature=temperature,
                seed=seed,
            )
            return asked, runs.answer(asked, mode, text)

        _, plain = run(OFF, 1)
        modes = (CHAIN, AUTO, LINKS[number % len(LINKS)]) if alone is None else (alone,)
        longest = LONGEST if alone is None else LENGTHS[-1]
        for i, mode in enumerate(modes):
            asked, answer = run(mode, 1 + (16 * i + 3 * number) % longest)
            compare(asked, answer, plain)
            covered.add(asked, answer)
        covered.end(plain)
        told(covered, seed)
    return covered
