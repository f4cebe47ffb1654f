"""The text of one message as a column of prose and code; grows at its end while it streams."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from ui.chat.block_writer import LIST_INDENT
from ui.chat.code_view import CodeView
from ui.chat.markdown_blocks import Block, CodeBlock
from ui.chat.markdown_stream import (
    Change,
    CodeClosed,
    CodeOpened,
    CodeText,
    Finished,
    Live,
    MarkdownStream,
    plain_changes,
)
from ui.chat.prose_view import ProseView
from ui.theme import Theme

_GAP = 8
_AFTER_CODE = 12
# Beyond this a prose view is closed and the next begins: what is laid out again stays small.
_PROSE_CHARS = 4000
_SLICE_CHARS = 3000
_SLICE_S = 0.012
_CODE_SLICE_LINES = 400


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
        self._stream = MarkdownStream()
        self._parts: list[ProseView | CodeView] = []
        self._indents: list[int] = []
        self._tops: list[int] = []
        self._dirty_from = 0
        self._code: CodeView | None = None
        self._waiting: deque[str | Change] = deque()
        self._finishing = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._build_some)

    # ---- content

    def write(self, text: str) -> None:
        self._queue(text)
        self._build(time.monotonic() + _SLICE_S)

    def finish(self) -> None:
        self._finishing = True
        self._build(time.monotonic() + _SLICE_S)

    @property
    def building(self) -> bool:
        return bool(self._waiting) or self._timer.isActive()

    def parts(self) -> tuple[ProseView | CodeView, ...]:
        return tuple(self._parts)

    def recolour(self) -> None:
        for part in self._parts:
            part.recolour()

    def _queue(self, text: str) -> None:
        if self._plain:
            for change in plain_changes(text):
                self._waiting += _slices(change)
            return
        for start in range(0, len(text), _SLICE_CHARS):
            self._waiting.append(text[start : start + _SLICE_CHARS])

    def _build(self, until: float) -> None:
        while self._waiting:
            item = self._waiting.popleft()
            if isinstance(item, str):
                self._stream.feed(item)
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
                    self._show_prose(finished, ())
                    finished = []
                    self._open_code(block.language, block.depth)
                    self._write_code(block.text)
                    self._close_code()
                case Finished(block):
                    finished.append(block)
                case Live(blocks):
                    live = blocks
                case CodeOpened(language, depth):
                    self._show_prose(finished, ())
                    finished, live = [], ()
                    self._open_code(language, depth)
                case CodeText(text):
                    self._write_code(text)
                case CodeClosed():
                    self._close_code()
        if self._code is None:
            self._show_prose(finished, live)

    def _show_prose(self, finished: list[Block], live: tuple[Block, ...]) -> None:
        view = self._parts[-1] if self._parts else None
        if not isinstance(view, ProseView):
            if not finished and not live:
                return
            view = self._new_prose()
        if finished and view.size_chars > _PROSE_CHARS:
            view.show_blocks((), ())
            self._touch()
            view = self._new_prose()
        view.show_blocks(finished, live)
        self._touch()

    def _new_prose(self) -> ProseView:
        view = ProseView(self._theme, self.font(), self)
        view.selected.connect(self.selected)
        self._add(view, 0)
        return view

    def _open_code(self, language: str, depth: int) -> None:
        self._drop_empty_prose()
        code = CodeView(self._theme, language, self)
        code.selected.connect(self.selected)
        self._code = code
        self._add(code, depth * LIST_INDENT)

    def _drop_empty_prose(self) -> None:
        """What looked like words while only half of a fence had come leaves no gap behind."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ProseView) and last.is_empty:
            self._drop_last()

    def _drop_last(self) -> None:
        last = self._parts.pop()
        self._indents.pop()
        del self._tops[len(self._parts) :]
        self._touch()
        last.hide()
        last.deleteLater()

    def _write_code(self, text: str) -> None:
        assert self._code is not None
        self._code.append(text)
        self._touch()

    def _close_code(self) -> None:
        assert self._code is not None
        self._code.close_code()
        if not self._code.text:  # a stray mark at the end of an answer is no code
            self._drop_last()
        self._code = None

    def _add(self, part: ProseView | CodeView, indent: int) -> None:
        self._parts.append(part)
        self._indents.append(indent)
        self._touch()
        part.show()

    def _touch(self) -> None:
        self._dirty_from = min(self._dirty_from, max(0, len(self._parts) - 1))

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
