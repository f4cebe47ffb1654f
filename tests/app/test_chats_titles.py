"""Titles and file names out of whatever a person writes (K06)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.titles import MAX_CHARACTERS, characters, file_name, one_line, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Rename rows to records", "Rename rows to records"),
        ("\n\n  # Plan **for** [Lisbon](http://x)\nmore", "Plan for Lisbon"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("- [ ] buy `milk`", "buy milk"),
        ("1. first\n2. second", "first"),
        ("> quoted words", "quoted words"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("5 * 3 = 15", "5 * 3 = 15"),
        ("\n \n\t\n", ""),
        ("", ""),
        ("***", "***"),
        ("a\x00b\x1bc", "a b c"),
        ("'; DROP TABLE chats;--", "'; DROP TABLE chats;--"),
        ("see \u202etxt.exe", "see ⟨U+202E⟩txt.exe"),
    ],
)
def test_the_first_line_that_says_something(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_long_line_is_cut_at_a_word() -> None:
    title = title_of("word " * 40)
    assert title == "word " * 11 + "word…"
    assert len(title) <= MAX_CHARACTERS
    assert title_of("x" * 100) == "x" * 59 + "…"


def test_emoji_are_counted_as_a_person_does() -> None:
    family = "👨‍👩‍👧"
    assert list(characters(f"{family}🇩🇪👍🏽e\u0301")) == [family, "🇩🇪", "👍🏽", "e\u0301"]
    title = title_of(family * 10_000)
    assert list(characters(title)) == [family] * 59 + ["…"]


@given(st.text())
def test_any_text_gives_one_short_line(text: str) -> None:
    for title in (title_of(text), one_line(text)):
        assert len(list(characters(title))) <= MAX_CHARACTERS
        assert title == title.strip()
        assert not any(ord(c) < 32 or c in "\x7f\u2028\u2029\u202e" for c in title)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../x", "x.md"),
        ("a/b\\c:d", "a b c d.md"),
        ("CON", "Chat CON.md"),
        ("nul.txt", "Chat nul.txt.md"),
        ("", "Chat.md"),
        ("...", "Chat.md"),
        ("Trip to Lisbon…", "Trip to Lisbon.md"),
    ],
)
def test_file_names_are_taken_by_every_system(title: str, name: str) -> None:
    assert file_name(title, ".md") == name


@given(st.text())
def test_any_title_gives_a_file_name(title: str) -> None:
    name = file_name(title, ".json")
    assert name.endswith(".json") and len(name) > len(".json")
    assert not set(name) & set('<>:"/\\|?*\x00') and name[0] not in ". "
    assert len(name.encode("utf-8")) <= 200
