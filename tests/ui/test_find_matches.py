"""Which matches there are in messages, and that what is built shows the same ones."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chats.message import Message
from app.chats.search_text import places_of
from app.protocol import Piece
from ui.chat.answer_body import AnswerBody
from ui.chat.find_matches import FoundMatches, Match, ShownText, pattern_of
from ui.theme import Theme

TEXT = """# A **find**ing

Find it in `find` and fi**nd**, in [a find](https://find.example) and 😀 find; hard\\
break. *Find*&#33; &amp; $\\alpha + find$.

> quoted find
> goes on

- find one
  - [x] find two
    ```python
    find = "find"  # FIND
    ```
3. find three

| find | b |
|------|---|
| x    | find `find` |

```
def find():
    return "unfinding"
```

Last find
"""


def never() -> bool:
    return False


def shown_text(text: str, step: int = 10_000, *, plain: bool = False) -> str:
    shown = ShownText(plain=plain)
    for end in range(step, len(text) + step, step):
        assert shown.read(text[:end], end >= len(text), never)
    return shown.text


def count(text: str, needle: str) -> int:
    pattern = pattern_of(needle)
    assert pattern is not None
    return len(pattern.findall(text))


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    "needle", ["find", "FINDING", "a find", "e", " ", "b", "&", "😀 f", "α", "hard b", "[x]"]
)
def test_what_is_counted_is_what_is_shown(needle: str, step: int, theme: Theme, qtbot: QtBot) -> None:
    body = AnswerBody(theme, theme._application.font())
    qtbot.addWidget(body)
    body.mark(pattern_of(needle))
    for start in range(0, len(TEXT), step):
        body.write([Piece(TEXT[start : start + step])])
    body.finish()
    qtbot.waitUntil(lambda: not body.building)
    if not needle.strip():
        assert pattern_of(needle) is None and body.match_count() == 0
        return
    assert body.match_count() == count(shown_text(TEXT, step), needle)
    marked = [
        one.cursor.selectedText().lower() for part in body.parts() for one in part.editor.extraSelections()
    ]
    assert len(marked) == body.match_count()
    assert {one.replace("\u2028", " ") for one in marked} <= {needle.lower()}


def test_a_table_that_goes_on_repeats_its_head_but_not_what_is_found(theme: Theme, qtbot: QtBot) -> None:
    text = "| needle | n |\n|---|---|\n" + "".join(f"| needle {n} | x |\n" for n in range(150))
    body = AnswerBody(theme, theme._application.font())
    qtbot.addWidget(body)
    body.mark(pattern_of("needle"))
    for line in text.splitlines(keepends=True):
        body.write([Piece(line)])
    body.finish()
    qtbot.waitUntil(lambda: not body.building)
    assert len(body.parts()) > 1
    assert body.match_count() == 151 == count(shown_text(text), "needle")


def test_blanks_are_found_however_wide_and_nothing_has_no_matches() -> None:
    assert count("a  b, a\u00a0b, a\u2028b, a\nb", "a b") == 3
    assert pattern_of("  ") is None
    assert count("1.5 and 175", "1.5") == 1


def test_what_was_typed_is_found_as_it_stands() -> None:
    assert count(shown_text("**a**\n```\nb\n```", plain=True), "**a**") == 1
    assert count(shown_text("**a**\n```\nb\n```", plain=True), "```") == 0


def messages() -> list[Message]:
    return [
        Message(role="user", id=1, pieces=[Piece("needle")]),
        Message(
            role="assistant", id=2, pieces=[Piece("a needle", None, True), Piece("hay **need**le needle")]
        ),
        Message(role="user", id=3, pieces=[Piece("hay")]),
        Message(role="assistant", id=4, pieces=[Piece("needle")]),
    ]


def found_in(said: list[Message], needle: str = "needle") -> FoundMatches:
    found = FoundMatches()
    found.look_for(pattern_of(needle))
    assert found.count(said, never) and found.complete
    return found


def test_matches_are_numbered_from_the_top_with_thoughts_before_what_is_said() -> None:
    found = found_in(messages())
    order = [
        Match(1, False, 0),
        Match(2, True, 0),
        Match(2, False, 0),
        Match(2, False, 1),
        Match(4, False, 0),
    ]
    assert found.total == 5
    assert [found.at(number) for number in range(5)] == order
    assert [found.number_of(match) for match in order] == list(range(5))
    assert found.number_of(Match(3, False, 0)) is None
    with pytest.raises(IndexError):
        found.at(5)


def test_the_nearest_match_is_the_next_one_and_else_the_last() -> None:
    found = found_in(messages())
    assert found.from_here(2, 1) == 3
    assert found.from_here(3, 0) == 4
    assert found.from_here(4, 1) == 4
    assert found_in(messages(), "absent").from_here(1, 0) is None


def test_counting_goes_on_where_it_was_late() -> None:
    found = FoundMatches()
    found.look_for(pattern_of("needle"))
    said = messages()
    turns = 0
    while not found.count(said, lambda: True):
        turns += 1
        assert turns < 20
        if found.total:
            assert found.at(found.total - 1) == Match(4, False, 0)  # the newest come first
    assert turns and found.total == 5


def test_a_growing_answer_is_read_on_and_one_that_goes_on_is_read_again() -> None:
    answer = Message(role="assistant", id=1, state="writing", pieces=[Piece("a need")])
    found = found_in([answer])
    assert found.total == 0
    answer.append(Piece("le, ```needle"))
    found.count([answer], never)
    assert found.total == 2
    answer.append(Piece("```"))
    answer.state = "done"
    found.count([answer], never)
    assert found.total == 2
    answer.state = "writing"
    answer.append(Piece(" needle"))
    found.count([answer], never)
    assert found.total == 3
    answer.pieces = [Piece("hay")]
    found.forget(1)
    assert not found.complete
    found.count([answer], never)
    assert found.total == 0


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("need", "A needle, unneeded Need", ["needle", "Need"]),
        ('"two words"', "two  words, two wordsmiths", ["two  words", "two words"]),
        ("c++ 100%", "in C++ 100% and c", ["C++", "100%"]),
        ("東京", "在東京都", ["東京"]),
    ],
)
def test_what_a_search_over_all_chats_found(query: str, text: str, marked: list[str]) -> None:
    pattern = places_of(query)
    assert pattern is not None
    assert [match[0] for match in pattern.finditer(text)] == marked


def test_words_of_an_excerpt_are_found_as_they_stand() -> None:
    pattern = places_of("cafe", ["Café"])
    assert pattern is not None and [match[0] for match in pattern.finditer("a café")] == ["café"]
    assert places_of(" ") is None
