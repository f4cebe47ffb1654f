"""Searching all chats: a thread that looks, and the list of what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.chats.database import FoundText
from app.chats.errors import ChatsError
from ui.bidi import visible
from ui.theme import RADIUS, Theme, small_font

Search = Callable[[str], Sequence[FoundText]]
AnyIndex = QModelIndex | QPersistentModelIndex

_PAUSE_MS = 120  # in typing, before it is looked for
_BETWEEN = 2  # the two lines of a row
_SIDE, _PAD = 8, 8


class ChatSearcher(QObject):
    """``found`` carries the results of the text asked for last, ``failed`` why there are none."""

    found = Signal(str, list)
    failed = Signal(str)
    _ended = Signal(int, str, object)

    def __init__(self, search: Search, parent: QObject | None = None) -> None:
        """``search`` may be called on another thread, while an earlier call still runs."""
        super().__init__(parent)
        self._search = search
        self._pool: ThreadPoolExecutor | None = None
        self._asked = 0
        self._text = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._start)
        self._ended.connect(self._take, Qt.ConnectionType.QueuedConnection)

    def ask(self, text: str) -> None:
        """Look for ``text`` once nothing was typed for a moment; an empty one only ends what runs."""
        self._asked += 1
        self._text = text
        if text:
            self._timer.start()
        else:
            self._timer.stop()

    def close(self) -> None:
        """Wait for what runs. For shutdown only."""
        self._timer.stop()
        self._asked += 1
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _start(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, thread_name_prefix="chat-search")
        self._pool.submit(self._run, self._asked, self._text)

    def _run(self, asked: int, text: str) -> None:
        if asked != self._asked:
            return
        result: list[FoundText] | str
        try:
            result = list(self._search(text))
        except ChatsError as error:
            result = error.message
        self._ended.emit(asked, text, result)

    def _take(self, asked: int, text: str, result: list[FoundText] | str) -> None:
        if asked != self._asked:
            return
        if isinstance(result, str):
            self.failed.emit(result)
        else:
            self.found.emit(text, result)


class FoundRole(IntEnum):
    FOUND = Qt.ItemDataRole.UserRole


class FoundModel(QAbstractListModel):
    """One row for each place; ``title_of`` gives the title of a chat."""

    def __init__(self, title_of: Callable[[int], str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._title_of = title_of
        self._found: tuple[FoundText, ...] = ()

    def show_found(self, found: Sequence[FoundText]) -> None:
        self.beginResetModel()
        self._found = tuple(found)
        self.endResetModel()

    def found_at(self, index: AnyIndex) -> FoundText | None:
        return self._found[index.row()] if index.isValid() and index.row() < len(self._found) else None

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._found)

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        found = self.found_at(index)
        if found is None:
            return None
        title = visible(self._title_of(found.chat))
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return title
            case Qt.ItemDataRole.ToolTipRole:
                return title if found.message is None else f"{title}\n{visible(found.excerpt)}"
            case Qt.ItemDataRole.AccessibleTextRole:
                return title if found.message is None else f"{title}: {visible(found.excerpt)}"
            case FoundRole.FOUND:
                return found
        return None


class FoundList(QListView):
    """``opened`` carries a FoundText. Up on the first row goes back to where the search was typed."""

    opened = Signal(object)
    left_upwards = Signal()

    def __init__(self, theme: Theme, title_of: Callable[[int], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chats")
        self.setAccessibleName("Search results")
        self.rows = FoundModel(title_of, self)
        self.setModel(self.rows)
        self.setItemDelegate(FoundDelegate(theme, self))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.clicked.connect(self._open)
        theme.changed.connect(self.scheduleDelayedItemsLayout)

    def show_found(self, found: Sequence[FoundText]) -> None:
        self.rows.show_found(found)
        if found:
            self.setCurrentIndex(self.rows.index(0))

    def _open(self, index: QModelIndex) -> None:
        found = self.rows.found_at(index)
        if found is not None:
            self.opened.emit(found)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open(self.currentIndex())
        elif event.key() == Qt.Key.Key_Up and self.currentIndex().row() <= 0:
            self.left_upwards.emit()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()
        else:
            super().keyPressEvent(event)


class FoundDelegate(QStyledItemDelegate):
    """A title, and below it the text around what was looked for, which is marked."""

    def __init__(self, theme: Theme, parent: QAbstractItemView) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        font: QFont = option.font
        lines = QFontMetrics(font).height() + QFontMetrics(small_font(font)).height()
        return QSize(0, lines + _BETWEEN + 2 * self._theme.measures.gap_px)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        found = index.data(FoundRole.FOUND)
        if not isinstance(found, FoundText):
            return
        tokens = self._theme.tokens
        area: QRect = option.rect.adjusted(_SIDE, 1, -_SIDE, -1)
        state: QStyle.StateFlag = option.state
        font: QFont = option.font
        selected = bool(state & QStyle.StateFlag.State_Selected)
        focused = selected and bool(state & QStyle.StateFlag.State_HasFocus)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(QColor(tokens.accent) if focused else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.hover))
            painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS - 2, RADIUS - 2)
        words = area.adjusted(_PAD, 0, -_PAD, 0)
        title = str(index.data(Qt.ItemDataRole.DisplayRole))
        if found.message is None:
            self._line(painter, words, title, found.marks if title == found.excerpt else (), font, "text")
        else:
            small = small_font(font)
            top = words.top() + self._theme.measures.gap_px - 1
            upper = QRect(words.left(), top, words.width(), QFontMetrics(font).height())
            top += upper.height() + _BETWEEN
            lower = QRect(words.left(), top, words.width(), QFontMetrics(small).height())
            self._line(painter, upper, title, (), font, "text")
            self._line(painter, lower, visible_marks(found)[0], visible_marks(found)[1], small, "muted")
        painter.restore()

    def _line(
        self,
        painter: QPainter,
        area: QRect,
        text: str,
        marks: Sequence[tuple[int, int]],
        font: QFont,
        role: str,
    ) -> None:
        metrics = QFontMetrics(font)
        text, marks = brought_into_view(text, marks, area.width(), metrics)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        layout = QTextLayout(shown, font)
        formats = []
        for start, end in marks:
            part = QTextLayout.FormatRange()
            # Qt counts in UTF-16
            part.start = _units(shown[:start])
            part.length = _units(shown[start:end])
            style = QTextCharFormat()
            style.setBackground(self._theme.colour("selection"))
            style.setForeground(self._theme.colour("on_selection"))
            part.format = style
            if part.length > 0:
                formats.append(part)
        layout.setFormats(formats)
        layout.beginLayout()
        line = layout.createLine()
        layout.endLayout()
        if line.isValid():
            painter.setPen(self._theme.colour(role))
            top = area.top() + (area.height() - line.height()) / 2
            layout.draw(painter, QPointF(area.left(), top))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def visible_marks(found: FoundText) -> tuple[str, Sequence[tuple[int, int]]]:
    """The excerpt with direction controls spelled out; its marks only where they still fit."""
    text = visible(found.excerpt)
    return text, found.marks if text == found.excerpt else ()


def brought_into_view(
    text: str, marks: Sequence[tuple[int, int]], width: int, metrics: QFontMetrics
) -> tuple[str, Sequence[tuple[int, int]]]:
    """``text`` cut at its beginning, at a word, so that the first mark is within ``width`` pixels."""
    if not marks or metrics.horizontalAdvance(text[: marks[0][1]]) <= width * 0.8:
        return text, marks
    cut = marks[0][0]
    while cut > 0 and metrics.horizontalAdvance(text[cut : marks[0][1]]) < width * 0.5:
        cut = text.rfind(" ", 0, max(0, cut - 1)) + 1
    if cut == 0:
        cut = marks[0][0]
    shift = cut - 1  # for the dots
    return f"…{text[cut:]}", [(start - shift, end - shift) for start, end in marks if start >= cut]
