"""A block of code in an answer: its language, a Copy button, and lines that never wrap."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QWidget

from ui import theme as measures
from ui.bidi import visible
from ui.chat.code_colours import CodeColours, Run
from ui.theme import Theme, code_font
from ui.widgets.quiet_button import QuietButton

_HEADER = 32
_PAD = 12
_SLICE_S = 0.008
_COPIED_MS = 1500


class CodeView(QWidget):
    """``append`` as the code comes, ``close`` when it is whole. Its height follows its lines."""

    selected = Signal()

    def __init__(self, theme: Theme, language: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text: list[str] = []
        self._colours = CodeColours(language)
        self._formats: dict[str, QTextCharFormat] = {}
        self._runs: dict[int, list[Run]] = {}
        self._pending: Iterator[tuple[int, list[Run]]] | None = None
        self._label = QLabel(visible(language) or "text", self)
        self._label.setProperty("role", "small")
        self._copy = QuietButton(theme, "copy", "Copy", self)
        self._copy.setCursor(Qt.CursorShape.PointingHandCursor)
        self._copy.setAccessibleName("Copy code")
        self._copy.clicked.connect(self._copy_all)
        self._edit = _CodeEdit(self)
        self._edit.copyAvailable.connect(lambda yes: self.selected.emit() if yes else None)
        self._line = QFontMetricsF(self._edit.font()).lineSpacing()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._colour_some)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setAccessibleName(f"Code, {language}" if language else "Code")
        self._show_copy()
        self._make_formats()

    @property
    def text(self) -> str:
        return "".join(self._text)

    def append(self, text: str) -> None:
        """Add code at the end; the selection stays where it is."""
        self._text.append(text)
        cursor = QTextCursor(self._edit.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(visible(text))
        self._colour_end()

    def close_code(self) -> None:
        """The code is whole: colour all of it, a little at a time."""
        if self._colours.known:
            self._pending = self._colours.all_lines(self._edit.toPlainText())
            self._timer.start()

    def recolour(self) -> None:
        self._make_formats()
        for number, runs in self._runs.items():
            self._put(self._edit.document().findBlockByNumber(number), runs)
        self._edit.viewport().update()
        self.update()

    def fit(self, width: int) -> int:
        lines = self._edit.document().blockCount()
        bar = self._edit.horizontalScrollBar()
        height = round(lines * self._line + 1) + 2
        edit_width = width - 2 * _PAD
        wide = bar.maximum() > bar.minimum()
        total = _HEADER + height + _PAD + (bar.sizeHint().height() if wide else 0)
        self._edit.setGeometry(_PAD, _HEADER, edit_width, total - _HEADER - 2)
        if bar.maximum() > bar.minimum() and not wide:
            return self.fit(width)
        self._label.setGeometry(_PAD, 4, width // 2, _HEADER - 8)
        size = self._copy.sizeHint()
        self._copy.setGeometry(
            width - size.width() - 6, (_HEADER - size.height()) // 2, size.width(), size.height()
        )
        if (self.width(), self.height()) != (width, total):
            self.resize(width, total)
        return total

    def has_selection(self) -> bool:
        return self._edit.textCursor().hasSelection()

    # ---- colours

    def _make_formats(self) -> None:
        for role in ("keyword", "string", "comment", "number", "name", "type"):
            char_format = QTextCharFormat()
            char_format.setForeground(self._theme.colour(f"code_{role}"))
            self._formats[role] = char_format

    def _colour_end(self) -> None:
        if not self._colours.known or self._pending is not None:
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

    def _colour_some(self) -> None:
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

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "code")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFont(code_font(measures.SMALL_PX))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabStopDistance(4 * QFontMetricsF(self.font()).horizontalAdvance(" "))
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAccessibleName("Code")
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        option = QTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        option.setAlignment(Qt.AlignmentFlag.AlignLeft)
        option.setTabStopDistance(self.tabStopDistance())
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        self.document().setDefaultTextOption(option)

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and self.horizontalScrollBar().maximum():
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() - (delta.x() or delta.y()))
            event.accept()
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) or event.matches(QKeySequence.StandardKey.SelectAll):
            super().keyPressEvent(event)
        else:
            event.ignore()
