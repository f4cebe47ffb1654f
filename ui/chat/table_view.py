"""A table of an answer: as wide as the text; one that needs more room scrolls sideways by itself."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextCursor, QTextOption, QTextTable, QWheelEvent
from PySide6.QtWidgets import QWidget

from ui.chat.drafted_text import DraftedText
from ui.chat.markdown_blocks import Block, TableBlock
from ui.chat.prose_view import ProseView
from ui.theme import Theme


class TableView(ProseView):
    """One table, which grows by rows: those that are finished stay as they are. Words stay whole, so that
    a column is never thinner than its longest word."""

    def __init__(
        self, theme: Theme, font: QFont, parent: QWidget | None = None, *, drafted: DraftedText | None = None
    ) -> None:
        super().__init__(theme, font, parent, drafted=drafted)
        self._table: QTextTable | None = None
        self._finished_rows = 0  # with the head
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WordWrap)
        self.document().setDefaultTextOption(option)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setAccessibleName("Table")

    @property
    def row_count(self) -> int:
        """Of those that are finished."""
        return self._finished_rows

    def show_blocks(self, finished: Sequence[Block], live: Sequence[Block]) -> None:
        """Add the rows of ``finished`` and show those of ``live`` after all that are finished."""
        if not finished and tuple(live) == self._live:
            return
        ends = self._selection()
        if not self._finished:  # its head may still change
            self._table = None
            self.document().clear()
            self._writer = self._new_writer()
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        if self._table is not None:
            self._remove_live_rows(self._table)
        for block in finished:
            self._finished_rows = self._write(cursor, block)
        for block in live:
            self._write(cursor, block)
        cursor.endEditBlock()
        self._mark_found()
        self._finished += finished
        self._live = tuple(live)
        # Without a selection Qt scrolls to where the last word was written.
        self._restore_selection(*(ends or (0, 0)))

    def _write(self, cursor: QTextCursor, block: Block) -> int:
        """Returns how many rows there are now."""
        assert isinstance(block, TableBlock)
        if self._table is None:
            self._table = self._writer.begin_table(cursor, block)
            if block.continues and self._table.columns():  # a head that is only repeated is not found
                self.found.begin = self._table.cellAt(0, self._table.columns() - 1).lastPosition() + 1
        self._writer.add_rows(self._table, block)
        return self._table.rows()

    def _mark_found(self) -> None:
        """In all of it: the rows of one table are not the document's last text alone."""
        if self.found.active:
            self.found.text_changed()

    def _remove_live_rows(self, table: QTextTable) -> None:
        count = table.rows() - self._finished_rows
        if count > 0:
            self.marks.cut(table.cellAt(self._finished_rows, 0).firstPosition())
            table.removeRows(self._finished_rows, count)

    def fit(self, width: int) -> int:
        height = super().fit(width)
        if self.document().size().width() > width + 1:
            height += self.horizontalScrollBar().sizeHint().height()
            self.resize(width, height)
        return height

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        bar = self.horizontalScrollBar()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and bar.maximum():
            bar.setValue(bar.value() - (delta.x() or delta.y()))
            event.accept()
        else:
            event.ignore()
