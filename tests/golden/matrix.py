"""Exact mode, greedy: every prompt on every model in every mode says what it says without drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from native.quantize import WeightType
from tests.golden.prompts import Prompt
from tests.golden.runs import AUTO, CHAIN, DRAFT_MODEL, LINKS, OFF, Answer, Mode, Run, Runs, compare

LONGEST = 47  # with its first row, a draft of 47 fills the largest pass of the group
# In every mode each length has its turn after 47 prompts, since 47 is prime.
ROTATED: tuple[Mode, ...] = (*LINKS, CHAIN, AUTO)
EVERY = 5  # each fifth prompt: the draft model too, and plain decoding once more on a warm KV cache
FAR = 600  # tokens of context
LENGTHS = range(1, 17)  # of drafts, for a link by itself


@dataclass
class Covered:
    """What was compared with plain decoding on one model."""

    model: WeightType
    count: int = 0  # of prompts, or of seeds
    far: int = 0  # of them past FAR tokens of context
    runs: int = 0
    tokens: int = 0
    max_drafts: set[int] = field(default_factory=set)
    lengths: set[int] = field(default_factory=set)  # of drafts that were verified
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: int = 0

    def add(self, run: Run, answer: Answer) -> None:
        self.runs += 1
        self.tokens += len(answer.ids)
        self.lengths |= {drafted for drafted, _ in answer.passes if drafted}
        for name, count in answer.drafted.items():
            self.drafted[name] = self.drafted.get(name, 0) + count
        self.accepted += answer.accepted
        if run.mode != OFF.name:
            self.max_drafts.add(run.max_draft)

    def end(self, plain: Answer) -> None:
        """All that one prompt or seed needs was compared."""
        self.count += 1
        self.far += plain.prompt_tokens + len(plain.ids) > FAR


def check_model(
    runs: Runs,
    model: WeightType,
    prompts: Sequence[Prompt],
    max_tokens: int,
    told: Callable[[Covered, Prompt], None] = lambda covered, prompt: None,
    first: int = 0,
) -> Covered:
    """Raises Difference at the first token that is not the same. ``told`` is called after each prompt;
    ``first`` says where the rotation of draft lengths begins, in prompts."""
    covered = Covered(model)
    for number, prompt in enumerate(prompts, first):

        def run(mode: Mode, max_draft: int, repeat: int = 0, prompt: Prompt = prompt) -> tuple[Run, Answer]:
            asked = Run(
                model=model,
                prompt=prompt.name,
                mode=mode.name,
                max_draft=max_draft,
                max_tokens=max_tokens,
                repeat=repeat,
            )
            return asked, runs.answer(asked, mode, prompt.text)

        _, plain = run(OFF, 1)
        others: list[tuple[Mode, int, int]] = [
            (mode, 1 + (len(ROTATED) * number + i) % LONGEST, 0) for i, mode in enumerate(ROTATED)
        ]
        if number % EVERY == 0:
            others += [(DRAFT_MODEL, 1 + number % 8, 0), (OFF, 1, 1)]
        for mode, max_draft, repeat in others:
            asked, answer = run(mode, max_draft, repeat)
            compare(asked, answer, plain)
            covered.add(asked, answer)
        covered.end(plain)
        told(covered, prompt)
    return covered


def check_lengths(
    runs: Runs,
    model: WeightType,
    mode: Mode,
    prompts: Sequence[Prompt],
    max_tokens: int,
    told: Callable[[Covered, Prompt], None] = lambda covered, prompt: None,
    lengths: Sequence[int] = LENGTHS,
    in_turn: bool = False,
) -> Covered:
    """One mode, on every prompt with drafts of up to each of ``lengths``; ``in_turn``, up to one of them.
    Raises Difference at the first token that is not the same."""
    covered = Covered(model)
    for number, prompt in enumerate(prompts):

        def run(mode: Mode, max_draft: int, prompt: Prompt = prompt) -> tuple[Run, Answer]:
            asked = Run(
                model=model, prompt=prompt.name, mode=mode.name, max_draft=max_draft, max_tokens=max_tokens
            )
            return asked, runs.answer(asked, mode, prompt.text)

        _, plain = run(OFF, 1)
        for max_draft in (lengths[number % len(lengths)],) if in_turn else lengths:
            asked, answer = run(mode, max_draft)
            compare(asked, answer, plain)
            covered.add(asked, answer)
        covered.end(plain)
        told(covered, prompt)
    return covered
