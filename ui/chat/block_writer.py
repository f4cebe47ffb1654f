"""Writes blocks of an answer into a QTextDocument: no HTML, no resources, colours of the theme."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextLength,
    QTextListFormat,
    QTextTable,
    QTextTableCellFormat,
    QTextTableFormat,
)

from ui import theme
from ui.chat.draft_marks import DraftMarks
from ui.chat.markdown_blocks import Block, CodeBlock, Span, TableBlock, TextBlock
from ui.theme import Tokens

# Which blocks the view draws a quote's bar, a rule or a task's box beside.
QUOTE_PROPERTY = QTextFormat.Property.UserProperty + 1
RULE_PROPERTY = QTextFormat.Property.UserProperty + 2
TASK_PROPERTY = QTextFormat.Property.UserProperty + 6  # 1 for a task that is open, 2 for one that is done
_FRESH = QTextFormat.Property.UserProperty + 3  # the empty block that Qt puts after a table
FORMULA_PROPERTY = QTextFormat.Property.UserProperty + 4  # the LaTeX that a run shows a part of
FORMULA_NUMBER = QTextFormat.Property.UserProperty + 5  # tells two formulas in a row apart

QUOTE_INDENT = 16
LIST_INDENT = 24
_GAP = 10
_TIGHT_GAP = 3
_HEADING_PX = {1: 20, 2: 17, 3: 15}
_BULLETS = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)
_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}


class BlockWriter:
    """Appends blocks at a cursor. The cursor stands at the document's end; ``marks`` hear which part of
    the source is written where."""

    def __init__(self, document: QTextDocument, font: QFont, tokens: Tokens, marks: DraftMarks) -> None:
        document.setIndentWidth(LIST_INDENT)
        # What stands before the next block; whoever takes blocks away again puts it back.
        self.previous: Block | None = None
        self.decorated = False
        """Some block has more beside its text than the text's own formats: a quote, a rule, a task."""
        self._written = False  # the document's first block is there before anything is written
        self._font = font
        self._tokens = tokens
        self._marks = marks
        self._formula: str | None = None  # the one that the last span was a part of
        self._formulas = 0
        self._math_font = theme.math_font(font.pixelSize() + 1)
        self._code_font = theme.code_font(font.pixelSize() - 1)
        metrics = QFontMetricsF(font)
        self._line = 100 * theme.LINE_HEIGHT * font.pixelSize() / metrics.lineSpacing()

    def write(self, cursor: QTextCursor, block: Block) -> None:
        if isinstance(block, TableBlock):
            self._table(cursor, block)
        elif isinstance(block, TextBlock):
            self._text(cursor, block)
        else:
            self._text(cursor, _as_text(block))
        self.previous = block

    def _room_above(self, block: TextBlock | TableBlock) -> int:
        """Items of a list stand close together; where the list ends there is the usual room."""
        before = self.previous
        if not isinstance(before, TextBlock) or not before.tight:
            return 0
        if isinstance(block, TextBlock) and block.tight:
            same = (before.marker == "-") == (block.marker == "-") or before.depth != block.depth
            if same:
                return 0
        return _GAP - _TIGHT_GAP

    def _text(self, cursor: QTextCursor, block: TextBlock) -> None:
        block_format = QTextBlockFormat()
        block_format.setLineHeight(self._line, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        block_format.setBottomMargin(_TIGHT_GAP if block.tight else _GAP)
        block_format.setLayoutDirection(
            Qt.LayoutDirection.RightToLeft if block.rtl else Qt.LayoutDirection.LeftToRight
        )
        in_item = block.marker is not None
        block_format.setIndent(block.depth - 1 if in_item else block.depth)
        if block.quote:
            margin = block.quote * QUOTE_INDENT
            block_format.setProperty(QUOTE_PROPERTY, block.quote)
            if block.rtl:
                block_format.setRightMargin(margin)
            else:
                block_format.setLeftMargin(margin)
        block_format.setTopMargin(self._room_above(block))
        if block.kind == "heading":
            block_format.setTopMargin(block_format.topMargin() + 6)
            block_format.setHeadingLevel(block.level)
        if block.kind == "rule":
            block_format.setProperty(RULE_PROPERTY, True)
        if block.checked is not None:
            block_format.setIndent(block.depth)
            block_format.setProperty(TASK_PROPERTY, 2 if block.checked else 1)
        if block.kind == "formula":
            block_format.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        if block.kind == "code":
            block_format.setBackground(QColor(self._tokens.inline_code))
            block_format.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if block.quote or block.kind == "rule" or block.checked is not None:
            self.decorated = True
        base = self._char_format(block)
        self._begin_block(cursor, block_format, base)
        if block.marker is not None and block.checked is None:
            self._mark(cursor, block)
        self._spans(cursor, block.spans, base)

    def _spans(self, cursor: QTextCursor, spans: Sequence[Span], base: QTextCharFormat) -> None:
        """Neighbours in one style are written together: one by one would take much longer."""
        position = cursor.position()
        for _, group in itertools.groupby(spans, lambda span: span.style):
            texts: list[str] = []
            for span in group:
                text = _lines(span.text)
                self._marks.add(text, position, span.at)
                position += (
                    len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
                )
                texts.append(text)
            if span.formula is not None and span.formula is not self._formula:
                self._formulas += 1
            self._formula = span.formula
            cursor.insertText("".join(texts), self._span_format(span, base))

    def _begin_block(
        self, cursor: QTextCursor, block_format: QTextBlockFormat, char_format: QTextCharFormat
    ) -> None:
        # The document's first block is there already, and so is the one that follows a table.
        if not self._written or cursor.blockFormat().property(_FRESH):
            cursor.setBlockFormat(block_format)
            cursor.setBlockCharFormat(char_format)
        else:
            cursor.insertBlock(block_format, char_format)
        self._written = True

    def _mark(self, cursor: QTextCursor, block: TextBlock) -> None:
        list_format = QTextListFormat()
        list_format.setIndent(1)
        assert block.marker is not None
        if block.marker == "-":
            list_format.setStyle(_BULLETS[(block.depth - 1) % len(_BULLETS)])
        else:
            list_format.setStyle(QTextListFormat.Style.ListDecimal)
            list_format.setStart(int(block.marker[:-1]))
        # A list of its own for each item: nothing of what is finished depends on what comes.
        cursor.createList(list_format)

    def _char_format(self, block: TextBlock) -> QTextCharFormat:
        result = QTextCharFormat()
        font = QFont(self._font)
        if block.kind == "heading":
            scale = self._font.pixelSize() / theme.FONT_PX
            font.setPixelSize(round(scale * _HEADING_PX.get(block.level, theme.FONT_PX)))
            font.setWeight(QFont.Weight.DemiBold)
        if block.kind == "rule":
            font.setPixelSize(4)
        result.setFont(font)
        if block.quote:
            result.setForeground(QColor(self._tokens.muted))
        return result

    def _span_format(self, span: Span, base: QTextCharFormat) -> QTextCharFormat:
        result = QTextCharFormat(base)
        if span.code:
            result.setFont(
                self._code_font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesAll
            )
            result.setBackground(QColor(self._tokens.inline_code))
            result.setForeground(QColor(self._tokens.text))
        if span.formula is not None:
            result.setFont(
                self._math_font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesAll
            )
            result.setProperty(FORMULA_PROPERTY, span.formula)
            result.setProperty(FORMULA_NUMBER, self._formulas)
            if span.script:
                result.setVerticalAlignment(
                    QTextCharFormat.VerticalAlignment.AlignSuperScript
                    if span.script > 0
                    else QTextCharFormat.VerticalAlignment.AlignSubScript
                )
        if span.bold:
            result.setFontWeight(QFont.Weight.DemiBold)
        if span.italic:
            result.setFontItalic(True)
        if span.strike:
            result.setFontStrikeOut(True)
        if span.link is not None:
            result.setAnchor(True)
            result.setAnchorHref(span.link)
            result.setForeground(QColor(self._tokens.accent))
            result.setFontUnderline(True)
        return result

    def _table(self, cursor: QTextCursor, block: TableBlock) -> None:
        table = self.begin_table(cursor, block)
        self.add_rows(table, block)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        # Qt puts a block after each table; until it is used it takes no room.
        after = QTextBlockFormat()
        after.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        after.setProperty(_FRESH, True)
        cursor.setBlockFormat(after)

    def begin_table(self, cursor: QTextCursor, block: TableBlock) -> QTextTable:
        """A table with nothing but the head of ``block``."""
        columns = max(1, len(block.rows[0]))
        table_format = QTextTableFormat()
        table_format.setBorderCollapse(True)
        table_format.setBorder(1)
        table_format.setBorderStyle(QTextTableFormat.BorderStyle.BorderStyle_Solid)  # else lit from above
        table_format.setBorderBrush(QBrush(QColor(self._tokens.line)))
        table_format.setCellPadding(6)
        table_format.setCellSpacing(0)
        table_format.setHeaderRowCount(1)
        table_format.setBottomMargin(_GAP)
        table_format.setTopMargin(2 + self._room_above(block))
        table_format.setLeftMargin(block.depth * LIST_INDENT)
        table_format.setColumnWidthConstraints([QTextLength(QTextLength.Type.VariableLength, 0)] * columns)
        table = cursor.insertTable(1, columns, table_format)
        self._written = True
        self._row(table, 0, block)
        return table

    def add_rows(self, table: QTextTable, block: TableBlock) -> None:
        """Add the rows of ``block`` below its head."""
        first = table.rows()
        if len(block.rows) > 1:
            table.appendRows(len(block.rows) - 1)
        for offset in range(1, len(block.rows)):
            self._row(table, first + offset - 1, block, offset)

    def _row(self, table: QTextTable, to: int, block: TableBlock, row: int = 0) -> None:
        for column, spans in enumerate(block.rows[row]):
            cell = table.cellAt(to, column)
            cell_format = QTextTableCellFormat()
            base = QTextCharFormat()
            font = QFont(self._font)
            if row == 0:
                font.setWeight(QFont.Weight.DemiBold)
                cell_format.setBackground(QColor(self._tokens.panel))
            base.setFont(font)
            cell.setFormat(cell_format)
            inner = cell.firstCursorPosition()
            alignment = QTextBlockFormat()
            alignment.setAlignment(_ALIGNMENTS[block.alignments[column]])
            inner.setBlockFormat(alignment)
            self._spans(inner, spans, base)


def _lines(text: str) -> str:
    """A line break inside a paragraph is U+2028 for Qt; a bare one would begin a new paragraph."""
    return text.replace("\n", "\u2028").replace("\u2029", "\u2028")


def _as_text(block: CodeBlock) -> TextBlock:
    return TextBlock(kind="code", spans=(Span(block.text, code=True),), depth=block.depth)
