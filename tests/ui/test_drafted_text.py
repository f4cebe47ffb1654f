"""Who guessed which text: the right drafter on every rendered word, shown and hidden without a new layout."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QColor, QImage, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.protocol import DRAFTERS, NEURAL, Piece
from app.settings import Settings
from tests.ui.test_markdown_positions import numbered, words
from ui.chat.answer_body import AnswerBody
from ui.chat.code_view import CodeView
from ui.chat.draft_marks import TINT_ALPHA, DraftMarks, stretches
from ui.chat.drafted_text import DraftedText
from ui.chat.prose_view import ProseView
from ui.speed.drafters import look, looks
from ui.theme import DARK, LIGHT, Choice, Theme

WORD = re.compile(r"w\d{3}x")
ANSWER = """# About w100x and more

w101x **w102x** `w103x` [w104x](https://a.example/w105x) \\*w106x $w_1 + \\alpha$ 👩‍💻w107x.

- [ ] w108x
  - w109x

    ```python
    def w110x(w111x):
        return "👩‍💻 w112x"
    ```

> w113x
> w114x

| w115x | w116x |
|---|--:|
| w117x | a\\|w118x |

שלום w119x
"""


def drafted(*pieces: tuple[int, str | None]) -> DraftedText:
    text = DraftedText()
    for length, name in pieces:
        text.add(length, name)
    return text


def test_runs_name_only_what_was_guessed() -> None:
    text = drafted((3, None), (4, "mod"), (2, "mod"), (1, "cache"), (2, None))
    assert list(text.runs(0, 12)) == [(3, 6, "mod"), (9, 1, "cache")]
    assert list(text.runs(5, 5)) == [(0, 4, "mod"), (4, 1, "cache")]
    assert list(text.runs(0, 3)) == [] == list(text.runs(10, 100)) == list(drafted().runs(0, 5))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([None, "mod", "cache"])), max_size=12), st.data()
)
def test_runs_are_the_names_of_each_character(
    pieces: list[tuple[int, str | None]], data: st.DataObject
) -> None:
    names = [name for length, name in pieces for _ in range(length)]
    at = data.draw(st.integers(0, len(names) + 2))
    length = data.draw(st.integers(0, len(names) + 2))
    found: list[str | None] = [None] * len(names[at : at + length])
    for start, size, name in drafted(*pieces).runs(at, length):
        found[start : start + size] = [name] * size
    assert found == names[at : at + length]


def test_what_lies_beyond_the_first_plane_takes_two_places_in_qt() -> None:
    marks = DraftMarks(drafted((1, "mod"), (2, None), (2, "cache")))
    marks.add("a👩b👩c", 10, 0)
    assert [one.units for one in stretches("a👩b👩c", 10, 0)] == [1, 2, 1, 2, 1]
    assert list(marks.drafters(10, 17)) == [(10, 1, "mod"), (14, 3, "cache")]
    assert marks.source_of(12, 16) == (1, 4)


@pytest.fixture
def body(theme: Theme, qtbot: QtBot) -> AnswerBody:
    body = AnswerBody(theme, QApplication.font())
    qtbot.addWidget(body)
    return body


def stream(body: AnswerBody, pieces: list[Piece], at_once: int) -> None:
    for start in range(0, len(pieces), at_once):
        body.write(pieces[start : start + at_once])
    body.finish()
    while body.building:
        QApplication.processEvents()


def shown(body: AnswerBody) -> Iterator[tuple[str, list[str | None]]]:
    """Each numbered word as it is shown, and who guessed each of its characters."""
    for part in body.parts():
        document: QTextDocument = part._edit.document() if isinstance(part, CodeView) else part.document()
        end = document.characterCount()
        names: list[str | None] = [None] * end
        for position, length, name in part.marks.drafters(0, end):
            names[position : position + length] = [name] * length
        cursor = QTextCursor(document)
        cursor.select(QTextCursor.SelectionType.Document)
        # One Python character for each place in Qt.
        units = cursor.selectedText().encode("utf-16-le")
        text = "".join(chr(int.from_bytes(units[i : i + 2], "little")) for i in range(0, len(units), 2))
        for match in WORD.finditer(text):
            yield match.group(), names[match.start() : match.end()]


def pieces_of(text: str, lengths: list[int], names: list[str | None]) -> list[Piece]:
    pieces = []
    start = 0
    for length, name in zip(itertools.cycle(lengths), itertools.cycle(names), strict=False):
        if start >= len(text):
            return pieces
        pieces.append(Piece(text[start : start + length], name))
        start += length
    return pieces


def check(body: AnswerBody, pieces: list[Piece]) -> int:
    text = "".join(piece.text for piece in pieces)
    by_character = [piece.drafter for piece in pieces for _ in piece.text]
    count = 0
    for word, names in shown(body):
        at = text.index(word)
        assert names == by_character[at : at + len(word)], word
        count += 1
    return count


NAMES = st.lists(st.sampled_from([None, "mod", "cache", "suffix"]), min_size=1, max_size=6)
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words, LENGTHS, NAMES, st.integers(1, 40))
def test_each_word_carries_who_guessed_it(
    theme: Theme, parts: list[str], lengths: list[int], names: list[str | None], at_once: int
) -> None:
    body = AnswerBody(theme, QApplication.font())
    pieces = pieces_of(numbered(parts), lengths, names)
    stream(body, pieces, at_once)
    check(body, pieces)
    body.deleteLater()


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_in_prose_code_and_tables(body: AnswerBody, theme: Theme, at_once: int) -> None:
    pieces = pieces_of(ANSWER, [3, 1, 4, 5], [None, "mod", "suffix", None, "draft"])
    stream(body, pieces, at_once)
    assert check(body, pieces) == 19  # all but the one in a link's address
    theme.choose("dark")
    body.recolour()
    assert check(body, pieces) == 19


def test_while_it_is_being_written(body: AnswerBody) -> None:
    body.show_drafters(True)
    pieces = pieces_of(ANSWER, [4], [None, "mod", "suffix"])
    for number, piece in enumerate(pieces):
        body.write([piece])
        check(body, pieces[: number + 1])
        assert all(part.marks.shown for part in body.parts())


def test_marks_are_off_at_first_and_toggling_lays_nothing_out(body: AnswerBody, qtbot: QtBot) -> None:
    stream(body, pieces_of(ANSWER, [4], ["mod", "suffix", "simple"]), 100)
    body.resize(600, body.fit(600))
    body.show()
    qtbot.waitExposed(body)
    qtbot.waitUntil(lambda: not any(isinstance(p, CodeView) and p._timer.isActive() for p in body.parts()))
    plain = body.grab().toImage()
    documents = [p._edit.document() if isinstance(p, CodeView) else p.document() for p in body.parts()]
    revisions = [document.revision() for document in documents]
    laid_out: list[object] = []
    for document in documents:
        document.documentLayout().documentSizeChanged.connect(laid_out.append)
    body.show_drafters(True)
    marked = body.grab().toImage()
    for name in ("mod", "suffix", "simple"):  # not the one whose colour links have
        assert _has(marked, look(name).light) and not _has(plain, look(name).light)
    body.show_drafters(False)
    assert body.grab().toImage() == plain
    assert [document.revision() for document in documents] == revisions and not laid_out
    assert body.fit(600) == body.height()


def test_a_word_says_on_hover_who_guessed_it_while_marks_are_shown(body: AnswerBody) -> None:
    body.write([Piece("[said](https://a.example/) "), Piece("guessed", "mod"), Piece("\n\n```\nx", "suffix")])
    body.finish()
    prose, code = body.parts()
    assert isinstance(prose, ProseView) and isinstance(code, CodeView)
    for shown in (False, True):
        body.show_drafters(shown)
        assert (prose.marks.help_at(6) or "").startswith("Guessed by mod. Remembers") is shown
        assert (code.marks.help_at(0) or "").startswith("Guessed by suffix.") is shown
        assert prose.marks.help_at(1) is None


def _has(image: QImage, colour: str) -> bool:
    wanted = QColor(colour).rgb()
    return any(image.pixel(x, y) == wanted for y in range(image.height()) for x in range(image.width()))


def test_patterns_tell_the_drafters_of_a_chain_apart_without_colour() -> None:
    ngram = [look(name).pattern for name in DRAFTERS if name not in NEURAL]
    assert len(set(ngram)) == len(ngram)
    assert {look(name).pattern for name in NEURAL}.isdisjoint(ngram)


def _luminance(colour: QColor) -> float:
    def linear(c: float) -> float:
        return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF())


def _contrast(one: QColor, other: QColor) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _tinted(ground: QColor, tint: QColor) -> QColor:
    share = TINT_ALPHA / 255
    return QColor.fromRgbF(
        *(g * (1 - share) + t * share for g, t in zip(ground.getRgbF()[:3], tint.getRgbF()[:3], strict=True))
    )


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_text_on_a_tint_keeps_its_contrast(tokens: object) -> None:
    roles = [("text", "background"), ("muted", "background"), ("accent", "background"), ("text", "panel")]
    roles += [
        (f"code_{r}", "code_background") for r in ("keyword", "string", "comment", "number", "name", "type")
    ]
    dark = tokens is DARK
    for one in looks():
        for role, ground in roles:
            on = _tinted(QColor(getattr(tokens, ground)), QColor(one.colour(dark)))
            contrast = _contrast(QColor(getattr(tokens, role)), on)
            assert contrast >= 4.5, (one.name, role, round(contrast, 2))


SEEN = """# heading

plain `inline` [link](https://a.example/) $formula$

> quoted

| head | b |
|---|---|
| cell | b |

```python
def name(path): return 'string' # comment
```
"""


@pytest.mark.parametrize("choice", ["light", "dark"])
@pytest.mark.parametrize("marked", [False, True])
def test_every_word_is_readable_on_what_it_stands_on(
    body: AnswerBody, theme: Theme, qtbot: QtBot, choice: Choice, marked: bool
) -> None:
    """H06, measured on the picture, after a change of theme with the text there already."""
    theme.choose("dark" if choice == "light" else "light")
    body.show_drafters(marked)
    stream(body, pieces_of(SEEN, [4], ["mod", "dspark", "simple", "suffix"]), 1000)
    theme.apply(Settings(theme=choice, zoom=200))  # strokes of more than one pixel show their colour
    body.recolour()
    body.fit(900)
    body.show()
    qtbot.waitExposed(body)
    qtbot.waitUntil(lambda: not any(isinstance(p, CodeView) and p._timer.isActive() for p in body.parts()))
    body.setAutoFillBackground(True)
    image = body.grab().toImage()
    words = [
        "heading",
        "plain",
        "inline",
        "link",
        "formula",
        "quoted",
        "head",
        "cell",
        "def",
        "name",
        "string",
        "comment",
    ]
    for word in words:
        colours = Counter(_pixels(body, image, word))
        ground = QColor.fromRgb(colours.most_common(1)[0][0])
        most = max(_contrast(QColor.fromRgb(colour), ground) for colour in colours)
        assert most >= 4.5, (word, round(most, 2))


def _pixels(body: AnswerBody, image: QImage, word: str) -> Iterator[int]:
    """Of a word, down to its base line: the marks below are not its ink."""
    for part in body.parts():
        found = part.editor.document().find(word)
        if found.isNull():
            continue
        last = part.editor.cursorRect(found)
        found.setPosition(found.anchor())
        first = part.editor.cursorRect(found)
        corner = part.editor.viewport().mapTo(body, first.topLeft())
        for x in range(corner.x(), corner.x() + last.x() - first.x()):
            for y in range(corner.y() + 2, corner.y() + first.height() * 2 // 3):
                yield image.pixel(x, y)
        return


def test_marks_follow_the_text_to_another_width(body: AnswerBody, theme: Theme, qtbot: QtBot) -> None:
    words = [
        Piece("These words take one line here. ", "mod"),
        Piece("And these another, in a narrow column."),
    ]
    body.show_drafters(True)
    body.write(words)
    body.resize(600, body.fit(600))
    body.show()
    qtbot.waitExposed(body)
    body.grab()  # the marks are measured when they are first drawn
    body.resize(160, body.fit(160))
    fresh = AnswerBody(theme, QApplication.font())
    qtbot.addWidget(fresh)
    fresh.show_drafters(True)
    fresh.write(words)
    fresh.resize(160, fresh.fit(160))
    fresh.show()
    qtbot.waitExposed(fresh)
    assert body.grab().toImage() == fresh.grab().toImage()
