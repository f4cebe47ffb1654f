"""An answer as a whole: tables, tasks, formulas, copying, size of text, and letters cut in the middle."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.protocol import Piece
from app.settings import Settings
from tests.ui.test_markdown_positions import cuts, numbered, words
from ui.chat.answer_body import AnswerBody
from ui.chat.block_writer import TASK_PROPERTY
from ui.chat.code_view import CodeView
from ui.chat.prose_view import ProseView
from ui.chat.table_view import TableView
from ui.theme import Theme

WIDE = "| " + " | ".join(f"column{n}" for n in range(20)) + " |\n" + "|---" * 20 + "|\n"


def build(theme: Theme, text: str, pieces: list[int] | None = None, width: int = 600) -> AnswerBody:
    body = AnswerBody(theme, QApplication.font())
    ends = sorted({min(cut, len(text)) for cut in pieces or []} | {0, len(text)})
    for start, end in itertools.pairwise(ends):
        body.write([Piece(text[start:end])])
        body.fit(width)
    body.finish()
    while body.building:
        QApplication.processEvents()
    body.fit(width)
    return body


@pytest.fixture
def make(theme: Theme, qtbot: QtBot) -> object:
    def made(text: str, pieces: list[int] | None = None) -> AnswerBody:
        body = build(theme, text, pieces)
        qtbot.addWidget(body)
        return body

    return made


def shown(body: AnswerBody) -> list[tuple[str, str, int]]:
    return [
        (
            type(part).__name__,
            part._edit.toPlainText() if isinstance(part, CodeView) else part.toPlainText(),
            part.height(),
        )
        for part in body.parts()
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words, cuts)
def test_streamed_and_at_once_look_the_same(theme: Theme, parts: list[str], at: list[int]) -> None:
    text = numbered(parts)
    streamed, whole = build(theme, text, at), build(theme, text)
    assert [(kind, words) for kind, words, _ in shown(streamed)] == [(k, w) for k, w, _ in shown(whole)]
    streamed.deleteLater()
    whole.deleteLater()


def test_a_wide_table_scrolls_sideways_by_itself(make, qtbot: QtBot) -> None:  # type: ignore[no-untyped-def]
    body = make(f"before\n\n{WIDE}| x |\n\nafter")
    body.show()
    qtbot.waitExposed(body)
    before, table, after = body.parts()
    assert isinstance(table, TableView) and body.width() == 600
    bar = table.horizontalScrollBar()
    assert bar.value() == 0 < bar.maximum()
    assert before.y() + before.height() < table.y() and table.y() + table.height() < after.y()
    at = QPointF(10, 10)
    for turned, moved in ((QPoint(0, -120), False), (QPoint(-120, 0), True)):
        event = QWheelEvent(
            at,
            table.mapToGlobal(at),
            QPoint(),
            turned,
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(table.viewport(), event)
        assert (bar.value() > 0) is moved


def test_a_narrow_table_fits(make) -> None:  # type: ignore[no-untyped-def]
    body = make("| a | b |\n|---|---|\n| one | " + "many words " * 30 + "|\n")
    (table,) = body.parts()
    assert isinstance(table, TableView) and table.document().size().width() <= 601


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_lines_of_a_table_have_the_colour_of_lines(theme: Theme, qtbot: QtBot, name: str) -> None:
    theme.apply(Settings(theme=name))  # type: ignore[arg-type]
    body = build(theme, "| a | b |\n|---|---|\n| one | two |")
    qtbot.addWidget(body)
    (table,) = body.parts()
    picture = table.grab().toImage()
    line = QColor(theme.tokens.line)
    ratio = picture.devicePixelRatio()
    across = [picture.pixelColor(x, round(12 * ratio)) for x in range(round(table.width() * ratio))]
    assert sum(colour == line for colour in across) == 3  # left, middle and right


def test_rows_that_are_finished_stay_while_a_table_grows(theme: Theme, qtbot: QtBot) -> None:
    rows = [f"| {n} | row {n} |\n" for n in range(200)]
    body = AnswerBody(theme, QApplication.font())
    qtbot.addWidget(body)
    body.write([Piece("| a | b |\n|---|---|\n")])
    first = None
    for number, row in enumerate(rows):
        body.write([Piece(row)])
        (first, *_) = body.parts()
        if number == 40:
            tables = first.document().revision()
    assert isinstance(first, TableView)
    finished = first.row_count
    assert (
        40 < finished <= 90 and first.document().revision() > tables
    )  # the next rows have a part of their own
    body.finish()
    text = "\n".join(part.toPlainText() for part in body.parts() if isinstance(part, TableView))
    assert [f"row {n}" in text for n in range(200)] == [True] * 200
    assert len(body.parts()) < 6


def test_half_a_table_leaves_no_empty_text_behind(make) -> None:  # type: ignore[no-untyped-def]
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\nafter"
    body = make(text, list(range(len(text))))
    assert [type(part) for part in body.parts()] == [TableView, ProseView]


def test_tasks_have_boxes_that_cannot_be_ticked(make, qtbot: QtBot) -> None:  # type: ignore[no-untyped-def]
    body = make("- [ ] open\n- [x] done\n- [link](https://a.example/)\n1. [X] third")
    (part,) = body.parts()
    assert isinstance(part, ProseView)
    marks = {}
    block = part.document().begin()
    while block.isValid():
        marks[block.text()] = block.blockFormat().property(TASK_PROPERTY)
        block = block.next()
    assert marks == {"open": 1, "done": 2, "link": None, "third": 2}
    body.show()
    qtbot.waitExposed(body)
    accent = QColor(body._theme.tokens.accent).rgb()
    image = body.grab().toImage()
    y = [y for y in range(image.height()) for x in range(30) if image.pixel(x, y) == accent]
    assert y
    qtbot.mouseClick(part.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(11, 8))
    assert part.document().begin().blockFormat().property(TASK_PROPERTY) == 1


def test_copying_gives_formulas_as_latex_and_the_source_as_markdown(make) -> None:  # type: ignore[no-untyped-def]
    text = "The **sum** $\\frac{a}{b}$ and $x^2$$y$ is `c`.\n\n- one\n- two"
    body = make(text)
    (part,) = body.parts()
    assert isinstance(part, ProseView)
    part.asked.emit("select_all")
    part.asked.emit("copy")
    assert QGuiApplication.clipboard().text() == "The sum $\\frac{a}{b}$ and $x^2$$y$ is c.\none\ntwo"
    part.asked.emit("copy_source")
    assert QGuiApplication.clipboard().text() == text


def test_a_selection_goes_from_text_through_code_and_is_copied_as_one(make, qtbot: QtBot) -> None:  # type: ignore[no-untyped-def]
    text = "first words\n\n```py\na = 1\nb = 2\n```\n\nlast **words**"
    body = make(text)
    body.show()
    qtbot.waitExposed(body)
    top, code, end = (part.editor for part in body.parts())
    start = QPoint(1, 8)

    def drag(to: QPoint) -> None:
        event = QMouseEvent(
            QEvent.Type.MouseMove,
            QPointF(top.viewport().mapFromGlobal(to)),
            QPointF(to),
            Qt.MouseButton.NoButton,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        QApplication.sendEvent(top.viewport(), event)

    qtbot.mousePress(top.viewport(), Qt.MouseButton.LeftButton, pos=start)
    drag(end.mapToGlobal(QPoint(end.width() - 1, end.height() // 2)))
    qtbot.keyClick(top, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "first words\n\na = 1\nb = 2\n\nlast words"
    body.parts()[0].asked.emit("copy_source")
    assert QGuiApplication.clipboard().text() == text.removesuffix("**")  # the marks after the last word
    drag(code.mapToGlobal(QPoint(code.width() - 1, 3)))
    assert [editor.textCursor().hasSelection() for editor in (top, code, end)] == [True, True, False]
    qtbot.keyClick(top, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "first words\n\na = 1"
    drag(top.mapToGlobal(QPoint(top.width() - 1, 3)))
    assert [editor.textCursor().hasSelection() for editor in (top, code, end)] == [True, False, False]
    qtbot.mouseRelease(top.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseClick(end.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, 5))
    assert not top.textCursor().hasSelection()


def test_text_takes_the_size_that_the_window_has(make, theme: Theme) -> None:  # type: ignore[no-untyped-def]
    body = make("# Title\n\nwords $x$ and `code`\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n")
    heights = [part.height() for part in body.parts()]
    theme.apply(Settings(theme="light", zoom=150))
    body.recolour()
    body.fit(600)
    larger = [part.height() for part in body.parts()]
    assert larger[0] > 1.3 * heights[0] and all(new > old for new, old in zip(larger, heights, strict=True))
    theme.apply(Settings(theme="light"))
    body.recolour()
    body.fit(600)
    assert [part.height() for part in body.parts()] == heights


def test_long_lines_of_code_wrap_when_asked_to(make, qtbot: QtBot) -> None:  # type: ignore[no-untyped-def]
    body = make("```py\n" + "word " * 100 + "\nshort\n```\n\n```\nshort\n```")
    body.show()
    qtbot.waitExposed(body)
    wide, narrow = body.parts()
    assert isinstance(wide, CodeView) and isinstance(narrow, CodeView)
    assert narrow._wrap.isHidden() and not wide._wrap.isHidden()
    before = wide.height()
    with qtbot.waitSignal(body.grown):
        qtbot.mouseClick(wide._wrap, Qt.MouseButton.LeftButton)
    body.fit(600)
    assert wide.height() > before and wide._edit.horizontalScrollBar().maximum() == 0
    assert narrow.y() > wide.y() + wide.height()
    assert wide._edit.verticalScrollBar().maximum() == 0  # all lines are seen
    qtbot.mouseClick(wide._wrap, Qt.MouseButton.LeftButton)
    body.fit(600)
    assert wide.height() == before


LETTERS = "👩‍💻漢字é שלום 🇩🇪"


@pytest.mark.parametrize("cut", range(len(LETTERS)))
def test_letters_of_several_characters_survive_any_cut(make, cut: int) -> None:  # type: ignore[no-untyped-def]
    """D01, as far as the window goes: the worker sends whole characters, in any pieces."""
    for text in (LETTERS, f"```\n{LETTERS}\n```"):
        body = make(text, [cut])
        (part,) = body.parts()
        words = part._edit.toPlainText() if isinstance(part, CodeView) else part.toPlainText()
        assert words == LETTERS


def test_control_tokens_are_seen_as_they_were_written(make) -> None:  # type: ignore[no-untyped-def]
    """D03, D04."""
    body = make("Hi <|im_end|>\n<|im_start|>user and `</s>` <think>")
    (part,) = body.parts()
    assert isinstance(part, ProseView)
    assert part.toPlainText() == "Hi <|im_end|>\n<|im_start|>user and </s> <think>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[https://bank.example](https://evil.example/x)", "https://bank.example (evil.example)"),
        ("[bank.example/login](https://bank.example@evil.example/)", "bank.example/login (evil.example)"),
        ("[https://bank.example/x](https://bank.example/y)", "https://bank.example/x"),
        ("[example.org](https://www.example.org/)", "example.org"),
        ("[the page](https://evil.example/)", "the page"),
        ("<https://bank.example/x>", "https://bank.example/x"),
        ("<a@bank.example>", "a@bank.example"),
        ("[ok](file:///C:/calc.exe)", "[ok](file:///C:/calc.exe)"),
    ],
)
def test_a_link_that_names_another_host_says_where_it_leads(make, text: str, words: str) -> None:  # type: ignore[no-untyped-def]
    body = make(text)
    (part,) = body.parts()
    assert isinstance(part, ProseView) and part.toPlainText() == words


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_at_all_is_shown(theme: Theme, text: str) -> None:
    build(theme, text).deleteLater()


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("before", ["", "Words.\n\n", "Words.\n", "- item\n\n  "])
def test_code_that_opens_is_shown_with_its_head_or_not_at_all(
    theme: Theme, qtbot: QtBot, fence: str, before: str
) -> None:
    """Between the first mark of the fence and the first letter of code nothing comes that goes again."""
    body = AnswerBody(theme, QApplication.font())
    qtbot.addWidget(body)
    if before:
        body.write([Piece(before)])
    heights = [body.fit(600)]
    parts = [len(body.parts())]
    for character in f"{fence}python\n{' ' * len(before) if before.startswith('-') else ''}x = 1":
        body.write([Piece(character)])
        heights.append(body.fit(600))
        parts.append(len(body.parts()))
        code = [part for part in body.parts() if isinstance(part, CodeView)]
        assert not code or code[0]._label.text() == "python"
    assert heights == sorted(heights)
    assert len(set(heights)) == 2, heights  # without it, and with it in its final height
    assert parts[-1] == parts[0] + 1
