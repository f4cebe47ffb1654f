"""How numbers are written in the window, and the one sentence that explains each of them."""

from __future__ import annotations

from drafting.statistics import Statistics

NOTHING = "—"

TOKENS_HELP = "How many tokens the answer has; a token is a word or a part of one."
FIRST_HELP = "How long it took from sending the message to the first token."
SPEED_HELP = "How many tokens per second were written, reading the prompt apart."
ACCEPTANCE_HELP = "The share of drafted tokens that the model accepted when it checked them."
PER_PASS_HELP = "How many tokens each pass of the model gave; 1 without drafting."
DRAFTER_HELP = "Which drafter's guess the model checked last."


def count(number: int) -> str:
    return f"{number:,}"


def speed(rate: float | None) -> str:
    if rate is None:
        return NOTHING
    return f"{rate:.1f}" if rate < 10 else f"{rate:,.0f}"


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.0f} %"


def per_pass(number: float | None) -> str:
    return NOTHING if number is None else f"{number:.1f}"


def seconds(duration: float) -> str:
    return f"{duration:.2f} s" if duration < 10 else f"{duration:.0f} s"


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
    if rate is None:
        why = f": {max(undrafted, key=undrafted.__getitem__)}" if (undrafted := stats.undrafted) else ""
        parts[-1] = (f"{NOTHING} accepted", f"Nothing was drafted for this answer{why}.")
    return parts
