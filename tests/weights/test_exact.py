"""Exact mode on quantised weights: the same ids whoever drafts, on a few of the golden prompts.

``python -m tests.golden`` (make golden) runs all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from native.quantize import WeightType
from tests.golden.matrix import check_lengths, check_model
from tests.golden.prompts import load_prompts
from tests.golden.rounding import Judge, check_default_mode
from tests.golden.runs import EAGLE3, OFF, Difference, Run, Runs, compare
from tests.golden.sampled import check_seeds

pytestmark = pytest.mark.all_cores

THREADS = 2  # with one, a lone row is computed like any other


PROMPTS = {prompt.name: prompt for prompt in load_prompts()}


@pytest.fixture(scope="module")
def runs(models: Path) -> Iterator[Runs]:
    """One for all tests here: loading a model and trying its pass sizes takes longer than an answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(models / "home"))
        with Runs(models, None, THREADS) as runs:
            yield runs


def test_the_golden_prompts_are_as_many_and_as_mixed_as_they_should_be() -> None:
    prompts = load_prompts()
    assert len(prompts) == len({prompt.name for prompt in prompts}) == 50
    kinds = Counter(prompt.kind for prompt in prompts)
    assert len(kinds) == 6 and min(kinds.values()) >= 6
    assert sum(bool(prompt.passages) for prompt in prompts) >= 25
    assert [bool(prompt.passages) for prompt in prompts[:2]] == [False, True], "a fair sample"


def test_a_wrong_token_is_not_taken_for_rounding(runs: Runs, starter: Path) -> None:
    prompt = PROMPTS["wochentage"]
    run = Run(model="Q4_1", prompt=prompt.name, mode=OFF.name, max_draft=1, max_tokens=12, exact=False)
    plain = runs.answer(run, OFF, prompt.text)
    wrong = msgspec.structs.replace(plain, ids=(*plain.ids[:8], plain.ids[8] + 1, *plain.ids[9:]))
    with pytest.raises(Difference, match="token 8"):
        compare(run, wrong, plain)
    judge = Judge(starter, THREADS)
    try:
        with pytest.raises(Difference, match="token 8"):
            judge.judge(run, prompt.text, plain, wrong, 8)
    finally:
        judge.close()


@pytest.mark.timeout(900)
def test_without_exact_mode_only_rounding_turns_a_token(runs: Runs) -> None:
    allowed = check_default_mode(runs, "Q4_1", [PROMPTS["werkstatt-zusammenfassung"]], max_tokens=40)
    assert allowed.covered.runs == 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("weights", "first", "temperature"), [("Q4_1", 0, 0.8), ("Q8_0", 5, 1.2), ("F16", 10, 0.8)]
)
def test_the_starter_says_the_same_with_any_drafter(
    runs: Runs, weights: WeightType, first: int, temperature: float
) -> None:
    """On a prompt so long that a lone row would be computed in another way; greedy, then for a seed."""
    covered = check_model(runs, weights, [PROMPTS["ledger-repeat"]], max_tokens=32, first=first)
    assert covered.far == 1
    assert covered.accepted > 50
    assert {"cache", "map-k", "suffix", "draft"} <= covered.drafted.keys()
    sampled = check_seeds(runs, weights, temperature, range(1), max_tokens=40)
    assert sum(sampled.drafted.values()) > 0


@pytest.mark.timeout(900)
def test_the_starter_says_the_same_with_its_own_head(runs: Runs) -> None:
    prompts = [PROMPTS["ledger-repeat"]]
    covered = check_lengths(runs, "Q4_1", EAGLE3, prompts, max_tokens=32, lengths=(1, 5, 16))
    assert covered.far == 1 and covered.accepted > 5
    assert {1, 5, 16} <= covered.lengths
    sampled = check_seeds(runs, "Q4_1", 0.8, range(1), max_tokens=40, alone=EAGLE3)
    assert sampled.drafted.keys() == {"eagle3"}
