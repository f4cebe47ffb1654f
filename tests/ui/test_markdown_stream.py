"""Cutting a growing answer into blocks: the same whatever the pieces, and cheap."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ui.chat.markdown_blocks import Block, CodeBlock, TableBlock, TextBlock
from ui.chat.markdown_stream import (
    Change,
    CodeClosed,
    CodeOpened,
    CodeText,
    Finished,
    MarkdownStream,
)
from ui.chat.plain_text import plain_changes


class Reader:
    """Puts the changes together, as the message view does."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._code: CodeBlock | None = None

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Finished(block):
                    assert self._code is None
                    self.blocks.append(block)
                case CodeOpened(language, depth):
                    self._code = CodeBlock(language=language, text="", depth=depth)
                case CodeText(text):
                    assert self._code is not None
                    code = self._code
                    self._code = CodeBlock(language=code.language, text=code.text + text, depth=code.depth)
                case CodeClosed():
                    assert self._code is not None
                    self.blocks.append(self._code)
                    self._code = None


def read(text: str, size: int | None = None) -> list[Block]:
    stream, reader = MarkdownStream(), Reader()
    size = size or max(1, len(text))
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
        reader.take(stream.changes())
    reader.take(stream.finish())
    return reader.blocks


def texts(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, TextBlock)]


ANSWER = """# Title *here*

one
two

1. first

   ```py
   def f():

       pass
   ```

   after
1. second
   - nested
     ```
     ls
     ```
1. third

> quote
> more

| a | b |
|---|--:|
| 1 | 2 |

~~~js
let a = 1;
```
~~~
end
```
open
  code"""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_pieces_do_not_matter(size: int) -> None:
    assert read(ANSWER, size) == read(ANSWER)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "word ",
                "\n",
                "\n\n",
                "- ",
                "1. ",
                "  ",
                "```",
                "```py\n",
                "`",
                "**",
                "> ",
                "|a|b|\n|-|-|\n",
                "# ",
                "[x](",
                ")",
                "~~~\n",
            ]
        ),
        max_size=40,
    ),
    st.integers(1, 5),
)
def test_nothing_raises_and_no_word_is_lost(parts: list[str], size: int) -> None:
    text = "".join(parts)
    shown = ""
    for block in read(text, size):
        if isinstance(block, TableBlock):
            shown += "".join(span.text for row in block.rows for cell in row for span in cell)
        else:
            shown += block.text
    # a word after a fence's mark is its language, one in a link's address is not shown
    if "```" not in text and "~~~" not in text and "[x](" not in text and "|" not in text:
        assert shown.count("word") == text.count("word")


def test_structure_of_an_answer() -> None:
    blocks = read(ANSWER)
    code = [block for block in blocks if isinstance(block, CodeBlock)]
    assert [(block.language, block.depth, block.text) for block in code] == [
        ("py", 1, "def f():\n\n    pass"),
        ("", 2, "ls"),
        ("js", 0, "let a = 1;\n```"),
        ("", 0, "open\n  code"),
    ]
    markers = [block.marker for block in blocks if isinstance(block, TextBlock) and block.marker]
    assert markers == ["1.", "2.", "-", "3."]
    (table,) = (block for block in blocks if isinstance(block, TableBlock))
    assert table.alignments == ("left", "right")


def test_html_and_pictures_are_words() -> None:
    blocks = read(
        '<img src="file:///etc/hostname"> <b>x</b>\n\n![cat](http://127.0.0.1:9/?q=secret)\n\n<style>*{}</style>'
    )
    assert texts(blocks) == [
        '<img src="file:///etc/hostname"> <b>x</b>',
        "[picture: cat]",
        "<style>*{}</style>",
    ]


def test_only_links_that_may_be_opened_are_links() -> None:
    blocks = read("[a](https://a.example/) [b](file:///C:/calc.exe) [c](javascript:1) [d](ms-x:y)")
    (block,) = blocks
    assert isinstance(block, TextBlock)
    assert [span.link for span in block.spans if span.link] == ["https://a.example/"]
    assert "ms-x:y" in block.text
    assert "file:///C:/calc.exe" in block.text


def test_control_characters_in_a_links_words_are_visible() -> None:
    (block,) = read("[safe\u202egpj](https://a.example/)")
    assert isinstance(block, TextBlock)
    assert block.text == "safe⟨U+202E⟩gpj"


@pytest.mark.parametrize(
    "text",
    [
        ">" * 5000 + " deep",
        "- " * 3000 + "deep",
        "\n".join("  " * level + "- deep" for level in range(200)),
        "[" * 6000,
        "![" * 3000,
        "*" * 6000,
        "<table>" * 10_000,
        "|a|b|\n|-|-|\n" + "| cell | cell |\n" * 1000,
        "$" * 6000,
        "$$\nx\n" * 2000,
        "\\(" * 3000,
        "$" + "\\frac{" * 500 + "}" * 500 + "$",
        "$" + "x^" * 1900 + "$ " + "$" + "\\left(" * 600 + "$",
        "$" + "\\sqrt" * 700 + "$",
    ],
    ids=[
        "quotes",
        "lists",
        "indented",
        "brackets",
        "pictures",
        "stars",
        "tables",
        "rows",
        "dollars",
        "open",
        "opened",
        "fractions",
        "scripts",
        "roots",
    ],
)
def test_hostile_structure_ends_in_time_and_is_cut_flat(text: str) -> None:
    began = time.process_time()
    blocks = read(text, 2000)
    assert time.process_time() - began < 5
    assert blocks
    assert max((block.quote for block in blocks if isinstance(block, TextBlock)), default=0) <= 16
    assert max((block.depth for block in blocks), default=0) <= 24
    assert not any(isinstance(block, CodeBlock) for block in blocks)
    shown = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    assert shown.count("deep") == text.count("deep")


@pytest.mark.parametrize(
    ("piece", "limit"),
    [
        ("Some words of a sentence.\n" * 2 + "\n", 400),
        ("one endless paragraph ", 6100),
        ("> a quote\n", 6100),
    ],
    ids=["paragraphs", "endless", "quote"],
)
def test_the_cost_of_a_token_does_not_grow_with_the_answer(piece: str, limit: int) -> None:
    """Counted in characters that are parsed, not in time."""
    stream = MarkdownStream()
    parsed: list[int] = []
    parse = stream._parse

    def counting(text: str, open_end: bool = False) -> list[object]:
        parsed.append(len(text))
        return parse(text, open_end)  # type: ignore[return-value]

    stream._parse = counting  # type: ignore[method-assign, assignment]
    for _ in range(1500):
        stream.feed(piece)
        stream.changes()
    assert max(parsed) <= limit


def test_what_a_person_typed_stays_as_typed_but_for_fenced_code() -> None:
    reader = Reader()
    reader.take(plain_changes("# not a title\n\n*x* <b>\n\n```py\nif a:\n    b\n```\n\nשלום"))
    assert texts(reader.blocks) == ["# not a title", "", "*x* <b>", "שלום"]
    assert [block.text for block in reader.blocks if isinstance(block, CodeBlock)] == ["if a:\n    b"]
    assert [block.rtl for block in reader.blocks if isinstance(block, TextBlock)] == [
        False,
        False,
        False,
        True,
    ]
