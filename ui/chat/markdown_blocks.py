"""The blocks an answer is made of, and how markdown-it's tokens become them. Knows no Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import replace

from ui import links
from ui.bidi import is_rtl, parts_visible, visible
from ui.chat.latex_text import read_formula
from ui.chat.markdown_math import add_formulas
from ui.chat.markdown_positions import (
    NOWHERE,
    Origin,
    Places,
    PositionedInline,
    SourceLines,
    origin_of_code,
    places_of,
    places_of_cells,
    places_of_title,
    position,
)

Alignment = Literal["left", "center", "right"]


class Span(Struct, frozen=True):
    """A run of text in one style. ``link`` is only ever an address that may be opened.

    ``at`` is where its first character stands in the source, and the others right after it; -1 for
    words of ours. ``formula`` is the LaTeX that the run is a part of, ``script`` 1 for what is raised
    in it and -1 for what is lowered.
    """

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str | None = None
    at: int = -1
    formula: str | None = None
    script: int = 0

    @property
    def style(self) -> tuple[object, ...]:
        """All but what it says and where it stands."""
        formula = id(self.formula)  # the same one twice in a row is two
        return self.bold, self.italic, self.strike, self.code, self.link, formula, self.script


class TextBlock(Struct, frozen=True, kw_only=True):
    """One paragraph. ``depth`` counts lists around it, ``quote`` quotes; ``marker`` is set on the
    first paragraph of a list item ("-" or "3."), and ``checked`` where it is a task. ``tight``: no
    room below."""

    kind: Literal["paragraph", "heading", "rule", "code", "formula"] = "paragraph"
    spans: tuple[Span, ...] = ()
    level: int = 0
    depth: int = 0
    quote: int = 0
    marker: str | None = None
    checked: bool | None = None
    tight: bool = False
    rtl: bool = False

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


class TableBlock(Struct, frozen=True, kw_only=True):
    """``rows`` of cells of spans; the first row is the head. ``nested``: in a list or a quote.
    ``continues``: the rows go on from those of the table before it, and the head is the same."""

    rows: tuple[tuple[tuple[Span, ...], ...], ...]
    alignments: tuple[Alignment, ...]
    depth: int = 0
    nested: bool = False
    continues: bool = False


class CodeBlock(Struct, frozen=True, kw_only=True):
    language: str
    text: str
    depth: int = 0
    origin: Origin = ()


Block = TextBlock | TableBlock | CodeBlock

_TASK = re.compile(r"\[([ xX])\](?=\s|$)\s*")


def parser(links: bool = True) -> MarkdownIt:
    """CommonMark with tables, strike-through and formulas; HTML is text, and nesting has an end.
    Not ``links``: brackets are only ever text."""
    result = MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(["table", "strikethrough"])
    # Joined text would lose where its parts began.
    result.disable(["text_join", "fragments_join"])
    inline = PositionedInline()
    inline.ruler, inline.ruler2 = result.inline.ruler, result.inline.ruler2
    result.inline = inline
    add_formulas(result)
    if not links:
        result.disable(["link", "image", "reference"])
    return result


def blocks_of(
    tokens: Sequence[Token], source: SourceLines, depth: int = 0, first_number: int | None = None
) -> list[Block]:
    """Blocks of whole top-level tokens that were read from ``source``. ``depth`` counts lists that are
    open around them; ``first_number`` numbers the first ordered list instead of what it says itself."""
    return _Reader(source, depth, first_number).read(tokens)


class _Reader:
    def __init__(self, source: SourceLines, depth: int, first_number: int | None) -> None:
        self._source = source
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
                    self._paragraph(
                        token, heading, hidden, title=bool(heading) and tokens[i - 1].markup[0] == "#"
                    )
                case "formula" | "open_formula":
                    self._formula(token)
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

    def _paragraph(self, token: Token, heading: int, tight: bool, title: bool) -> None:
        places = (places_of_title if title else places_of)(token, self._source)
        spans = spans_of(token.children or [], token.content, places)
        checked = None
        if self._marker is not None and spans and (task := _TASK.match(spans[0].text)):
            checked = task[1] in "xX"
            spans = (_without(spans[0], task.end()), *spans[1:])
        self._add(
            TextBlock(
                kind="heading" if heading else "paragraph",
                level=heading,
                spans=spans,
                checked=checked,
                tight=tight,
                rtl=is_rtl("".join(span.text for span in spans if span.formula is None)),
            )
        )

    def _formula(self, token: Token) -> None:
        places = places_of(token, self._source)
        if token.type == "formula":
            spans = tuple(_formula_spans(token, 0, places))
        else:
            spans = spans_of(
                [Token("text", "", 0, content=token.content, meta={"at": 0})], token.content, places
            )
        self._add(TextBlock(kind="formula", spans=spans))

    def _add(self, block: TextBlock) -> None:
        self._blocks.append(replace(block, depth=self._depth, quote=self._quote, marker=self._marker))
        self._marker = None

    def _code(self, token: Token) -> None:
        text = token.content.removesuffix("\n")
        first = token.map[0] if token.map else 0
        origin = origin_of_code(text, first + (token.type == "fence"), self._source)
        if self._quote:
            spans = []
            start = 0
            for length, at in origin:
                spans.append(Span(text[start : start + length], code=True, at=at))
                start += length
            self._add(TextBlock(kind="code", spans=tuple(spans)))
            return
        if self._marker is not None:
            self._add(TextBlock(tight=True))
        language = language_of(token.info)
        self._blocks.append(CodeBlock(language=language, text=text, depth=self._depth, origin=origin))

    def _table(self, tokens: Sequence[Token], i: int) -> int:
        rows: list[tuple[tuple[Span, ...], ...]] = []
        row: list[tuple[Span, ...]] = []
        alignments: list[Alignment] = []
        cells = iter([NOWHERE])
        nested = bool(self._quote or self._depth)
        while tokens[i].type != "table_close":
            token = tokens[i]
            if token.type == "tr_open":
                row = []
                line = token.map[0] if token.map else 0
                cells = places_of_cells(line, self._source, nested)
            elif token.type == "tr_close":
                rows.append(tuple(row))
            elif token.type in ("th_open", "td_open"):
                if not rows:
                    style = str(token.attrs.get("style", "")).rpartition(":")[2]
                    alignments.append(
                        "center" if style == "center" else "right" if style == "right" else "left"
                    )
            elif token.type == "inline":
                row.append(spans_of(token.children or [], token.content, next(cells, NOWHERE)))
            i += 1
        self._add_table(
            TableBlock(rows=tuple(rows), alignments=tuple(alignments), depth=self._depth, nested=nested)
        )
        return i

    def _add_table(self, block: TableBlock) -> None:
        if self._marker is not None:  # the item's mark stands above its table
            self._add(TextBlock(tight=True))
        self._blocks.append(block)


def language_of(info: str) -> str:
    """The language a fence names, such as "python" for "python title=x"."""
    return info.split()[0].strip("{}.").lower()[:32] if info.strip() else ""


def _without(span: Span, count: int) -> Span:
    return replace(span, text=span.text[count:], at=span.at + count if span.at >= 0 else -1)


def spans_of(children: Sequence[Token], content: str, places: Places) -> tuple[Span, ...]:
    """Inline tokens of ``content`` as runs of text; line breaks stay line breaks (U+2028), pictures
    become words."""
    return _Inline(content, places).read(children)


class _Inline:
    def __init__(self, content: str, places: Places) -> None:
        self._content = content
        self._places = places
        self._spans: list[Span] = []
        self._style = Span("")
        self._link: links.Link | None = None

    def read(self, children: Sequence[Token]) -> tuple[Span, ...]:
        bold = italic = strike = 0
        autolink = link_words = 0
        for token in children:
            at = position(token)
            match token.type:
                case "text" | "html_inline":
                    self._add(token.content, at + autolink)
                case "text_special":
                    self._add(token.content, at + (token.markup == "\\" + token.content))
                case "code_inline":
                    self._code(token, at)
                case "formula":
                    self._spans += _formula_spans(token, at, self._places)
                case "softbreak" | "hardbreak":
                    self._add("\u2028", at)
                case "strong_open" | "strong_close":
                    bold += token.nesting
                case "em_open" | "em_close":
                    italic += token.nesting
                case "s_open" | "s_close":
                    strike += token.nesting
                case "link_open":
                    self._link = links.judge(str(token.attrs.get("href", "")))
                    link_words = len(self._spans)
                    autolink = token.markup == "autolink"
                case "link_close":
                    if self._link is not None:
                        self._name_target(self._link, "".join(s.text for s in self._spans[link_words:]))
                    self._link = None
                    autolink = 0
                case "image":
                    self._picture(token, at)
            self._style = Span("", bold=bold > 0, italic=italic > 0, strike=strike > 0)
        return tuple(self._spans)

    def _add(self, text: str, at: int, code: bool = False) -> None:
        """``at`` counts in the content; -1 for words of ours."""
        if not text:
            return
        link = self._link
        address = link.url if link is not None and link.openable else None
        style = replace(self._style, code=code, link=address)
        start = 0
        for length, place in self._places.runs(at, len(text)) if at >= 0 else [(len(text), -1)]:
            self._put_visible(replace(style, text=text[start : start + length], at=place))
            start += length

    def _put_visible(self, span: Span) -> None:
        """In a link's words what could deceive about them is spelled out."""
        if self._link is None:
            self._put(span)
            return
        at = span.at
        for part in parts_visible(span.text):
            shown = visible(part)
            self._put(replace(span, text=shown, at=at if shown == part else -1))
            at += len(part) if at >= 0 else 0

    def _put(self, span: Span) -> None:
        """Joined to the one before it where nothing tells them apart."""
        if self._spans:
            before = self._spans[-1]
            follows = span.at == before.at + len(before.text) if before.at >= 0 else span.at < 0
            if follows and before.style == span.style:
                self._spans[-1] = replace(before, text=before.text + span.text)
                return
        self._spans.append(span)

    def _name_target(self, link: links.Link, words: str) -> None:
        """Words that read like an address say where they really lead, if it is elsewhere."""
        if not link.openable:
            self._add(f" ({link.url})", -1)
        elif links.names_another_host(words, link):
            self._add(f" ({link.target})", -1)

    def _code(self, token: Token, at: int) -> None:
        start = at + len(token.markup)
        same = self._content[start : start + len(token.content)].replace("\n", " ") == token.content
        self._add(token.content, start + (not same), code=True)

    def _picture(self, token: Token, at: int) -> None:
        """Never fetched: the words stand for it, the address stays reachable as a link."""
        source = links.judge(str(token.attrs.get("src", "")))
        outer, self._link = self._link, source
        self._add("[picture: ", -1)
        if token.content:
            self._add(token.content.replace("\n", " "), at + 2)
        else:
            self._add(source.url, -1)
        self._add("]", -1)
        self._link = outer


def _formula_spans(token: Token, at: int, places: Places) -> list[Span]:
    """``token.content`` is the formula with its marks; it begins at ``at`` of the inline content."""
    spans: list[Span] = []
    for run in read_formula(token.content):
        place = next(iter(places.runs(at + run.at, 1)), (0, -1))[1] if at >= 0 and run.at >= 0 else -1
        spans.append(Span(run.text, run.bold, run.italic, formula=token.content, script=run.script, at=place))
    return spans
