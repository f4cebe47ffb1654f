"""The speed history as rows of a table: model pairs, their kinds of text, and who drafted. Knows no Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from app.speed_history import HALF_LIFE, Figures, KindHistory, Spans
from app.text_kind import KIND_NAMES
from ui.bidi import visible
from ui.speed import numbers

Span = Literal["lately", "ever"]
SPAN_HELP: dict[Span, str] = {
    "lately": f"Recent answers count most: each counts half after {HALF_LIFE} more of its kind.",
    "ever": "All answers count alike.",
}


_COMPARED = "The bars compare the rows of one model."


class HistoryRow(NamedTuple):
    """``target`` is the key of the model that it is about. ``drafter`` names a link's row. ``answers`` and
    ``drafted`` are counted over all answers, ``figures`` over the chosen span."""

    name: str
    target: str
    figures: Figures
    answers: float
    drafted: float
    drafter: str | None = None
    children: tuple[HistoryRow, ...] = ()


class Column(NamedTuple):
    """``bar`` is the value that is drawn besides, None for no bar; ``whole`` is where the bar ends, None
    for the largest of the model's rows."""

    title: str
    help: str
    text: Callable[[HistoryRow], str]
    bar: Callable[[HistoryRow], float | None] | None = None
    whole: float | None = None


COLUMNS = (
    Column(
        "Answers",
        "How many answers were counted; of a drafter, those in which it drafted.",
        lambda row: _count(row.answers),
    ),
    Column("Drafted", "How many tokens were drafted in all of them.", lambda row: _count(row.drafted)),
    Column(
        "Accepted",
        numbers.ACCEPTANCE_HELP,
        lambda row: numbers.percent(row.figures.acceptance_rate),
        lambda row: row.figures.acceptance_rate,
        1.0,
    ),
    Column("Per pass", numbers.PER_PASS_HELP, lambda row: numbers.per_pass(row.figures.tokens_per_pass)),
    Column(
        "Tokens/s",
        f"{numbers.SPEED_HELP} {_COMPARED}",
        lambda row: numbers.speed(row.figures.tokens_per_second),
        lambda row: row.figures.tokens_per_second,
    ),
    Column(
        "Speed-up",
        f"{numbers.SPEEDUP_HELP} {_COMPARED}",
        lambda row: numbers.times(row.figures.speedup),
        lambda row: row.figures.speedup,
    ),
)


def history_rows(histories: Sequence[KindHistory], span: Span) -> list[HistoryRow]:
    """A row for each model pair with rows for its kinds of text, and below those who drafted."""
    pairs: dict[tuple[str, str | None], list[KindHistory]] = {}
    for history in histories:
        drafter = history.drafter.key if history.drafter else None
        pairs.setdefault((history.target.key, drafter), []).append(history)
    return [_pair_row(kinds, span) for kinds in pairs.values()]


def largest(pair: HistoryRow, column: Column) -> float:
    """Where this pair's bars of a column end."""
    if column.whole is not None or column.bar is None:
        return column.whole or 0.0
    rows = [pair, *pair.children, *(link for kind in pair.children for link in kind.children)]
    return max((value for row in rows if (value := column.bar(row)) is not None), default=0.0)


def _pair_row(kinds: Sequence[KindHistory], span: Span) -> HistoryRow:
    target, drafter = kinds[0].target, kinds[0].drafter
    rows = tuple(_kind_row(kind, span) for kind in kinds)
    name = visible(target.name) + (f" with {visible(drafter.name)}" if drafter else "")
    figures = sum((row.figures for row in rows), start=Figures())
    return HistoryRow(
        name,
        target.key,
        figures,
        sum(row.answers for row in rows),
        sum(row.drafted for row in rows),
        children=rows,
    )


def _kind_row(kind: KindHistory, span: Span) -> HistoryRow:
    links = tuple(
        _row(name, kind, spans, span, drafter=name)
        for name, spans in kind.links.items()
        if spans.ever.drafted > 0
    )
    name = KIND_NAMES[kind.kind]
    return _row(name[:1].upper() + name[1:], kind, kind.whole, span, children=links)


def _row(
    name: str,
    kind: KindHistory,
    spans: Spans,
    span: Span,
    drafter: str | None = None,
    children: tuple[HistoryRow, ...] = (),
) -> HistoryRow:
    figures = spans.lately if span == "lately" else spans.ever
    ever = spans.ever
    return HistoryRow(visible(name), kind.target.key, figures, ever.answers, ever.drafted, drafter, children)


def _count(number: float) -> str:
    return numbers.count(round(number))
