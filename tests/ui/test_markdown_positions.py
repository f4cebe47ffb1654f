"""Every rendered character knows its place in the source, however the answer was cut into pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ui.test_markdown_stream import ANSWER
from ui.chat.markdown_blocks import Block, CodeBlock, Span, TableBlock, TextBlock
from ui.chat.markdown_positions import add_run
from ui.chat.markdown_stream import (
    Change,
    CodeClosed,
    CodeOpened,
    CodeText,
    Finished,
    MarkdownStream,
)

PARTS = [
    "@ ", "@ ", "@", "\n", "\n", "\n\n", "- ", "1. ", "  ", "    ", "\t", "```", "```py\n", "`", "``", "**",
    "*", "_", "~~", "> ", "| @ | @ |\n|-|-|\n", "|@\\|@|@|\n", "|", "# ", " #", "=\n", "---\n", "[@](", "https://a.example/)",
    "![@](x.png)", "<https://b.example/>", "~~~\n", "- [ ] ", "- [x] ", "&amp;", "\\*", "\\", "$", "$@^2$",
    "$$", "$$\n",    "\\(", "\\)", "\\[\n", "\\]\n", "\\frac{@}{2}", "👩‍💻", "漢字", "שלום", "\u202e",
    "\r\n", "<b>", "[", "]", "!",
]  # fmt: skip


def numbered(parts: list[str]) -> str:
    """Each ``@`` becomes a word that occurs once."""
    counter = itertools.count(100)
    return "".join(f"w{next(counter)}x" if c == "@" else c for c in "".join(parts))


def read(text: str, cuts: list[int]) -> list[Block]:
    stream = MarkdownStream()
    blocks: list[Block] = []
    code: list[CodeBlock] = []

    def take(changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Finished(block):
                    blocks.append(block)
                case CodeOpened(language, depth):
                    code.append(CodeBlock(language=language, text="", depth=depth))
                case CodeText(more, origin):
                    runs = list(code[-1].origin)
                    for length, at in origin:
                        add_run(runs, length, at)
                    code[-1] = replace(code[-1], text=code[-1].text + more, origin=tuple(runs))
                case CodeClosed():
                    blocks.append(code[-1])

    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    for start, end in itertools.pairwise(ends):
        stream.feed(text[start:end])
        take(stream.changes())
    take(stream.finish())
    return blocks


def spans(blocks: list[Block]) -> list[Span]:
    found: list[Span] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            found += block.spans
        elif isinstance(block, TableBlock):
            found += [span for row in block.rows for cell in row for span in cell]
        else:
            start = 0
            for length, at in block.origin:
                found.append(Span(block.text[start : start + length], at=at))
                start += length
            assert start == len(block.text)
    return found


def check(text: str, cuts: list[int]) -> None:
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    for span in spans(read(text, cuts)):
        if span.formula is not None:
            if span.at >= 0 and span.text.isalnum() and span.text.isascii():
                assert source[span.at : span.at + len(span.text)] == span.text
            continue
        if span.at < 0:
            assert "w1" not in span.text or span.link or "(" in span.text, span
            continue
        for offset, character in enumerate(span.text):
            there = source[span.at + offset]
            if character.isspace() or there in "&\\":
                continue
            assert character == there, (span, text)


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_a_long_table_goes_on_from_row_to_row(size: int) -> None:
    text = numbered(["| @ | @ |\n|--:|---|\n", *["| @ | @ @ |\n"] * 100, "\n", "@"])
    check(text, list(range(0, len(text), size)))
    table, after = loose(read(text, list(range(0, len(text), size))))
    assert isinstance(table, TableBlock) and isinstance(after, TextBlock)
    assert len(table.rows) == 101
    assert [row[1][0].text for row in table.rows[1:]] == [f"w{n}x w{n + 1}x" for n in range(103, 403, 3)]


words = st.lists(st.sampled_from(PARTS), max_size=30)
cuts = st.lists(st.integers(0, 400), max_size=12)


@settings(max_examples=400, deadline=None)
@given(words, cuts)
@example(["- [ ] ", "@", "\n", "  ", "| @ | @ |\n|-|-|\n", "|@\\|@|@|\n"], [3])
@example(["> ", "# ", "@", " #", "\n", "@"], [])
@example(["**", "@", "**", "*", "@", "_"], [1, 2, 3])
def test_each_character_stands_where_it_says(parts: list[str], at: list[int]) -> None:
    check(numbered(parts), at)


@settings(max_examples=400, deadline=None)
@given(words, cuts)
def test_pieces_do_not_matter_for_any_markdown(parts: list[str], at: list[int]) -> None:
    text = numbered(parts)
    assert loose(read(text, at)) == loose(read(text, list(range(len(text)))))


def loose(blocks: list[Block]) -> list[Block]:
    """Without the room between blocks: whether a list's items stand close is known at its end only. And
    with each table in one."""
    result: list[Block] = []
    for block in blocks:
        if isinstance(block, TableBlock) and block.continues:
            before = result[-1]
            assert isinstance(before, TableBlock)
            result[-1] = replace(before, rows=before.rows + block.rows[1:])
        else:
            result.append(replace(block, tight=False) if isinstance(block, TextBlock) else block)
    return result


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_a_whole_answer(size: int) -> None:
    check(ANSWER, list(range(0, len(ANSWER), size)))
