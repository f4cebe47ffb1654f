"""The speed history as a tree of rows, with a bar below what can be compared."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from ui.speed import drafters
from ui.speed.history_rows import COLUMNS, HistoryRow, largest
from ui.theme import Theme

_SHARE = Qt.ItemDataRole.UserRole  # of a bar, 0 to 1
_DRAFTER = Qt.ItemDataRole.UserRole + 1
_TARGET = Qt.ItemDataRole.UserRole + 2
_KEY = Qt.ItemDataRole.UserRole + 3  # the same row again, after it was read anew
_BAR_PX, _PAD = 3, 8


class HistoryTable(QTreeWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: Sequence[HistoryRow] = ()
        self.setObjectName("history")
        self.setAccessibleName("Speed by model and kind of text")
        self.setColumnCount(1 + len(COLUMNS))
        self.setHeaderLabels(["Model and text", *(column.title for column in COLUMNS)])
        head = self.headerItem()
        head.setToolTip(0, "Models with their drafters, what kinds of text they wrote, and who drafted it.")
        for place, column in enumerate(COLUMNS, 1):
            head.setToolTip(place, column.help)
            head.setTextAlignment(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.header().setStretchLastSection(False)
        self.header().setSectionsMovable(False)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        for place in range(1, self.columnCount()):
            self.header().setSectionResizeMode(place, QHeaderView.ResizeMode.ResizeToContents)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setUniformRowHeights(True)
        self.setItemDelegate(_Bars(theme, self))
        theme.changed.connect(self._recolour)

    def show_rows(self, rows: Sequence[HistoryRow]) -> None:
        """What was folded and chosen stays so, where it is still there."""
        open_before = {str(item.data(0, _KEY)): item.isExpanded() for item in self._items()}
        chosen = self.target
        self._rows = rows
        self.clear()
        for pair in rows:
            top = self._add(self.invisibleRootItem(), pair, pair)
            for kind in pair.children:
                below = self._add(top, kind, pair)
                for link in kind.children:
                    self._add(below, link, pair)
        for item in self._items():
            is_pair = item.parent() is None
            # At first the kinds are seen, not yet who drafted.
            item.setExpanded(open_before.get(str(item.data(0, _KEY)), is_pair))
            if is_pair and item.data(0, _TARGET) == chosen:
                self.setCurrentItem(item)
        self._fit_names()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_names()

    def _fit_names(self) -> None:
        """The names take what the numbers leave; where that is little, the table scrolls sideways."""
        least = self.fontMetrics().horizontalAdvance("Repeated source") * 2
        rest = sum(self.header().sectionSize(place) for place in range(1, self.columnCount()))
        self.header().resizeSection(0, max(least, self.viewport().width() - rest))

    @property
    def target(self) -> str | None:
        """The key of the model whose row is chosen."""
        items = self.selectedItems()
        return None if not items else str(items[0].data(0, _TARGET))

    def _items(self) -> list[QTreeWidgetItem]:
        """Of pairs and kinds."""
        pairs = _children(self.invisibleRootItem())
        return [*pairs, *(kind for pair in pairs for kind in _children(pair))]

    def _add(self, above: QTreeWidgetItem, row: HistoryRow, pair: HistoryRow) -> QTreeWidgetItem:
        item = QTreeWidgetItem(above)
        item.setText(0, row.name)
        item.setToolTip(0, row.name)
        item.setData(0, _TARGET, row.target)
        item.setData(0, _KEY, f"{pair.name}\n{'' if row is pair else row.name}")
        item.setData(0, _DRAFTER, row.drafter)
        if row.drafter is not None:
            item.setToolTip(0, drafters.look(row.drafter).help)
            item.setIcon(0, self._dot(row.drafter))
        elif row is pair:
            font = QFont(self.font())
            font.setWeight(QFont.Weight.DemiBold)
            item.setFont(0, font)
        for place, column in enumerate(COLUMNS, 1):
            item.setText(place, column.text(row))
            item.setTextAlignment(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            item.setToolTip(place, column.help)
            value = column.bar(row) if column.bar is not None else None
            whole = largest(pair, column)
            if value is not None and whole > 0:
                item.setData(place, _SHARE, min(1.0, value / whole))
                item.setData(place, _DRAFTER, row.drafter)
        return item

    def _dot(self, drafter: str) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(round(10 * ratio), round(10 * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(drafters.look(drafter).colour(self._theme.tokens.dark)))
        painter.drawEllipse(QRectF(1, 1, 8, 8))
        painter.end()
        return picture

    def _recolour(self) -> None:
        self.show_rows(self._rows)


def _children(item: QTreeWidgetItem) -> list[QTreeWidgetItem]:
    return [child for at in range(item.childCount()) if (child := item.child(at)) is not None]


class _Bars(QStyledItemDelegate):
    """A thin bar below a number, in the drafter's colour where it is one's."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        size = super().sizeHint(option, index)
        return QSize(max(size.width() + 2 * _PAD, 84 if index.column() else 0), max(size.height() + 12, 32))

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        share = index.data(_SHARE)
        if share is None:
            return
        drafter = index.data(_DRAFTER)
        colour = self._theme.colour("accent")
        if drafter is not None:
            colour = QColor(drafters.look(str(drafter)).colour(self._theme.tokens.dark))
        area: QRectF = QRectF(option.rect).adjusted(_PAD, 0, -_PAD, -4)
        track = QRectF(area.left(), area.bottom() - _BAR_PX, area.width(), _BAR_PX)
        painter.fillRect(track, self._theme.colour("line"))
        track.setWidth(track.width() * float(share))
        painter.fillRect(track, colour)
