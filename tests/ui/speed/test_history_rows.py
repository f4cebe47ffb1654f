"""The history as rows: pairs, kinds of text, and who drafted."""

from __future__ import annotations

import pytest

from app.speed_history import Figures, KindHistory, Model, Spans
from app.text_kind import TextKind
from ui.speed.history_rows import COLUMNS, HistoryRow, history_rows, largest

TOY, HEAD = Model("k1", "toy"), Model("k2", "head")


def figures(answers: float, tokens: float, drafted: float, accepted: float) -> Figures:
    return Figures(
        answers=answers,
        passes=tokens / 2,
        tokens=tokens,
        drafted=drafted,
        accepted=accepted,
        verify_s=tokens / 100,
        plain_s=tokens / 50,
    )


def history(kind: TextKind, lately: Figures, ever: Figures, drafter: Model | None = None) -> KindHistory:
    whole = Spans(ever, lately, 0.0)
    links = {"map-k": whole, "mod": Spans(Figures(answers=1), Figures(answers=1), 0.0)}
    return KindHistory(TOY, drafter, kind, whole, links)


def cells(row: HistoryRow) -> list[str]:
    return [column.text(row) for column in COLUMNS]


def test_rows_of_a_pair() -> None:
    code = history("code", figures(1.5, 300, 100, 80), figures(4, 1000, 400, 200), HEAD)
    data = history("data", figures(1, 100, 100, 20), figures(2, 400, 200, 40), HEAD)
    (pair,) = history_rows([code, data], "lately")
    assert (pair.name, pair.target) == ("toy with head", "k1")
    assert [row.name for row in pair.children] == ["Code", "JSON, lists"]
    # Answers and drafted tokens are counted over all, the rest over the span.
    assert cells(pair.children[0]) == ["4", "400", "80 %", "2.0", "100", "2.0x"]
    assert cells(pair) == ["6", "600", "50 %", "2.0", "100", "2.0x"]
    (link,) = pair.children[0].children
    assert (link.name, link.drafter) == ("map-k", "map-k"), "a link that drafted nothing is no row"
    (ever,) = history_rows([code, data], "ever")
    assert cells(ever.children[0])[2] == "50 %"
    assert cells(ever)[2] == "40 %"


def test_pairs_are_kept_apart_and_names_made_safe() -> None:
    one = history("prose", figures(1, 10, 0, 0), figures(1, 10, 0, 0))
    two = history("prose", figures(1, 10, 0, 0), figures(1, 10, 0, 0), Model("k3", "h\u202egnp"))
    first, second = history_rows([one, two], "ever")
    assert first.name == "toy"
    assert "\u202e" not in second.name
    assert cells(first)[2] == "—"


def test_where_bars_end() -> None:
    slow = history("code", figures(1, 100, 10, 5), figures(1, 100, 10, 5))
    (pair,) = history_rows([slow], "ever")
    by_title = {column.title: column for column in COLUMNS}
    assert largest(pair, by_title["Accepted"]) == 1.0
    assert largest(pair, by_title["Tokens/s"]) == pytest.approx(100.0)
    assert largest(pair, by_title["Answers"]) == 0.0
