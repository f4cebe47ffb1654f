"""The blocks an answer is made of, and how markdown-it's tokens become them. Knows no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import replace

from ui import links
from ui.bidi import is_rtl, visible

Alignment = Literal["left", "center", "right"]


class Span(Struct, frozen=True):
    """A run of text in one style. ``link`` is only ever an address that may be opened."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str | None = None


class TextBlock(Struct, frozen=True, kw_only=True):
    """One paragraph. ``depth`` counts lists around it, ``quote`` quotes; ``marker`` is set on the
    first paragraph of a list item ("-" or "3."). ``tight``: no room below."""

    kind: Literal["paragraph", "heading", "rule", "code"] = "paragraph"
    spans: tuple[Span, ...] = ()
    level: int = 0
    depth: int = 0
    quote: int = 0
    marker: str | None = None
    tight: bool = False
    rtl: bool = False

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


class TableBlock(Struct, frozen=True, kw_only=True):
    """``rows`` of cells of spans; the first row is the head."""

    rows: tuple[tuple[tuple[Span, ...], ...], ...]
    alignments: tuple[Alignment, ...]
    depth: int = 0


class CodeBlock(Struct, frozen=True, kw_only=True):
    language: str
    text: str
    depth: int = 0


Block = TextBlock | TableBlock | CodeBlock


def parser() -> MarkdownIt:
    """CommonMark with tables and strike-through; HTML is text, and nesting has an end."""
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(["table", "strikethrough"])


def blocks_of(tokens: Sequence[Token], depth: int = 0, first_number: int | None = None) -> list[Block]:
    """Blocks of whole top-level tokens. ``depth`` counts lists that are open around them;
    ``first_number`` numbers the first ordered list instead of what it says itself."""
    return _Reader(depth, first_number).read(tokens)


class _Reader:
    def __init__(self, depth: int, first_number: int | None) -> None:
        self._blocks: list[Block] = []
        self._depth = depth
        self._quote = 0
        self._numbers: list[int | None] = []
        self._marker: str | None = None
        self._first_number = first_number

    def read(self, tokens: Sequence[Token]) -> list[Block]:
        heading = 0
        hidden = False
        i = 0
        while i < len(tokens):
            token = tokens[i]
            match token.type:
                case "ordered_list_open":
                    start = int(token.attrs.get("start", 1))
                    if self._first_number is not None:
                        start, self._first_number = self._first_number, None
                    self._open_list(start)
                case "bullet_list_open":
                    self._open_list(None)
                case "ordered_list_close" | "bullet_list_close":
                    self._depth -= 1
                    self._numbers.pop()
                    self._marker = None
                case "list_item_open":
                    self._open_item()
                case "list_item_close":
                    if self._marker is not None:  # an item without text still has its mark
                        self._add(TextBlock(tight=True))
                case "blockquote_open":
                    self._quote += 1
                case "blockquote_close":
                    self._quote -= 1
                case "heading_open":
                    heading = int(token.tag[1])
                case "heading_close":
                    heading = 0
                case "paragraph_open":
                    hidden = token.hidden
                case "inline":
                    spans = spans_of(token.children or [])
                    self._add(
                        TextBlock(
                            kind="heading" if heading else "paragraph",
                            level=heading,
                            spans=spans,
                            tight=hidden,
                            rtl=is_rtl("".join(span.text for span in spans)),
                        )
                    )
                case "hr":
                    self._add(TextBlock(kind="rule"))
                case "fence" | "code_block":
                    self._code(token)
                case "table_open":
                    i = self._table(tokens, i)
            i += 1
        return self._blocks

    def _open_list(self, start: int | None) -> None:
        if self._marker is not None:
            self._add(TextBlock(tight=True))
        self._depth += 1
        self._numbers.append(start)

    def _open_item(self) -> None:
        number = self._numbers[-1]
        self._marker = "-" if number is None else f"{number}."
        if number is not None:
            self._numbers[-1] = number + 1

    def _add(self, block: TextBlock) -> None:
        self._blocks.append(replace(block, depth=self._depth, quote=self._quote, marker=self._marker))
        self._marker = None

    def _code(self, token: Token) -> None:
        text = token.content.removesuffix("\n")
        if self._quote:
            self._add(TextBlock(kind="code", spans=(Span(text, code=True),)))
            return
        if self._marker is not None:
            self._add(TextBlock(tight=True))
        self._blocks.append(CodeBlock(language=language_of(token.info), text=text, depth=self._depth))

    def _table(self, tokens: Sequence[Token], i: int) -> int:
        rows: list[tuple[tuple[Span, ...], ...]] = []
        row: list[tuple[Span, ...]] = []
        alignments: list[Alignment] = []
        while tokens[i].type != "table_close":
            token = tokens[i]
            if token.type == "tr_open":
                row = []
            elif token.type == "tr_close":
                rows.append(tuple(row))
            elif token.type in ("th_open", "td_open"):
                if not rows:
                    style = str(token.attrs.get("style", ""))
                    alignments.append(
                        "center"
                        if style.endswith("center")
                        else "right"
                        if style.endswith("right")
                        else "left"
                    )
            elif token.type == "inline":
                row.append(spans_of(token.children or []))
            i += 1
        self._blocks.append(TableBlock(rows=tuple(rows), alignments=tuple(alignments), depth=self._depth))
        return i


def language_of(info: str) -> str:
    """The language a fence names, such as "python" for "python title=x"."""
    return info.split()[0].strip("{}.").lower()[:32] if info.strip() else ""


def spans_of(children: Sequence[Token]) -> tuple[Span, ...]:
    """Inline tokens as runs of text; line breaks stay line breaks (U+2028), pictures become words."""
    spans: list[Span] = []
    bold = italic = strike = 0
    link: links.Link | None = None

    def add(text: str, code: bool = False) -> None:
        if text:
            address = link.url if link is not None and link.openable else None
            shown = visible(text) if link is not None else text
            spans.append(Span(shown, bold > 0, italic > 0, strike > 0, code, address))

    for token in children:
        match token.type:
            case "text" | "html_inline":
                add(token.content)
            case "code_inline":
                add(token.content, code=True)
            case "softbreak" | "hardbreak":
                add("\u2028")
            case "strong_open":
                bold += 1
            case "strong_close":
                bold -= 1
            case "em_open":
                italic += 1
            case "em_close":
                italic -= 1
            case "s_open":
                strike += 1
            case "s_close":
                strike -= 1
            case "link_open":
                link = links.judge(str(token.attrs.get("href", "")))
            case "link_close":
                if link is not None and not link.openable:
                    add(f" ({link.url})")
                link = None
            case "image":
                # Never fetched: the words stand for it, the address stays reachable as a link.
                source = links.judge(str(token.attrs.get("src", "")))
                label = f"[picture: {token.content or source.url}]"
                outer, link = link, source
                add(label)
                link = outer
    return tuple(spans)
