"""Cuts a growing Markdown answer into blocks: each finished once, only the last one read again."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import replace

from ui.chat.markdown_blocks import Block, TableBlock, blocks_of, language_of, parser
from ui.chat.markdown_math import OPEN_END
from ui.chat.markdown_positions import Origin, SourceLines, add_run
from ui.chat.markdown_units import Unit, indent, tame, units_of

# A block that does not end is cut here, so that reading it again stays cheap.
LIVE_LIMIT = 6000
TABLE_LIMIT = 400
_NESTED_TABLE_LIMIT = 8000  # what is in a list is shown as one
_OPEN_BRACKETS = 60  # the search for a link's end is quadratic in these

# The mark that opens code, and what follows it.
FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$")
_ITEM_MARK = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
_ORDERED = re.compile(r"^[ ]*(\d{1,9})[.)]\s")


class Finished(Struct, frozen=True):
    """A block that will not change any more; it replaces what was live."""

    block: Block


class Live(Struct, frozen=True):
    """What stands after the finished blocks for now; replaces what was live before."""

    blocks: tuple[Block, ...]


class CodeOpened(Struct, frozen=True):
    language: str
    depth: int


class CodeText(Struct, frozen=True):
    """``origin``: where in the answer the text stands."""

    text: str
    origin: Origin = ()


class CodeClosed(Struct, frozen=True):
    pass


Change = Finished | Live | CodeOpened | CodeText | CodeClosed


class MarkdownStream:
    """``feed`` text as it comes, then take the ``changes``; ``finish`` ends the last block.

    The cost of a call depends on the new text and the last block alone, never on the answer. Places in
    the source count the characters that were fed, each kind of line break as one.
    """

    def __init__(self) -> None:
        self._parser = parser()
        self._without_links = parser(links=False)
        self._tail = ""
        self._tail_at = 0  # where the tail begins in the source
        self._head = 0  # so many characters at the tail's beginning repeat a table's head
        self._head_at = 0
        self._return = False  # a carriage return came last: its line feed may follow
        self._fence: str | None = None  # the mark that opened the code at hand
        self._items: list[_OpenItem] = []  # list items that the tail belongs to
        self._code_sent = False  # a line break is due before the next line of code
        self._partial = 0  # how much of the unfinished line of code was given out
        self._line_at = 0  # where the line of code at hand begins in the source
        self._number: int | None = None  # of the ordered item at the tail's start
        self._ended = False

    @property
    def _columns(self) -> int:
        return self._items[-1].columns if self._items else 0

    @property
    def _depth(self) -> int:
        return self._items[-1].depth if self._items else 0

    def feed(self, text: str) -> str:
        """Returns what was taken of it now: each line break is one character."""
        if self._return:
            text = "\r" + text
        self._return = text.endswith("\r")
        text = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
        self._tail += text
        return text

    def _place(self, at: int) -> int:
        """Where the tail's character ``at`` stands in the source."""
        return self._head_at + at if at < self._head else self._tail_at + at - self._head

    def _drop(self, count: int) -> None:
        """The first ``count`` characters of the tail are done with."""
        kept = min(count, self._head)
        self._tail = self._tail[count:]
        self._head -= kept
        self._head_at += kept
        self._tail_at += count - kept

    def _drop_lines(self, raw: list[str], count: int) -> None:
        self._drop(min(len(self._tail), sum(len(line) + 1 for line in raw[:count])))

    def _source(self, raw: list[str]) -> SourceLines:
        """The tail's first lines, as they stand in the source."""
        starts: list[int] = []
        at = 0
        for line in raw:
            starts.append(self._place(at))
            at += len(line) + 1
        return SourceLines(raw, starts)

    def changes(self) -> list[Change]:
        changes: list[Change] = []
        before = -1
        while before != len(self._tail):
            before = len(self._tail)
            if self._fence is not None:
                self._read_code(changes)
                if self._fence is not None:
                    break
            else:
                self._read_blocks(changes)
        return changes

    def finish(self) -> list[Change]:
        if self._return:
            self.feed("\n")
        self._ended = True
        return self.changes()

    # ---- code: line by line, nothing is read twice

    def _read_code(self, changes: list[Change]) -> None:
        assert self._fence is not None
        given: list[str] = []
        origin: list[tuple[int, int]] = []

        def give(start: int, end: int, fresh: bool) -> None:
            """Give out a stretch of the tail, on a ``fresh`` line or where the last one ended."""
            if fresh and self._code_sent:
                given.append("\n")
                add_run(origin, 1, self._line_at - 1)
            self._code_sent = self._code_sent or fresh
            given.append(self._tail[start:end])
            add_run(origin, end - start, self._place(start))

        start = 0
        closed = False
        while not closed and (end := self._tail.find("\n", start)) >= 0:
            line = self._tail[start:end]
            self._line_at = self._place(start)
            if self._partial:
                give(start + self._partial, end, False)
                self._partial = 0
            elif self._closes(line):
                closed = True
            elif self._columns and line.strip() and indent(line) < self._columns:
                # The list item that holds the code is over, and with it the code.
                closed = True
                break
            else:
                give(start + self._dedented(line), end, True)
            start = end + 1
        self._drop(start)
        self._line_at = self._place(0)
        if not closed and self._tail:
            self._partial_line(give)
            if self._ended:
                if not self._partial and not self._closes(self._tail):
                    give(self._dedented(self._tail), len(self._tail), True)
                self._drop(len(self._tail))
        if given:
            changes.append(CodeText("".join(given), tuple(origin)))
        if closed or self._ended:
            changes.append(CodeClosed())
            self._fence = None
            self._partial = 0

    def _partial_line(self, give: Callable[[int, int, bool], None]) -> None:
        """Give out an unfinished line as it grows, unless it may turn out to be the closing mark."""
        assert self._fence is not None
        if self._partial:
            give(self._partial, len(self._tail), False)
            self._partial = len(self._tail)
        elif (
            self._columns == 0
            and not self._tail.lstrip(" ").startswith(self._fence[0])
            and self._tail.strip()
        ):
            give(0, len(self._tail), True)
            self._partial = len(self._tail)

    def _closes(self, line: str) -> bool:
        assert self._fence is not None
        mark = line.strip()
        return (
            len(mark) >= len(self._fence)
            and not mark.strip(self._fence[0])
            and indent(line) <= self._columns + 3
        )

    def _dedented(self, line: str) -> int:
        """How much of ``line`` is the indentation of the items it stands in."""
        return min(self._columns, indent(line)) if self._columns else 0

    def _dedent(self, line: str) -> str:
        return line[self._dedented(line) :]

    def _open_code(self, changes: list[Change], mark: str, info: str) -> None:
        self._fence = mark
        self._code_sent = False
        self._partial = 0
        changes.append(CodeOpened(language_of(info), self._depth))

    # ---- everything else: the last block is read again until a next one begins

    def _read_blocks(self, changes: list[Change]) -> None:
        if blank := _BLANK_LINES.match(self._tail):
            self._drop(blank.end())
        if not self._tail.strip():
            if self._ended:
                self._drop(len(self._tail))
            changes.append(Live(()))
            return
        if self._items and self._leave_items(changes):
            return
        raw = self._tail.split("\n")
        lines = [tame(self._dedent(line)) for line in raw]
        if (match := FENCE.match(lines[0])) and len(lines) > 1:
            self._open_code(changes, match[2], match[3])
            self._drop_lines(raw, 1)
            return
        source = self._source(raw)
        units = units_of(self._parse("\n".join(lines), open_end=not self._ended))
        if not units:  # a link's definition, or nothing that shows
            changes.append(Live(()))
            if self._ended or len(self._tail) > LIVE_LIMIT:
                self._drop(len(self._tail))
            return
        cut = self._cut_at(units, lines)
        if cut is None:
            self._live_or_done(changes, units, raw, source)
            return
        count, line, fence = cut
        self._finish_units(changes, units[:count], source)
        if fence is not None:
            self._open_item_code(changes, units[count], lines, line, source)
        self._drop_lines(raw, line + (fence is not None))

    def _parse(self, text: str, open_end: bool = False) -> list[Token]:
        hostile = text.count("[") > text.count("]") + _OPEN_BRACKETS
        reader = self._without_links if hostile else self._parser
        try:
            return reader.parse(text, {OPEN_END: open_end})
        except RecursionError:
            return self._without_links.parse(re.sub(r"[\[\]!*_~>]", " ", text))

    def _leave_items(self, changes: list[Change]) -> bool:
        """End the open items once a line is indented less; True when text before it was finished."""
        raw = self._tail.split("\n")
        at = next((i for i, line in enumerate(raw) if line.strip() and indent(line) < self._columns), None)
        if at is None:
            return False
        before = "\n".join(tame(self._dedent(line)) for line in raw[:at])
        if before.strip():
            self._finish_units(changes, units_of(self._parse(before)), self._source(raw[:at]))
            self._drop_lines(raw, at)
            return True
        while self._items and indent(raw[at]) < self._columns:
            self._number = self._items.pop().next_number
        # Many answers number every item "1."; what the line says otherwise is taken as said.
        if (said := _ORDERED.match(raw[at])) and int(said[1]) != 1:
            self._number = int(said[1])
        return bool(self._items) and self._leave_items(changes)

    def _cut_at(self, units: list[Unit], lines: list[str]) -> tuple[int, int, str | None] | None:
        """How many units are finished, the line where the rest begins, and the mark of a code block
        that begins there inside a list item."""
        for index, unit in enumerate(units):
            if (line := unit.fence_line) is not None and (line + 1 < len(lines)):
                return index, line, "fence"
            if unit.tokens[0].type == "fence" and index and unit.first_line + 1 < len(lines):
                return index, unit.first_line, None
        if len(units) > 1 and not self._ended:
            # Only a whole line says for sure that something new begins there; a table needs two.
            needed = 2 if units[-1].tokens[0].type == "table_open" else 1
            count = len(units) - (1 if units[-1].first_line + needed < len(lines) else 2)
            if count:
                return count, units[count].first_line, None
        return None

    def _finish_units(self, changes: list[Change], units: list[Unit], source: SourceLines) -> None:
        for unit in units:
            changes += (Finished(block) for block in self._blocks_of(unit, source))
            self._passed(unit)

    def _blocks_of(self, unit: Unit, source: SourceLines) -> list[Block]:
        blocks = blocks_of(unit.tokens, source, self._depth, self._start_of(unit))
        if self._head and unit.first_line == 0 and isinstance(blocks[0], TableBlock):
            blocks[0] = replace(blocks[0], continues=True)
        return blocks

    def _start_of(self, unit: Unit) -> int | None:
        if unit.number is None:
            return None
        if unit.position == 0:
            return self._number if self._number is not None else unit.number
        return self._number

    def _passed(self, unit: Unit) -> None:
        """Remember the number of the next item; what is no ordered item ends the count."""
        if unit.number is None:
            self._number = None
        else:
            start = self._start_of(unit)
            self._number = (unit.number if start is None else start) + 1

    def _open_item_code(
        self, changes: list[Change], unit: Unit, lines: list[str], line: int, source: SourceLines
    ) -> None:
        number = self._start_of(unit)
        base = self._columns  # already taken off the lines
        for block in blocks_of(unit.before_fence, source, self._depth, number):
            changes.append(Finished(block))
        for level, item in enumerate(unit.fence_items):
            at = item.map[0] if item.map else line
            mark = _ITEM_MARK.match(lines[at][self._columns - base :])
            columns = self._columns + (len(mark[0].expandtabs(4)) if mark else 0)
            following = int(item.info) + 1 if item.info.isdigit() else None
            if level == 0 and following is not None and number is not None:
                following = number + 1
            self._items.append(_OpenItem(columns, self._depth + 1, following))
        text = lines[line][self._columns - base :]
        self._number = None
        match = FENCE.match(text)
        self._open_code(changes, match[2] if match else "```", match[3] if match else "")

    def _live_or_done(
        self, changes: list[Change], units: list[Unit], raw: list[str], source: SourceLines
    ) -> None:
        if self._ended:
            self._finish_units(changes, units, source)
            self._drop(len(self._tail))
            return
        unit = units[-1]
        is_table = unit.tokens[0].type == "table_open"
        table_limit = _NESTED_TABLE_LIMIT if self._depth else TABLE_LIMIT + self._head
        if len(self._tail) > (table_limit if is_table else LIVE_LIMIT):
            self._cut_long(changes, is_table, raw, source)
            return
        blocks: list[Block] = []
        for unit in units:
            blocks += self._blocks_of(unit, source)
        changes.append(Live(tuple(blocks)))

    def _cut_long(self, changes: list[Change], is_table: bool, raw: list[str], source: SourceLines) -> None:
        if is_table:
            at = self._tail.rfind("\n")
        else:
            half = LIVE_LIMIT // 2
            end = min(LIVE_LIMIT, len(self._tail.rstrip()))  # the rest begins with words
            found = (self._tail.rfind(mark, half, end) + 1 for mark in ("\n", ". ", " "))
            at = next((after for after in found if after), LIVE_LIMIT)
        done = self._tail[:at]
        lines = [tame(self._dedent(line)) for line in done.split("\n")]
        self._finish_units(changes, units_of(self._parse("\n".join(lines))), source)
        self._drop(at + self._tail[at:].startswith("\n"))
        columns = indent(self._tail)
        if is_table:
            head = "\n".join(raw[:2]) + "\n"
            self._head, self._head_at = len(head), source.starts[0]
            self._tail = head + self._tail
        if columns > self._columns + 3:  # else what was nested in a list would be read as code
            self._items.append(_OpenItem(columns, self._depth + 1, None))


class _OpenItem(Struct, frozen=True):
    """A list item that held code and may go on below it; ``next_number`` is its successor's."""

    columns: int
    depth: int
    next_number: int | None
