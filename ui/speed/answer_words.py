"""What the Speed panel draws, in words: for hovering, and for those who do not see it. Knows no Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.protocol import DRAFTERS
from drafting.statistics import Statistics
from ui.bidi import visible
from ui.speed import numbers
from ui.speed.answer_series import Point

NOTHING_DRAFTED = "Nothing was drafted for this answer."


def pass_words(point: Point) -> str:
    """One point of the curves in a sentence."""
    which = f"Pass {numbers.count(point.first)}"
    if point.last > point.first:
        which = f"Passes {numbers.count(point.first)} to {numbers.count(point.last)}"
    said = f"{numbers.count(point.tokens)} {_tokens(point.tokens)} said"
    if not point.drafted or point.drafter is None:
        return f"{which}: {said}, nothing drafted."
    drafted = f"{numbers.count(point.drafted)} drafted by {visible(point.drafter)}"
    return f"{which}: {drafted}, {numbers.count(point.accepted)} accepted, {said}."


def course_words(
    points: Sequence[Point], value: Callable[[Point], float | None], shown: Callable[[float | None], str]
) -> str:
    """A curve as its lowest, highest and last value."""
    values = [number for point in points if (number := value(point)) is not None]
    if not values:
        return "Nothing to show yet."
    passes = points[-1].last
    return (
        f"Between {shown(min(values))} and {shown(max(values))}, at last {shown(values[-1])}, "
        f"in {numbers.count(passes)} {'pass' if passes == 1 else 'passes'}."
    )


def drafter_words(name: str, stats: Statistics) -> str:
    counts = stats.by_drafter[name]
    share = numbers.percent(counts.accepted / counts.drafted if counts.drafted else None)
    drafts = f"{numbers.count(counts.proposals)} {'draft' if counts.proposals == 1 else 'drafts'}"
    return (
        f"{visible(name)}: {numbers.count(counts.drafted)} {_tokens(counts.drafted)} in {drafts}, "
        f"{numbers.count(counts.accepted)} accepted ({share})."
    )


def drafters_words(stats: Statistics) -> str:
    return " ".join(drafter_words(name, stats) for name in who_drafted(stats)) or NOTHING_DRAFTED


def position_words(position: int, drafted: int, accepted: int) -> str:
    """``position`` counts from 1."""
    return (
        f"Token {position} of a draft: {numbers.count(accepted)} of {numbers.count(drafted)} accepted "
        f"({numbers.percent(accepted / drafted if drafted else None)})."
    )


def positions_words(stats: Statistics) -> str:
    places = enumerate(by_position(stats), 1)
    return " ".join(position_words(at, *counts) for at, counts in places) or NOTHING_DRAFTED


def silence_words(stats: Statistics) -> list[str]:
    """Why passes had no draft, the commonest reason first."""
    reasons = sorted(stats.undrafted.items(), key=lambda reason: -reason[1])
    return [
        f"{numbers.count(passes)} {'pass' if passes == 1 else 'passes'} without a draft: {visible(reason)}"
        for reason, passes in reasons
    ]


def who_drafted(stats: Statistics) -> list[str]:
    """In the order of the chain, which does not change while an answer is written."""
    drafted = [name for name, counts in stats.by_drafter.items() if counts.drafted]
    return [name for name in DRAFTERS if name in drafted] + [n for n in drafted if n not in DRAFTERS]


def by_position(stats: Statistics) -> list[tuple[int, int]]:
    """Drafted and accepted tokens at each place of a draft, whoever made it."""
    places = max((len(counts.drafted_at) for counts in stats.by_drafter.values()), default=0)
    sums = [[0, 0] for _ in range(places)]
    for counts in stats.by_drafter.values():
        for kind, at in enumerate((counts.drafted_at, counts.accepted_at)):
            for place, number in enumerate(at):
                sums[place][kind] += number
    return [(drafted, accepted) for drafted, accepted in sums]


def _tokens(number: int) -> str:
    return "token" if number == 1 else "tokens"
