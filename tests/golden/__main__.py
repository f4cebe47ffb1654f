"""``python -m tests.golden``: the golden prompts in full, with a table; fails at the first difference."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from native.quantize import WeightType
from tests.golden.matrix import FAR, LENGTHS, LONGEST, Covered, check_lengths, check_model
from tests.golden.models import OWN, WEIGHTS
from tests.golden.prompts import Prompt, load_prompts
from tests.golden.rounding import Allowed, check_default_mode
from tests.golden.runs import ALONE, EAGLE3, NGRAMS, Difference, Mode, Runs
from tests.golden.sampled import check_seeds

T = TypeVar("T")
Told = Callable[[int, int, Covered, str], None]  # done, of how many, what was compared, what was last

FOLDER = Path(__file__).parents[2] / "build" / "golden"
TOKENS, SAMPLED_TOKENS = 100, 700
SEEDS = 20
TEMPERATURES = (0.8, 1.2)
MODELS: tuple[WeightType, ...] = ("Q4_1", "Q8_0", "F16")
SAMPLED_MODELS: tuple[WeightType, ...] = ("Q4_1", "F16")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ["SLIPSTREAM_HOME"] = str(options.folder / "home")  # nothing of this is the person's
    # Those with the same passage follow each other, so that it is read once.
    prompts = sorted(load_prompts()[: options.prompts], key=lambda prompt: prompt.passages)
    everything = not (options.exact or options.default or options.sampled)
    began = time.monotonic()

    def told(done: int, of: int, covered: Covered, what: str) -> None:
        seconds = time.monotonic() - began
        print(
            f"{seconds:7.0f} s  {covered.model} {done}/{of}  {covered.tokens} tokens compared, "
            f"{runs.computed} said  {what}",
            file=sys.stderr,
            flush=True,
        )

    tables: list[str] = []
    faults: list[str] = []
    try:
        with Runs(options.folder, options.results, options.threads) as runs:
            if options.exact or everything:
                for title, found, drafters, longest in _exact(options, runs, prompts, told):
                    tables.append(_table(title, "prompts", found))
                    if options.prompts is None or options.links:
                        faults += _gaps(found, drafters, longest)
            if options.sampled or everything:
                tables += _sampled(options, runs, told)
            if options.default or (everything and not options.links):
                allowed = check_default_mode(
                    runs,
                    OWN,
                    prompts,
                    options.tokens or TOKENS,
                    lambda c, prompt: told(c.count, len(prompts), c, prompt.name),
                )
                tables.append(_allowed(allowed))
    except Difference as difference:
        faults.append(str(difference))
    print("\n\n".join([*tables, *faults]))
    return 1 if faults else 0


def _exact(
    options: argparse.Namespace, runs: Runs, prompts: Sequence[Prompt], told: Told
) -> Iterator[tuple[str, list[Covered], Sequence[str], int]]:
    """Title of a table, what it is about, and the drafters and drafts that it should have covered."""

    def show(covered: Covered, prompt: Prompt) -> None:
        told(covered.count, len(prompts), covered, prompt.name)

    models: Sequence[WeightType] = options.models or MODELS
    tokens = options.tokens or TOKENS
    modes: Sequence[Mode] = options.links or (EAGLE3,)
    mixed: list[Covered] = []
    alone: dict[str, list[Covered]] = {mode.name: [] for mode in modes}
    for model in models:
        if not options.links:
            mixed.append(check_model(runs, model, prompts, tokens, show))
        for mode in modes:
            covered = check_lengths(runs, model, mode, prompts, tokens, show, in_turn=not options.links)
            alone[mode.name].append(covered)
    if mixed:
        yield "exact mode, greedy", mixed, (*NGRAMS, "draft"), LONGEST
    for name, found in alone.items():
        yield f"exact mode, greedy, {name} alone", found, (name,), LENGTHS[-1]


def _sampled(options: argparse.Namespace, runs: Runs, told: Told) -> Iterator[str]:
    """A table for each temperature and way of drafting."""
    for temperature in options.temperatures or TEMPERATURES:
        for alone in options.links or (None, EAGLE3):
            found = [
                check_seeds(
                    runs,
                    model,
                    temperature,
                    range(options.seeds),
                    options.tokens or SAMPLED_TOKENS,
                    lambda c, seed: told(c.count, options.seeds, c, f"seed {seed}"),
                    alone,
                )
                for model in options.models or SAMPLED_MODELS
            ]
            how = f", {alone.name} alone" if alone is not None else ""
            yield _table(f"exact mode, temperature {temperature}{how}", "seeds", found)


def _table(title: str, unit: str, found: Sequence[Covered]) -> str:
    lines = [
        f"{title}: no difference",
        f"{'model':8}{unit:>8}{f'past {FAR}':>10}{'runs':>7}{'tokens':>9}{'accepted':>10}"
        "  longest drafts allowed; lengths verified",
    ]
    lines += [
        f"{c.model:8}{c.count:>8}{c.far:>10}{c.runs:>7}{c.tokens:>9}{c.accepted:>10}  "
        f"{ranges(c.max_drafts)}; {ranges(c.lengths)}"
        for c in found
    ]
    for covered in found:
        drafted = ", ".join(f"{name} {count}" for name, count in sorted(covered.drafted.items()))
        lines.append(f"{covered.model} drafted: {drafted}")
    return "\n".join(lines)


def _allowed(allowed: Allowed) -> str:
    covered = allowed.covered
    lines = [
        f"default mode, greedy, {covered.model}: {len(allowed.flips)} of {covered.runs} answers differ "
        f"({covered.tokens} tokens), all of them where rounding may turn a token"
    ]
    lines += [
        f"  {flip.run.prompt}, {flip.run.mode} up to {flip.run.max_draft}: place {flip.place}, "
        f"gap {flip.gap:.3f}, ways differ by {flip.apart:.3f}"
        for flip in allowed.flips
    ]
    return "\n".join(lines)


def _gaps(found: Sequence[Covered], drafters: Sequence[str], longest: int) -> list[str]:
    """What all prompts together should have covered: a series that drafts nothing would pass as well."""
    gaps: list[str] = []
    for covered in found:
        if silent := [name for name in drafters if not covered.drafted.get(name)]:
            gaps.append(f"{covered.model}: nothing was drafted by {', '.join(silent)}")
        if missing := set(range(1, longest + 1)) - covered.max_drafts:
            gaps.append(f"{covered.model}: no drafts of up to {ranges(missing)} were allowed")
        if 2 * covered.far < covered.count:
            gaps.append(f"{covered.model}: only {covered.far} prompts went past {FAR} tokens")
    return gaps


def ranges(numbers: set[int]) -> str:
    """Such as "1-5, 7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in parts) or "none"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--exact", action="store_true", help="exact mode, greedy: only this")
    parser.add_argument("--sampled", action="store_true", help="exact and reproducible mode: only this")
    parser.add_argument(
        "--default", action="store_true", help="default mode, its differences judged: only this"
    )
    parser.add_argument("--models", type=_list(_weights), help=f"some of {', '.join(WEIGHTS)}")
    parser.add_argument(
        "--links",
        type=_list(_alone),
        help=f"each of these alone, greedily with drafts of all lengths to {LENGTHS[-1]}: some of "
        + ", ".join(ALONE),
    )
    parser.add_argument("--prompts", type=int, help="the first so many (default: all 50)")
    parser.add_argument(
        "--tokens", type=int, help=f"of an answer (default: {TOKENS}, sampled {SAMPLED_TOKENS})"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"sampled: how many (default: {SEEDS})")
    parser.add_argument("--temperatures", type=_list(float), help="sampled: default 0.8,1.2")
    # One thread would hide what exact mode is for: a lone row is split among several.
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--results", type=Path, help="JSON lines: answers in it are not asked for again")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="for the models it makes (default: build/golden)"
    )
    return parser


def _list(item: Callable[[str], T]) -> Callable[[str], list[T]]:
    return lambda text: [item(part) for part in text.split(",")]


def _alone(text: str) -> Mode:
    if text not in ALONE:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(ALONE)}")
    return ALONE[text]


def _weights(text: str) -> WeightType:
    for weights in WEIGHTS:
        if weights == text:
            return weights
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(WEIGHTS)}")


if __name__ == "__main__":
    raise SystemExit(main())
