"""Where in an answer's source each rendered character stands: carried through markdown-it. No Qt."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType
from msgspec import Struct

# Runs of text as (length, place in the source); the place is -1 for what the source does not hold.
Origin = tuple[tuple[int, int], ...]

_AT = "at"
_BLANKS = re.compile(r"[ \t]*")
_MARKS = re.compile(r"[ \t]*(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*)*")


class SourceLines(Struct):
    """The lines that were parsed, as they stand in the source, and where each begins there."""

    lines: list[str]
    starts: list[int]


class Places(Struct):
    """Where the characters of one inline token's content stand; runs begin at ``starts``."""

    starts: list[int]
    ats: list[int]

    def runs(self, start: int, length: int) -> Iterator[tuple[int, int]]:
        """(length, place in the source) of each unbroken run from ``start`` on."""
        index = bisect_right(self.starts, start) - 1
        while length > 0:
            end = self.starts[index + 1] if index + 1 < len(self.starts) else start + length
            size = min(length, end - start)
            at = self.ats[index] if index >= 0 else -1
            if size:
                yield size, at + start - self.starts[index] if at >= 0 else -1
            start, length, index = start + size, length - size, index + 1


NOWHERE = Places([0], [-1])


def places_of(token: Token, source: SourceLines) -> Places:
    """For the content of a paragraph or of a heading.

    Whatever stood before a line's words (list marks, quote marks, indentation) was taken off its
    beginning, so each line of the content is found from the right end of its line in the source.
    """
    first = token.map[0] if token.map else 0
    starts: list[int] = []
    ats: list[int] = []
    start = 0
    for number, line in enumerate(token.content.split("\n"), first):
        starts.append(start)
        start += len(line) + 1
        if number >= len(source.lines):
            ats.append(-1)
            continue
        raw = source.lines[number].rstrip()
        ats.append(source.starts[number] + len(raw) - len(line.rstrip()))
    return Places(starts, ats)


def places_of_title(token: Token, source: SourceLines) -> Places:
    """For a heading of one line, which closing ``#`` may follow."""
    line = token.map[0] if token.map else 0
    found = re.search(re.escape(token.content) + r"(?:[ \t]+#+)?\s*$", source.lines[line])
    return Places([0], [source.starts[line] + found.start()]) if found else NOWHERE


def places_of_cells(line: int, source: SourceLines, nested: bool) -> Iterator[Places]:
    """For each cell of a table's row. ``\\|`` in a cell's source is one character of its content.
    ``nested``: marks of a list or quote may stand before the row."""
    raw = source.lines[line]
    end = len(raw.rstrip())
    prefix = (_MARKS if nested else _BLANKS).match(raw)
    start = prefix.end() if prefix else 0
    start += raw[start : start + 1] == "|"
    while start <= end:
        starts: list[int] = []
        ats: list[int] = []
        length = 0
        at = start
        while at < end and raw[at] != "|":
            if not starts and not raw[at].isspace():
                starts, ats = [0], [source.starts[line] + at]
                length = 0
            if raw[at] == "\\" and raw[at + 1 : at + 2] == "|":
                starts.append(length)
                ats.append(source.starts[line] + at + 1)
                at += 1
            length += 1
            at += 1
        yield Places(starts, ats) if starts else NOWHERE
        start = at + 1


def origin_of_code(content: str, first: int, source: SourceLines) -> Origin:
    """For code whose lines stand in the source from line ``first`` on, each perhaps indented."""
    runs: list[tuple[int, int]] = []
    for number, line in enumerate(content.split("\n"), first):
        if number > first:
            add_run(runs, 1, source.starts[number] - 1 if number < len(source.lines) else -1)
        if number < len(source.lines):
            add_run(runs, len(line), source.starts[number] + len(source.lines[number]) - len(line))
        else:
            add_run(runs, len(line), -1)
    return tuple(runs)


def add_run(runs: list[tuple[int, int]], length: int, at: int) -> None:
    """Add a run, joined to the last one where the source goes on unbroken."""
    if not length:
        return
    if runs:
        before, last = runs[-1]
        if (at == last + before and last >= 0) or (at < 0 and last < 0):
            runs[-1] = (before + length, last)
            return
    runs.append((length, at))


def position(token: Token) -> int:
    """Where an inline token begins in its inline content; -1 if nobody noted it."""
    at = token.meta.get(_AT, -1)
    return at if isinstance(at, int) else -1


class PositionedInline(ParserInline):
    """markdown-it's inline parser; each token it makes knows where it began."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._pending_at = 0
        self._last_at = -1
        self._ahead = 0  # a run of marks is pushed one by one while ``pos`` stands still

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._pending_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[_AT] = self._pending_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        before = self.tokens[-1] if self.tokens and not self.pending else None
        token = super().push(ttype, tag, nesting)
        if before is not None and before.type == "text" and self.pos == self._last_at:
            self._ahead += len(before.content)
        else:
            self._ahead = 0
        self._last_at = self.pos
        token.meta[_AT] = self.pos + self._ahead
        return token
