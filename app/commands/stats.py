"""``slipstream stats``: how fast models were lately, by kind of text, and what each drafter brought."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence

import msgspec

from app.cli import UsageError
from app.commands.terminal import note
from app.speed_history import HALF_LIFE, Figures, KindHistory, Model, Spans, SpeedHistory, SpeedHistoryError
from app.text_kind import KIND_NAMES

_NOTHING = "-"
_EMPTY = (
    "Nothing is counted yet. Figures appear here after the first answer in the window, "
    'or after: slipstream chat "your message"'
)


def run_stats(options: argparse.Namespace) -> int:
    """Print or drop what was counted. Raises UsageError for a model that has no figures."""
    history = SpeedHistory(note)
    try:
        rows = history.read()
        if options.model is not None:
            rows = _of_model(rows, options.model)
        if options.forget:
            targets = None if options.model is None else {row.target.key for row in rows}
            return _forgotten(history.forget(targets), options.json)
    except SpeedHistoryError as error:
        note(f"the speed history cannot be used: {error}")
        return 1
    if options.json:
        print(json.dumps({"half_life_answers": HALF_LIFE, "rows": [_report(row) for row in rows]}))
    else:
        print(_table(rows) if rows else _EMPTY)
    return 0


def _of_model(rows: Sequence[KindHistory], name: str) -> list[KindHistory]:
    chosen = [row for row in rows if row.target.name.casefold() == name.casefold()]
    if not chosen:
        known = ", ".join(dict.fromkeys(row.target.name for row in rows))
        raise UsageError(f"nothing is counted for {name!r}" + (f" (there is: {known})" if known else ""))
    return chosen


def _forgotten(answers: int, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"forgotten_answers": answers}))
    else:
        print(f"Dropped the figures of {answers:,} answers." if answers else _EMPTY)
    return 0


def _table(rows: Sequence[KindHistory]) -> str:
    """Of each pair a block, of each kind of text a line, and one for each link that drafted."""
    lines: list[str] = []
    pair: tuple[Model, Model | None] | None = None
    for row in rows:
        if pair != (row.target, row.drafter):
            pair = (row.target, row.drafter)
            drafter = f" with {row.drafter.name}" if row.drafter else ""
            lines += [""] * bool(lines) + [
                f"{row.target.name}{drafter}",
                f"  {'':18}{'answers':>8}{'tokens/s':>10}{'speed-up':>10}{'accepted':>10}{'tokens/pass':>13}",
            ]
        lines.append(_line(KIND_NAMES[row.kind], row.whole))
        lines += [_line(f"  {name}", spans) for name, spans in row.links.items()]
    return "\n".join([*lines, "", f"Lately: an answer counts half after {HALF_LIFE} more of its kind."])


def _line(name: str, spans: Spans) -> str:
    now = spans.lately
    return (
        f"  {name:18}{spans.ever.answers:8,.0f}{_number(now.tokens_per_second, '.1f'):>10}"
        f"{_number(now.speedup, '.2f', 'x'):>10}{_number(now.acceptance_rate, '.0%'):>10}"
        f"{_number(now.tokens_per_pass, '.2f'):>13}"
    )


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _NOTHING if value is None else f"{value:{form}}{unit}"


def _report(row: KindHistory) -> dict[str, object]:
    return {
        "target": msgspec.structs.asdict(row.target),
        "drafter": msgspec.structs.asdict(row.drafter) if row.drafter else None,
        "kind": row.kind,
        **_spans(row.whole),
        "links": {name: _spans(spans) for name, spans in row.links.items()},
    }


def _spans(spans: Spans) -> dict[str, object]:
    used = datetime.datetime.fromtimestamp(spans.last_used, datetime.UTC)
    return {
        "last_used": used.isoformat(timespec="seconds"),
        "ever": _figures(spans.ever),
        "lately": _figures(spans.lately),
    }


def _figures(figures: Figures) -> dict[str, object]:
    return {
        **msgspec.structs.asdict(figures),
        "tokens_per_second": figures.tokens_per_second,
        "speedup": figures.speedup,
        "acceptance_rate": figures.acceptance_rate,
        "tokens_per_pass": figures.tokens_per_pass,
    }
