"""The text of one message as a column of prose and code; grows at its end while it streams."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QRect, QTimer, Signal
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from app.protocol import Piece
from ui.chat.block_writer import LIST_INDENT
from ui.chat.code_view import CodeView
from ui.chat.drafted_text import DraftedText
from ui.chat.markdown_blocks import Block, CodeBlock, TableBlock, TextBlock
from ui.chat.markdown_positions import Origin
from ui.chat.markdown_stream import (
    Change,
    CodeClosed,
    CodeOpened,
    CodeText,
    Finished,
    Live,
    MarkdownStream,
)
from ui.chat.part_selection import PartSelection
from ui.chat.plain_text import plain_changes
from ui.chat.prose_view import ProseView
from ui.chat.table_view import TableView
from ui.theme import Theme

_GAP = 8
_AFTER_CODE = 12
# Beyond this a prose view is closed and the next begins: what is laid out again stays small.
_PROSE_CHARS = 4000
_TABLE_ROWS = 60
_SLICE_CHARS = 1000
_SLICE_S = 0.012
_CODE_SLICE_LINES = 400
_HALF_FENCES = ("`", "``", "~", "~~")


class AnswerBody(QWidget):
    """``write`` text as it comes and ``finish``. Long text that is there already is built in slices:
    ``grown`` tells that the height may have changed without a call from outside."""

    grown = Signal()
    selected = Signal()

    def __init__(
        self, theme: Theme, font: QFont, *, plain: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plain = plain
        self.setFont(font)
        self._text_font = QFont(font)  # the widget's own has followed the window's before it is asked
        self._stream = MarkdownStream()
        self._source: list[str] = []
        self._drafted = DraftedText()
        self._drafters_shown = False
        self._parts: list[ProseView | CodeView] = []
        self._live_parts = 0  # so many of the last ones hold nothing that is finished
        self._indents: list[int] = []
        self._tops: list[int] = []
        self._dirty_from = 0
        self._selection = PartSelection(lambda: [part.editor for part in self._parts], self)
        self._code: CodeView | None = None
        self._pattern: re.Pattern[str] | None = None
        self._current: int | None = None
        self._waiting: deque[Piece | Change] = deque()
        self._finishing = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._build_some)

    # ---- content

    def write(self, pieces: Iterable[Piece]) -> None:
        """Each piece is text and who guessed it."""
        self._queue(pieces)
        self._build(time.monotonic() + _SLICE_S)

    def finish(self) -> None:
        self._finishing = True
        if not self._waiting:  # else the timer does it in its turn
            self._build(time.monotonic() + _SLICE_S)

    @property
    def building(self) -> bool:
        return bool(self._waiting) or self._timer.isActive()

    def parts(self) -> tuple[ProseView | CodeView, ...]:
        return tuple(self._parts)

    def show_drafters(self, shown: bool) -> None:
        """Mark what was guessed in its drafter's colour and pattern, or not. Nothing moves."""
        self._drafters_shown = shown
        for part in self._parts:
            part.show_drafters(shown)

    def recolour(self) -> None:
        """Take the theme's colours and the size of its text."""
        font = QApplication.font()
        resized = font != self._text_font
        self._text_font = font
        self.setFont(font)
        for part in self._parts:
            if resized:
                part.set_font(font)
            part.recolour()
        if resized:
            self._dirty_from = 0

    def _queue(self, pieces: Iterable[Piece]) -> None:
        if self._plain:
            for change in plain_changes("".join(piece.text for piece in pieces)):
                self._waiting += _slices(change)
            return
        for piece in pieces:
            for start in range(0, len(piece.text), _SLICE_CHARS):
                self._waiting.append(Piece(piece.text[start : start + _SLICE_CHARS], piece.drafter))

    def _build(self, until: float) -> None:
        while self._waiting:
            item = self._waiting.popleft()
            if isinstance(item, Piece):
                self._feed(item)
                self._apply(self._stream.changes())
            else:
                self._apply(self._batch(item))
            if time.monotonic() > until:
                break
        if self._waiting:
            self._timer.start()
            return
        self._timer.stop()
        if self._finishing:
            self._finishing = False
            if not self._plain:
                self._apply(self._stream.finish())

    def _feed(self, piece: Piece) -> None:
        """It and what waits behind it, up to what can be read in one go."""
        size = 0
        while True:
            text = self._stream.feed(piece.text)
            self._source.append(text)
            self._drafted.add(len(text), piece.drafter)
            size += len(text)
            following = self._waiting[0] if self._waiting else None
            if size >= _SLICE_CHARS or not isinstance(following, Piece):
                return
            piece = following
            self._waiting.popleft()

    def _batch(self, first: Change) -> list[Change]:
        """Lines of plain text are applied together, not one by one."""
        changes = [first]
        while self._waiting and len(changes) < 50:
            item = self._waiting[0]
            if not isinstance(item, Finished) or not isinstance(first, Finished):
                break
            changes.append(item)
            self._waiting.popleft()
        return changes

    def _build_some(self) -> None:
        self._build(time.monotonic() + _SLICE_S)
        self.grown.emit()

    def _apply(self, changes: Iterable[Change]) -> None:
        finished: list[Block] = []
        live: tuple[Block, ...] = ()
        for change in changes:
            match change:
                case Finished(CodeBlock() as block):
                    self._show_blocks(finished, ())
                    finished = []
                    self._open_code(block.language, block.depth)
                    self._write_code(block.text, block.origin)
                    self._close_code()
                case Finished(block):
                    finished.append(block)
                case Live(blocks):
                    live = _worth_showing(blocks)
                case CodeOpened(language, depth):
                    self._show_blocks(finished, ())
                    finished, live = [], ()
                    self._open_code(language, depth)
                case CodeText(text, origin):
                    self._write_code(text, origin)
                case CodeClosed():
                    self._close_code()
        if self._code is None:
            self._show_blocks(finished, live)
        if self._current is not None:
            self._mark_current()

    def _show_blocks(self, finished: Sequence[Block], live: Sequence[Block]) -> None:
        """Tables have parts of their own, all between them goes together."""
        groups = _groups(finished, live)
        at = len(self._parts) - self._live_parts
        last = self._parts[at - 1] if at else None
        if isinstance(last, ProseView):
            own = groups.pop(0) if groups and _goes_on(last, groups[0]) else _Group()
            last.show_blocks(own.finished, own.live)
            self._touch(at - 1)
            if (
                last.is_empty and groups and not isinstance(last, TableView)
            ):  # what looked like words was the head of a table
                self._drop_from(at - 1)
                at -= 1
        for group in groups:
            kind = TableView if group.is_table else ProseView
            if at < len(self._parts) and type(self._parts[at]) is not kind:
                self._drop_from(at)
            if at == len(self._parts):
                self._add(self._new_prose(kind), 0)
            part = self._parts[at]
            assert isinstance(part, ProseView)
            part.show_blocks(group.finished, group.live)
            self._touch(at)
            at += 1
        self._drop_from(at)
        live_only = 0
        for group in reversed(groups):
            if group.finished:
                break
            live_only += 1
        self._live_parts = live_only

    def _new_prose(self, kind: type[ProseView]) -> ProseView:
        view = kind(self._theme, self.font(), self, drafted=self._drafted)
        self._listen(view)
        return view

    def _listen(self, part: ProseView | CodeView) -> None:
        part.selected.connect(self.selected)
        part.pressed.connect(lambda: self._selection.begin(part.editor))
        part.dragged.connect(lambda place: self._selection.drag(part.editor, place))
        part.asked.connect(self._act_on_selection)

    def _act_on_selection(self, action: str) -> None:
        if action == "select_all":
            self._selection.select_all()
            return
        parts = [part for part in self._parts if part.editor.textCursor().hasSelection()]
        if action == "copy":
            text = "\n\n".join(part.selected_text() for part in parts)
        else:
            ends = [ends for part in parts if (ends := part.selected_source()) is not None]
            text = "".join(self._source)[ends[0][0] : ends[-1][1]] if ends else ""
        if text:
            QGuiApplication.clipboard().setText(text)

    def _open_code(self, language: str, depth: int) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ProseView) and last.is_empty:
            # What looked like words while only half of a fence had come leaves no gap behind.
            self._drop_from(len(self._parts) - 1)
        code = CodeView(self._theme, language, self.font(), self, drafted=self._drafted)
        self._listen(code)
        code.grown.connect(lambda: self._part_grown(code))
        self._code = code
        self._live_parts = 0
        self._add(code, depth * LIST_INDENT)

    def _part_grown(self, part: CodeView) -> None:
        self._touch(self._parts.index(part))
        self.grown.emit()

    def _drop_from(self, at: int) -> None:
        for part in self._parts[at:]:
            part.hide()
            part.deleteLater()
        del self._parts[at:], self._indents[at:], self._tops[at:]
        self._touch(at)

    def _write_code(self, text: str, origin: Origin) -> None:
        assert self._code is not None
        self._code.append(text, origin)
        self._touch(len(self._parts) - 1)

    def _close_code(self) -> None:
        assert self._code is not None
        self._code.close_code()
        if not self._code.text:  # a stray mark at the end of an answer is no code
            self._drop_from(len(self._parts) - 1)
        self._code = None

    def _add(self, part: ProseView | CodeView, indent: int) -> None:
        self._parts.append(part)
        self._indents.append(indent)
        part.show_drafters(self._drafters_shown)
        part.found.show(self._pattern)
        self._touch(len(self._parts) - 1)
        part.show()

    def _touch(self, at: int) -> None:
        self._dirty_from = min(self._dirty_from, max(0, at))

    # ---- what was looked for

    def mark(self, pattern: re.Pattern[str] | None, current: int | None = None) -> None:
        """Mark all that ``pattern`` finds, and one of the matches (by its number, from 0) more."""
        self._pattern, self._current = pattern, current
        for part in self._parts:
            part.found.show(pattern)
        self._mark_current()

    def _mark_current(self) -> None:
        left = -1 if self._current is None else self._current
        for part in self._parts:
            part.found.set_current(left if 0 <= left < part.found.count else None)
            left -= part.found.count

    def match_count(self) -> int:
        return sum(part.found.count for part in self._parts)

    def place_of_match(self, number: int) -> QRect | None:
        """Where the match begins, in here; None where it is not built."""
        for part in self._parts:
            if 0 <= number < part.found.count:
                editor = part.editor
                return part.found.place_of(number).translated(editor.mapTo(self, editor.rect().topLeft()))
            number -= part.found.count
        return None

    def match_below(self, y: int) -> int:
        """The number of the first match at or below ``y``; as many as there are where none is."""
        number = 0
        for part in self._parts:
            if part.geometry().bottom() < y:
                number += part.found.count
                continue
            first = part.found.first_below(y - part.editor.mapTo(self, part.editor.rect().topLeft()).y())
            number += first
            if first < part.found.count:
                break
        return number

    # ---- size

    def fit(self, width: int) -> int:
        """Lay out what changed for ``width``; returns the height."""
        if width != self.width():
            self._dirty_from = 0
        del self._tops[self._dirty_from :]
        y = 0
        if self._tops and self._parts:
            last = self._parts[len(self._tops) - 1]
            y = self._tops[-1] + last.height() + _gap_after(last)
        for index in range(len(self._tops), len(self._parts)):
            part, indent = self._parts[index], min(self._indents[index], width // 3)
            height = part.fit(width - indent)
            part.move(indent, y)
            self._tops.append(y)
            y += height + _gap_after(part)
        self._dirty_from = max(0, len(self._parts) - 1)
        height = max(0, y - _gap_after(self._parts[-1])) if self._parts else 0
        if (self.width(), self.height()) != (width, height):
            self.resize(width, height)
        return height


class _Group(Struct):
    """Blocks that stand in one part."""

    is_table: bool = False
    finished: list[Block] = []
    live: list[Block] = []


def _worth_showing(live: Sequence[Block]) -> tuple[Block, ...]:
    """Not the mark of code that is about to begin: before its language is known nothing can be shown
    that would stay."""
    blocks = [block for block in live if not (isinstance(block, CodeBlock) and not block.text.strip())]
    last = blocks[-1] if blocks else None
    if isinstance(last, TextBlock) and last.spans:
        head, end, line = last.spans[-1].text.rpartition("\u2028")
        if line.strip() in _HALF_FENCES and (end or len(last.spans) == 1):
            spans = (*last.spans[:-1], replace(last.spans[-1], text=head)) if head else last.spans[:-1]
            if spans:
                blocks[-1] = replace(last, spans=spans)
            elif last.marker is None:
                blocks.pop()
    return tuple(blocks)


def _groups(finished: Sequence[Block], live: Sequence[Block]) -> list[_Group]:
    groups: list[_Group] = []
    for block, done in [*((block, True) for block in finished), *((block, False) for block in live)]:
        is_table = isinstance(block, TableBlock) and not block.nested
        goes_on = not is_table or (isinstance(block, TableBlock) and block.continues)
        if not groups or groups[-1].is_table != is_table or not goes_on:
            groups.append(_Group(is_table))
        (groups[-1].finished if done else groups[-1].live).append(block)
    return groups


def _goes_on(part: ProseView, group: _Group) -> bool:
    """Whether what is there already takes in ``group`` as well."""
    if not isinstance(part, TableView):
        return not group.is_table and not (group.finished and part.size_chars > _PROSE_CHARS)
    first = (*group.finished, *group.live)[0]
    return isinstance(first, TableBlock) and first.continues and part.row_count < _TABLE_ROWS


def _gap_after(part: ProseView | CodeView) -> int:
    return _AFTER_CODE if isinstance(part, CodeView) else _GAP  # prose ends with a margin of its own


def _slices(change: Change) -> list[Change]:
    """Very long code is shown piece by piece."""
    if not isinstance(change, CodeText):
        return [change]
    lines = change.text.split("\n")
    pieces: list[Change] = []
    for start in range(0, len(lines), _CODE_SLICE_LINES):
        piece = "\n".join(lines[start : start + _CODE_SLICE_LINES])
        pieces.append(CodeText(piece if not start else "\n" + piece))
    return pieces
