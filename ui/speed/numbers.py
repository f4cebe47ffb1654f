"""How numbers are written in the window, and the one sentence that explains each of them."""

from __future__ import annotations

from typing import NamedTuple

from drafting.statistics import Statistics

NOTHING = "—"

TOKENS_HELP = "How many tokens the answer has; a token is a word or a part of one."
FIRST_HELP = "How long it took from sending the message to the first token."
SPEED_HELP = "How many tokens per second were written, reading the prompt apart."
SPEEDUP_HELP = (
    "How many times as fast as without drafting, by what passes of the model alone cost on this machine."
)
SPARK_HELP = "How fast the answer was written from its beginning, left, until now."
ACCEPTANCE_HELP = "The share of drafted tokens that the model accepted when it checked them."
PER_PASS_HELP = "How many tokens each pass of the model gave; 1 without drafting."
DRAFTER_HELP = "Which drafter's guess the model checked last."
SPEED_CURVE_HELP = "How many tokens per second the last few passes wrote, from the answer's beginning on."
ACCEPTANCE_CURVE_HELP = "The share of the last few passes' drafted tokens that the model accepted."
LENGTH_CURVE_HELP = "How many tokens the last few drafts held; a gap where nothing was drafted."
BY_DRAFTER_HELP = "How many tokens each drafter guessed, outlined, and how many were accepted, filled."
BY_POSITION_HELP = "How many of the first, second, third … tokens of a draft the model accepted."


class Figure(NamedTuple):
    value: str
    caption: str
    help: str


def count(number: int) -> str:
    return f"{number:,}"


def speed(rate: float | None) -> str:
    if rate is None:
        return NOTHING
    return f"{rate:.1f}" if rate < 10 else f"{rate:,.0f}"


def tick(number: float) -> str:
    """On an axis: no more digits than it needs."""
    return f"{number:,g}"


def times(speedup: float | None) -> str:
    if speedup is None:
        return NOTHING
    return f"{speedup:.1f}x" if speedup < 10 else f"{speedup:,.0f}x"


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.0f} %"


def per_pass(number: float | None) -> str:
    return NOTHING if number is None else f"{number:.1f}"


def seconds(duration: float) -> str:
    return f"{duration:.2f} s" if duration < 10 else f"{duration:.0f} s"


def figures(stats: Statistics, rate: float | None, speedup: float | None) -> list[Figure]:
    """What the Speed panel says of an answer above its plots."""
    return [
        Figure(speed(rate), "tok/s", SPEED_HELP),
        Figure(times(speedup), "plain speed", SPEEDUP_HELP),
        Figure(percent(stats.acceptance_rate), "accepted", ACCEPTANCE_HELP),
        Figure(per_pass(stats.tokens_per_pass), "per pass", PER_PASS_HELP),
        Figure(count(stats.completion_tokens), "tokens", TOKENS_HELP),
        Figure(seconds(stats.prefill_s), "to the first", FIRST_HELP),
    ]


def footer(stats: Statistics) -> list[tuple[str, str]]:
    """The line below an answer: each number with what it means."""
    rate = stats.acceptance_rate
    tokens = "1 token" if stats.completion_tokens == 1 else f"{count(stats.completion_tokens)} tokens"
    parts = [
        (tokens, TOKENS_HELP),
        (f"first {seconds(stats.prefill_s)}", FIRST_HELP),
        (f"{speed(stats.tokens_per_second)} tok/s", SPEED_HELP),
        (NOTHING if rate is None else f"{percent(rate)} accepted", ACCEPTANCE_HELP),
    ]
    if stats.speedup is not None:
        parts.insert(3, (f"{times(stats.speedup)} plain", SPEEDUP_HELP))
    if rate is None:
        why = f": {max(undrafted, key=undrafted.__getitem__)}" if (undrafted := stats.undrafted) else ""
        parts[-1] = (f"{NOTHING} accepted", f"Nothing was drafted for this answer{why}.")
    return parts
