"""Text of an answer between two code blocks: as high as its text, it never fetches anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QDesktopServices,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QTextBrowser, QToolTip, QWidget

from ui import links
from ui.bidi import visible
from ui.chat.block_writer import (
    FORMULA_NUMBER,
    FORMULA_PROPERTY,
    QUOTE_INDENT,
    QUOTE_PROPERTY,
    RULE_PROPERTY,
    TASK_PROPERTY,
    BlockWriter,
)
from ui.chat.draft_marks import DraftMarks
from ui.chat.drafted_text import DraftedText
from ui.chat.found_marks import FoundMarks
from ui.chat.markdown_blocks import Block
from ui.theme import Theme

_SHOWN_URL = 80


class _Document(QTextDocument):
    """A document that never loads anything, whatever is written into it."""

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        return None


class ProseView(QTextBrowser):
    """Finished blocks stay as they are; only the live ones at the end are written again.

    ``drafted`` tells who guessed which part of the source. Its selection may be a part of a larger one:
    ``pressed`` begins one and ``dragged`` goes on with it; ``asked`` names what is to be done with all of
    it: "copy", "copy_source" or "select_all".
    """

    selected = Signal()
    pressed = Signal()
    dragged = Signal(QPoint)  # on the screen
    asked = Signal(str)

    def __init__(
        self,
        theme: Theme,
        font: QFont,
        parent: QWidget | None = None,
        *,
        drafted: DraftedText | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.marks = DraftMarks(DraftedText() if drafted is None else drafted)
        self.found = FoundMarks(theme, self)
        self._finished: list[Block] = []
        self._live: tuple[Block, ...] = ()
        self._live_at = 0  # where the live blocks begin in the document
        self._last_format = QTextBlockFormat()  # of the last finished block
        self._last_block: Block | None = None
        self.size_chars = 0  # length of the finished text
        document = _Document(self)
        document.setDocumentMargin(0)
        document.setUndoRedoEnabled(False)
        document.setDefaultFont(font)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(option)
        self.setDocument(document)
        self.setFont(font)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName("Message text")
        self.anchorClicked.connect(self._ask_before_opening)
        self.copyAvailable.connect(self._copy_available)
        self._writer = self._new_writer()

    def _new_writer(self) -> BlockWriter:
        self.marks.cut(0)
        return BlockWriter(self.document(), self.font(), self._theme.tokens, self.marks)

    # ---- content

    def show_blocks(self, finished: Sequence[Block], live: Sequence[Block]) -> None:
        """Add ``finished`` and show ``live`` after all that is finished."""
        if not finished and tuple(live) == self._live:
            return
        ends = self._selection()
        changed_at = self._live_at
        if self._live and not self._finished:
            self.document().clear()
            self._writer = self._new_writer()
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        if self._live and self._finished:
            self._remove_live(cursor)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        for block in finished:
            self._writer.write(cursor, block)
        if finished:
            self._finished += finished
            self._live_at = cursor.position()
            self._last_format = cursor.blockFormat()
            self._last_block = finished[-1]
            self.size_chars = cursor.position()
        for block in live:
            self._writer.write(cursor, block)
        self._live = tuple(live)
        cursor.endEditBlock()
        if self.found.active:
            self.found.text_changed(changed_at)
        if ends is not None:
            self._restore_selection(*ends)

    @property
    def is_empty(self) -> bool:
        return not self._finished and not self._live

    def _remove_live(self, cursor: QTextCursor) -> None:
        self.marks.cut(self._live_at)
        cursor.setPosition(self._live_at)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        # An empty last block takes over the format of what was removed after it.
        cursor.setBlockFormat(self._last_format)
        self._writer.previous = self._last_block

    def _selection(self) -> tuple[int, int] | None:
        """Where it begins and ends, in the order in which it was made."""
        cursor = self.textCursor()
        return (cursor.anchor(), cursor.position()) if cursor.hasSelection() else None

    def _restore_selection(self, anchor: int, position: int) -> None:
        end = self.document().characterCount() - 1
        cursor = self.textCursor()
        if (cursor.anchor(), cursor.position()) == (anchor, position):
            return
        cursor.setPosition(min(anchor, end))
        cursor.setPosition(min(position, end), QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def recolour(self) -> None:
        """Write everything again in the colours of the theme."""
        finished, live = self._finished, self._live
        self.document().clear()
        self._writer = self._new_writer()
        self._finished, self._live, self._live_at = [], (), 0
        self.show_blocks(finished, live)

    def set_font(self, font: QFont) -> None:
        """Write everything again in ``font``."""
        self.setFont(font)
        self.document().setDefaultFont(font)
        self.recolour()

    def show_drafters(self, shown: bool) -> None:
        """Mark what was guessed, or not. Nothing is laid out again."""
        if shown != self.marks.shown:
            self.marks.shown = shown
            self.viewport().update()

    def fit(self, width: int) -> int:
        """Take ``width`` and the height that the text needs there; returns that height."""
        if self.width() != width:
            self.resize(width, self.height())  # which lays out the text of a visible widget
            self.marks.forget()
        if self.document().textWidth() != width:  # a hidden widget hears of its new size only later
            self.document().setTextWidth(width)
            self.marks.forget()
        height = round(self.document().size().height() + 0.49)
        if self.height() != height:
            self.resize(width, height)
        return height

    # ---- behaviour

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        return None

    def _copy_available(self, available: bool) -> None:
        if available:
            self.selected.emit()

    def _ask_before_opening(self, url: QUrl) -> None:
        self.link_menu(url.toString(QUrl.ComponentFormattingOption.FullyEncoded)).popup(
            self.mapToGlobal(self._menu_at)
        )

    _menu_at = QPoint()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.globalPosition().toPoint())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._menu_at = event.position().toPoint()
        super().mouseReleaseEvent(event)

    def link_menu(self, address: str) -> QMenu:
        """Says where a link leads and offers to open it, if it is one that may be opened."""
        link = links.judge(address)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        shown = visible(address)
        head = menu.addAction(f"Leads to {link.target}" if link.target else "This link is not opened")
        words = QFont(menu.font())
        words.setWeight(QFont.Weight.DemiBold)
        head.setFont(words)
        for line in (link.warning, shown if len(shown) <= _SHOWN_URL else shown[:_SHOWN_URL] + "…"):
            if line:
                menu.addAction(line.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        if link.openable:
            menu.addAction("Open in the browser").triggered.connect(lambda: _open(link))
        menu.addAction("Copy the address").triggered.connect(
            lambda: QGuiApplication.clipboard().setText(address)
        )
        return menu

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            at = event.pos()  # type: ignore[attr-defined]
            QToolTip.showText(self.mapToGlobal(at), self._help_at(at), self)  # without words it is hidden
            return True
        return super().event(event)

    def _help_at(self, place: QPoint) -> str:
        """Where a link leads, and who guessed the word."""
        lines: list[str] = []
        if address := self.anchorAt(place):
            lines = [links.judge(address).target or "not opened", visible(address)[:400]]
        if drafter := self.marks.help_at(self.cursorForPosition(place).position()):
            lines.append(drafter)
        return "\n".join(lines)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction("Copy")
        copy.setEnabled(self.textCursor().hasSelection())
        copy.triggered.connect(lambda: self.asked.emit("copy"))
        as_written = menu.addAction("Copy as Markdown")
        as_written.setEnabled(self.selected_source() is not None)
        as_written.triggered.connect(lambda: self.asked.emit("copy_source"))
        menu.addAction("Select all").triggered.connect(lambda: self.asked.emit("select_all"))
        menu.popup(event.globalPos())

    @property
    def editor(self) -> QTextBrowser:
        return self

    def selected_source(self) -> tuple[int, int] | None:
        """From where to where in the source the selected text stands."""
        cursor = self.textCursor()
        return self.marks.source_of(cursor.selectionStart(), cursor.selectionEnd())

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text, with each formula as the LaTeX it was written in."""
        data = QMimeData()
        data.setText(self.selected_text())
        return data

    def selected_text(self) -> str:
        cursor = self.textCursor()
        return self._words(cursor.selectionStart(), cursor.selectionEnd())

    def _words(self, start: int, end: int) -> str:
        parts: list[str] = []
        block = self.document().findBlock(start)
        while block.isValid() and block.position() < end:
            if block.position() > start:
                parts.append("\n")
            number = None
            iterator = block.begin()
            while not iterator.atEnd():
                fragment = iterator.fragment()
                iterator += 1
                first, last = fragment.position(), fragment.position() + fragment.length()
                if last <= start or first >= end:
                    continue
                char_format = fragment.charFormat()
                formula = char_format.property(FORMULA_PROPERTY)
                if formula is None:
                    cursor = QTextCursor(self.document())
                    cursor.setPosition(max(first, start))
                    cursor.setPosition(min(last, end), QTextCursor.MoveMode.KeepAnchor)
                    parts.append(cursor.selectedText().replace("\u2028", "\n"))
                    number = None
                elif char_format.property(FORMULA_NUMBER) != number:
                    number = char_format.property(FORMULA_NUMBER)
                    parts.append(str(formula))
            block = block.next()
        return "".join(parts)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Scrolling belongs to the message list; what is left here is selecting and copying.
        if event.matches(QKeySequence.StandardKey.Copy):
            self.asked.emit("copy")
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.asked.emit("select_all")
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            super().keyPressEvent(event)
        else:
            event.ignore()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not (self._writer.decorated or self.marks.shown):
            super().paintEvent(event)
            return
        area = QRectF(event.rect()).translated(self.horizontalScrollBar().value(), 0)
        blocks = list(self._blocks_in(area))
        painter = QPainter(self.viewport())
        painter.translate(-self.horizontalScrollBar().value(), 0)
        for block, place in blocks:
            block_format = block.blockFormat()
            quote = block_format.property(QUOTE_PROPERTY)
            rule = block_format.property(RULE_PROPERTY)
            if quote or rule:
                self._draw_mark(painter, place, int(quote or 0), block.layout().textOption())
            if task := block_format.property(TASK_PROPERTY):
                self._draw_task(painter, block, place, done=task == 2)
            if self.marks.shown:
                self.marks.draw_tints(painter, block, place.topLeft(), self._theme.tokens.dark)
        painter.end()
        super().paintEvent(event)
        if self.marks.shown:
            painter = QPainter(self.viewport())
            painter.translate(-self.horizontalScrollBar().value(), 0)
            for block, place in blocks:
                self.marks.draw_lines(painter, block, place.topLeft(), self._theme.tokens.dark)
            painter.end()

    def _blocks_in(self, area: QRectF) -> Iterator[tuple[QTextBlock, QRectF]]:
        """The blocks that are seen in ``area``, and where they stand."""
        layout = self.document().documentLayout()
        block = self.document().begin()
        while block.isValid():
            place = layout.blockBoundingRect(block)
            if place.intersects(area):
                yield block, place
            elif place.top() > area.bottom() and QTextCursor(block).currentTable() is None:
                return
            block = block.next()

    def _draw_task(self, painter: QPainter, block: QTextBlock, place: QRectF, *, done: bool) -> None:
        """A box that says whether it is done; it cannot be clicked, for it is the model's."""
        line = block.layout().lineAt(0)
        size = round(line.ascent() * 0.85)
        top = round(place.top() + line.y() + line.ascent() - size + 1)
        rtl = block.layout().textOption().textDirection() == Qt.LayoutDirection.RightToLeft
        left = round(place.right() + 8 if rtl else place.left() + line.x() - size - 8)
        box = QRectF(left + 0.5, top + 0.5, size - 1, size - 1)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.colour("accent" if done else "muted"), 1.2))
        painter.setBrush(self._theme.colour("accent") if done else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, 3, 3)
        if done:
            tick = [(0.22, 0.52), (0.42, 0.72), (0.78, 0.3)]
            painter.setPen(QPen(self._theme.colour("on_accent"), 1.6))
            painter.drawPolyline(
                QPolygonF(
                    [QPointF(box.left() + x * box.width(), box.top() + y * box.height()) for x, y in tick]
                )
            )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _draw_mark(self, painter: QPainter, area: QRectF, quote: int, option: QTextOption) -> None:
        line = QColor(self._theme.tokens.line)
        if not quote:
            painter.fillRect(QRectF(0, area.center().y(), self.viewport().width(), 1), line)
            return
        rtl = option.textDirection() == Qt.LayoutDirection.RightToLeft
        for level in range(quote):
            x = level * QUOTE_INDENT
            if rtl:
                x = self.viewport().width() - x - 3
            painter.fillRect(QRectF(x, area.top(), 3, area.height()), line)


def _open(link: links.Link) -> None:
    QDesktopServices.openUrl(QUrl(link.url, QUrl.ParsingMode.StrictMode))
