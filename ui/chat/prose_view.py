"""Text of an answer between two code blocks: as high as its text, it never fetches anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, QUrl, Signal
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
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QTextBrowser, QToolTip, QWidget

from ui import links
from ui.bidi import visible
from ui.chat.block_writer import QUOTE_INDENT, QUOTE_PROPERTY, RULE_PROPERTY, BlockWriter
from ui.chat.markdown_blocks import Block
from ui.theme import Theme

_SHOWN_URL = 80


class _Document(QTextDocument):
    """A document that never loads anything, whatever is written into it."""

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        return None


class ProseView(QTextBrowser):
    """Finished blocks stay as they are; only the live ones at the end are written again."""

    selected = Signal()

    def __init__(self, theme: Theme, font: QFont, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
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
        self._writer = BlockWriter(document, font, theme.tokens)

    # ---- content

    def show_blocks(self, finished: Sequence[Block], live: Sequence[Block]) -> None:
        """Add ``finished`` and show ``live`` after all that is finished."""
        if not finished and tuple(live) == self._live:
            return
        kept = self.textCursor() if self.textCursor().hasSelection() else None
        ends = (kept.anchor(), kept.position()) if kept is not None else None
        if self._live and not self._finished:
            self.document().clear()
            self._writer = BlockWriter(self.document(), self.font(), self._theme.tokens)
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
        if ends is not None:
            self._restore_selection(*ends)

    @property
    def is_empty(self) -> bool:
        return not self._finished and not self._live

    def _remove_live(self, cursor: QTextCursor) -> None:
        cursor.setPosition(self._live_at)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        # An empty last block takes over the format of what was removed after it.
        cursor.setBlockFormat(self._last_format)
        self._writer.previous = self._last_block

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
        self._writer = BlockWriter(self.document(), self.font(), self._theme.tokens)
        self._finished, self._live, self._live_at = [], (), 0
        self.show_blocks(finished, live)

    def fit(self, width: int) -> int:
        """Take ``width`` and the height that the text needs there; returns that height."""
        if self.width() != width:
            self.resize(width, self.height())
        if self.document().textWidth() != width:  # a hidden widget hears of its new size only later
            self.document().setTextWidth(width)
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
            address = self.anchorAt(at)
            if address:
                link = links.judge(address)
                QToolTip.showText(
                    self.mapToGlobal(at), f"{link.target or 'not opened'}\n{visible(address)[:400]}", self
                )
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction("Copy")
        copy.setEnabled(self.textCursor().hasSelection())
        copy.triggered.connect(self.copy)
        menu.addAction("Select all").triggered.connect(self.selectAll)
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Scrolling belongs to the message list; what is left here is selecting and copying.
        if (
            event.matches(QKeySequence.StandardKey.Copy)
            or event.matches(QKeySequence.StandardKey.SelectAll)
            or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        ):
            super().keyPressEvent(event)
        else:
            event.ignore()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        layout = self.document().documentLayout()
        block = self.document().begin()
        while block.isValid():
            block_format = block.blockFormat()
            quote = block_format.property(QUOTE_PROPERTY)
            rule = block_format.property(RULE_PROPERTY)
            if quote or rule:
                area = layout.blockBoundingRect(block)
                self._draw_mark(painter, area, int(quote or 0), block.layout().textOption())
            block = block.next()
        painter.end()
        super().paintEvent(event)

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
