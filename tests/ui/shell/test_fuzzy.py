"""What the palette finds for a few letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.shell.entries import MOST, Entry, Kind, search
from ui.shell.fuzzy import match


def marked(query: str, name: str) -> str | None:
    found = match(query, name)
    if found is None:
        return None
    return "".join(f"[{letter}]" if at in found.positions else letter for at, letter in enumerate(name))


@pytest.mark.parametrize(
    ("query", "name", "shown"),
    [
        ("new", "New chat", "[N][e][w] chat"),
        ("chat", "New chat", "New [c][h][a][t]"),
        ("hat", "New chat", "New c[h][a][t]"),
        ("nc", "New chat", "[N]ew [c]hat"),
        ("chat new", "New chat", "[N][e][w] [c][h][a][t]"),
        ("munch", "Ausflug nach München", "Ausflug nach [M][ü][n][c][h]en"),
        ("ΑΘΗ", "Αθήνα", "[Α][θ][ή]να"),
        ("旅行", "東京旅行", "東京[旅][行]"),
        ("stgs", "Settings", "[S]e[t]tin[g][s]"),
    ],
)
def test_letters_that_fit(query: str, name: str, shown: str) -> None:
    assert marked(query, name) == shown


@pytest.mark.parametrize(
    ("query", "name"), [("x", "New chat"), ("wn", "New"), ("cz", "a c" + "b" * 50 + "z")]
)
def test_letters_that_do_not_fit(query: str, name: str) -> None:
    assert match(query, name) is None


def test_the_better_fit_comes_first() -> None:
    names = ["A renewal of vows", "Never eat wholemeal", "Renew the lease", "New chat", "The new plan"]
    ranked = sorted(
        (name for name in names if match("new", name)), key=lambda name: -(match("new", name) or 0).score
    )
    assert ranked[:2] == ["New chat", "The new plan"]
    assert ranked[-1] == "Never eat wholemeal"


@given(st.text(max_size=30), st.text(max_size=60))
def test_any_text_may_be_typed_and_named(query: str, name: str) -> None:
    found = match(query, name)
    if found is not None:
        assert all(0 <= at < len(name) for at in found.positions)
        assert list(found.positions) == sorted(set(found.positions))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_a_name_is_found_by_itself(name: str) -> None:
    assert match(name, name) is not None


def entry(kind: Kind, title: str) -> Entry:
    return Entry(kind, title, lambda: None)


def test_without_a_query_there_is_a_short_choice_of_everything() -> None:
    entries = [entry("chat", f"Chat {n}") for n in range(1000)] + [
        entry("action", "Quit"),
        entry("page", "Speed"),
    ]
    found = [one.entry.title for one in search("  ", entries)]
    assert found == ["Speed", "Quit", "Chat 0", "Chat 1", "Chat 2", "Chat 3", "Chat 4"]


def test_among_equal_fits_pages_come_before_chats_and_the_list_has_an_end() -> None:
    entries = [entry("chat", "Speed") for _ in range(1000)] + [entry("page", "Speed")]
    found = search("speed", entries)
    assert found[0].entry.kind == "page"
    assert len(found) == MOST
