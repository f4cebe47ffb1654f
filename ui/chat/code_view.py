"""A block of code in an answer: its language, a Copy button, and lines that never wrap."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QPlainTextEdit, QToolTip, QWidget

from ui import theme as measures
from ui.bidi import parts_visible, visible
from ui.chat.code_colours import CodeColours, Run
from ui.chat.draft_marks import DraftMarks, qt_length
from ui.chat.drafted_text import DraftedText
from ui.chat.found_marks import FoundMarks
from ui.chat.markdown_positions import Origin
from ui.theme import Theme, code_font, small_font
from ui.widgets.quiet_button import QuietButton

_HEADER = 32
_PAD = 12
_SLICE_S = 0.008
_COPIED_MS = 1500


class CodeView(QWidget):
    """``append`` as the code comes, ``close`` when it is whole. Its height follows its lines."""

    selected = Signal()
    grown = Signal()
    pressed = Signal()  # this and the next as in ProseView
    dragged = Signal(QPoint)
    asked = Signal(str)

    def __init__(
        self,
        theme: Theme,
        language: str,
        font: QFont | None = None,
        parent: QWidget | None = None,
        *,
        drafted: DraftedText | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.marks = DraftMarks(DraftedText() if drafted is None else drafted)
        self._text: list[str] = []
        self._colours = CodeColours(language)
        self._formats: dict[str, QTextCharFormat] = {}
        self._runs: dict[int, list[Run]] = {}
        self._closed = False
        self._pending: Iterator[tuple[int, list[Run]]] | None = None
        self._label = QLabel(visible(language) or "text", self)
        self._label.setProperty("role", "small")
        self._copy = QuietButton(theme, "copy", "Copy", self)
        self._copy.setCursor(Qt.CursorShape.PointingHandCursor)
        self._copy.setAccessibleName("Copy code")
        self._copy.clicked.connect(self._copy_all)
        self._wrap = QuietButton(theme, "wrap", "Wrap", self)
        self._wrap.setCheckable(True)
        self._wrap.setCursor(Qt.CursorShape.PointingHandCursor)
        self._wrap.setAccessibleName("Wrap long lines")
        self._wrap.setToolTip("Break lines that are longer than the text is wide, or scroll them")
        self._wrap.toggled.connect(self._wrap_toggled)
        self._wrap.hide()
        self._edit = _CodeEdit(theme, self.marks, self)
        self._edit.copyAvailable.connect(lambda yes: self.selected.emit() if yes else None)
        self._edit.pressed.connect(self.pressed)
        self._edit.dragged.connect(self.dragged)
        self._edit.asked.connect(self.asked)
        self.found = FoundMarks(theme, self._edit)
        self._line = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._colour_some)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setAccessibleName(f"Code, {language}" if language else "Code")
        self._show_copy()
        self._make_formats()
        self.set_font(font or QApplication.font())

    @property
    def text(self) -> str:
        return "".join(self._text)

    def append(self, text: str, origin: Origin = ()) -> None:
        """Add code at the end, which stands in the answer where ``origin`` says; the selection stays
        where it is."""
        self._text.append(text)
        cursor = QTextCursor(self._edit.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        self.marks.forget_block(cursor.block().position())
        self._mark(text, origin, cursor.position())
        line_at = cursor.block().position()
        cursor.insertText(visible(text))
        if self.found.active:
            self.found.text_changed(line_at)
        self._colour_end()

    def _mark(self, text: str, origin: Origin, position: int) -> None:
        start = 0
        for length, at in origin:
            for part in parts_visible(text[start : start + length]):
                shown = visible(part)
                if shown == part:
                    self.marks.add(part, position, at)
                position += qt_length(shown)
                at += len(part) if at >= 0 else 0
            start += length

    def close_code(self) -> None:
        """The code is whole: colour all of it, a little at a time."""
        self._closed = True
        if self._colours_known():
            self._pending = self._colours.all_lines(self._edit.toPlainText())
            self._timer.start()

    def recolour(self) -> None:
        """Take the colours of the theme."""
        self._make_formats()
        self.found.recolour()
        for number, runs in self._runs.items():
            self._put(self._edit.document().findBlockByNumber(number), runs)
        self._edit.viewport().update()
        self.update()

    def set_font(self, font: QFont) -> None:
        """Code is a little smaller than the text in ``font``."""
        self._edit.set_size(small_font(font).pixelSize())
        self._line = QFontMetricsF(self._edit.font()).lineSpacing()
        self.marks.forget()

    def show_drafters(self, shown: bool) -> None:
        """Mark what was guessed, or not. Nothing is laid out again."""
        if shown != self.marks.shown:
            self.marks.shown = shown
            self._edit.viewport().update()

    def fit(self, width: int) -> int:
        edit_width = width - 2 * _PAD
        wrapped = self._wrap.isChecked()
        # The scroll bar itself hears of a new size only once it is shown.
        wide = not wrapped and self._edit.document().size().width() > edit_width
        lines = self._edit.line_count(edit_width) if wrapped else self._edit.document().blockCount()
        height = round(lines * self._line + 1) + 2
        bar = self._edit.horizontalScrollBar().sizeHint().height() if wide else 0
        total = _HEADER + height + _PAD + bar
        if wrapped and edit_width != self._edit.width():
            self.marks.forget()
        self._edit.setGeometry(_PAD, _HEADER, edit_width, total - _HEADER - 2)
        right = width - 6
        self._wrap.setVisible(wide or wrapped)
        for button in (self._copy, self._wrap):
            size = button.sizeHint()
            right -= size.width()
            button.setGeometry(right, (_HEADER - size.height()) // 2, size.width(), size.height())
            right -= 4
        self._label.setGeometry(_PAD, 4, max(0, right - _PAD), _HEADER - 8)
        if (self.width(), self.height()) != (width, total):
            self.resize(width, total)
        return total

    def _wrap_toggled(self, wrapped: bool) -> None:
        self._edit.set_wrapped(wrapped)
        self._wrap.setText("Unwrap" if wrapped else "Wrap")
        self.marks.forget()
        self.grown.emit()

    @property
    def editor(self) -> QPlainTextEdit:
        return self._edit

    def selected_text(self) -> str:
        return self._edit.textCursor().selectedText().replace("\u2029", "\n")

    def selected_source(self) -> tuple[int, int] | None:
        """From where to where in the source the selected text stands."""
        cursor = self._edit.textCursor()
        return self.marks.source_of(cursor.selectionStart(), cursor.selectionEnd())

    # ---- colours

    def _make_formats(self) -> None:
        for role in ("keyword", "string", "comment", "number", "name", "type"):
            char_format = QTextCharFormat()
            char_format.setForeground(self._theme.colour(f"code_{role}"))
            self._formats[role] = char_format

    def _colour_end(self) -> None:
        if self._pending is not None or not self._colours_known():
            return
        block = self._edit.document().findBlockByNumber(self._colours.first_line)
        lines: list[str] = []
        while block.isValid():
            lines.append(block.text())
            block = block.next()
        for number, runs in self._colours.added(lines):
            if self._runs.get(number, []) != runs:
                self._put(self._edit.document().findBlockByNumber(number), runs)
                self._runs[number] = runs

    def _colours_known(self) -> bool:
        """Whether there are colours for the language by now. Reading how a language is written takes
        long, the first time: it has a turn of the event loop to itself."""
        if not self._colours.loaded:
            self._timer.start()
            return False
        return self._colours.known

    def _colour_some(self) -> None:
        if not self._colours.loaded:
            self._colours.load()
            self._timer.stop()
            if self._closed:
                self.close_code()
            else:
                self._colour_end()
            return
        until = time.monotonic() + _SLICE_S
        assert self._pending is not None
        for number, runs in self._pending:
            if self._runs.get(number, []) != runs:
                self._put(self._edit.document().findBlockByNumber(number), runs)
                self._runs[number] = runs
            if time.monotonic() > until:
                return
        self._timer.stop()
        self._edit.viewport().update()

    def _put(self, block: QTextBlock, runs: list[Run]) -> None:
        ranges: list[QTextLayout.FormatRange] = []
        for start, length, role in runs:
            one = QTextLayout.FormatRange()
            one.start, one.length, one.format = start, length, self._formats[role]
            ranges.append(one)
        block.layout().setFormats(ranges)
        self._edit.document().markContentsDirty(block.position(), block.length())

    # ---- the rest

    def _show_copy(self, done: bool = False) -> None:
        self._copy.setText("Copied" if done else "Copy")
        self._copy.show_icon("check" if done else "copy")

    def _copy_all(self) -> None:
        QGuiApplication.clipboard().setText(self.text)
        self._show_copy(done=True)
        self.fit(self.width())
        QTimer.singleShot(_COPIED_MS, self, self._copied_shown)

    def _copied_shown(self) -> None:
        self._show_copy()
        self.fit(self.width())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.colour("line"))
        painter.setBrush(self._theme.colour("code_background"))
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(area, measures.RADIUS, measures.RADIUS)


class _CodeEdit(QPlainTextEdit):
    """Left to right whatever it holds; scrolls sideways only."""

    pressed = Signal()
    dragged = Signal(QPoint)
    asked = Signal(str)

    def __init__(self, theme: Theme, marks: DraftMarks, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._marks = marks
        self.setProperty("role", "code")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._wrapped = False
        self.setAccessibleName("Code")
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)

    def set_size(self, pixels: int) -> None:
        self.setFont(code_font(pixels))
        self._set_option()

    def set_wrapped(self, wrapped: bool) -> None:
        self._wrapped = wrapped
        mode = QPlainTextEdit.LineWrapMode
        self.setLineWrapMode(mode.WidgetWidth if wrapped else mode.NoWrap)
        self._set_option()

    def line_count(self, width: int) -> int:
        """How many lines there are when they wrap at ``width``."""
        document = self.document()
        document.setTextWidth(width)
        count = 0
        block = document.begin()
        while block.isValid():
            document.documentLayout().blockBoundingRect(block)  # lays it out
            count += block.layout().lineCount()
            block = block.next()
        return count

    def _set_option(self) -> None:
        option = QTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        option.setAlignment(Qt.AlignmentFlag.AlignLeft)
        option.setTabStopDistance(4 * QFontMetricsF(self.font()).horizontalAdvance(" "))
        wrap = QTextOption.WrapMode
        option.setWrapMode(wrap.WrapAtWordBoundaryOrAnywhere if self._wrapped else wrap.NoWrap)
        self.document().setDefaultTextOption(option)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._marks.shown:
            super().paintEvent(event)
            return
        blocks = list(self._blocks_in(QRectF(event.rect())))
        dark = self._theme.tokens.dark
        painter = QPainter(self.viewport())
        for block, origin in blocks:
            self._marks.draw_tints(painter, block, origin, dark)
        painter.end()
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        for block, origin in blocks:
            self._marks.draw_lines(painter, block, origin, dark)
        painter.end()

    def _blocks_in(self, area: QRectF) -> Iterator[tuple[QTextBlock, QPointF]]:
        block = self.cursorForPosition(area.topLeft().toPoint()).block()
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if place.top() > area.bottom():
                return
            yield block, place.topLeft()
            block = block.next()

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and self.horizontalScrollBar().maximum():
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() - (delta.x() or delta.y()))
            event.accept()
        else:
            event.ignore()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            at = event.pos()  # type: ignore[attr-defined]
            drafter = self._marks.help_at(self.cursorForPosition(at).position())
            QToolTip.showText(self.mapToGlobal(at), drafter or "", self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.globalPosition().toPoint())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.asked.emit("copy")
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.asked.emit("select_all")
        else:
            event.ignore()
