"""Draws a row of the list of chats, and lets its title be typed over."""

from __future__ import annotations

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from ui.chat.chat_list_model import Role, Row
from ui.icons import icon
from ui.theme import RADIUS, Theme, small_font

_ROOM = 6  # above and below the title, at least
_SIDE = 8  # from the edge of the list to the row's ground
_PAD = 8
_MARK = 8
_ICON = 16


class ChatListDelegate(QStyledItemDelegate):
    """``ended``: a title is not typed over any more."""

    ended = Signal()

    def __init__(self, theme: Theme, parent: QAbstractItemView) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        words = option.fontMetrics.height()
        return QSize(0, max(self._theme.measures.row_px, words + _ROOM))

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        row = index.data(Role.ROW)
        if not isinstance(row, Row):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        state = option.state
        area: QRect = option.rect.adjusted(_SIDE, 1, -_SIDE, -1)
        self._ground(painter, area, state, bool(index.data(Role.SHOWN)), row)
        if row.chat is None:
            self._heading(painter, area, row, option.font)
        else:
            self._chat(painter, area, index, option.font)
        painter.restore()

    def _ground(self, painter: QPainter, area: QRect, state: QStyle.StateFlag, shown: bool, row: Row) -> None:
        tokens = self._theme.tokens
        can_act = row.chat is not None or row.group.kind == "folder"
        hovered = can_act and bool(state & QStyle.StateFlag.State_MouseOver)
        focused = bool(state & QStyle.StateFlag.State_HasFocus) and bool(
            state & QStyle.StateFlag.State_Selected
        )
        painter.setPen(QColor(tokens.accent) if focused else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.hover) if shown or hovered else Qt.BrushStyle.NoBrush)
        if shown or hovered or focused:
            painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS - 2, RADIUS - 2)

    def _heading(self, painter: QPainter, area: QRect, row: Row, font: QFont) -> None:
        tokens = self._theme.tokens
        words = area.adjusted(_PAD, 0, -_PAD, 0)
        if row.group.kind == "folder":
            mark = QRect(words.left() - 2, area.center().y() - _ICON // 2 + 1, _ICON, _ICON)
            icon("right" if row.folded else "down", tokens.muted).paint(painter, mark)
            words.setLeft(words.left() + _ICON)
        small = small_font(font)
        small.setWeight(QFont.Weight.DemiBold)
        painter.setFont(small)
        painter.setPen(QColor(tokens.muted))
        if row.group.kind != "folder":  # nearer to what it heads than to what is above
            words.setTop(words.top() + 6)
        title = painter.fontMetrics().elidedText(row.group.title, Qt.TextElideMode.ElideRight, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)

    def _chat(
        self,
        painter: QPainter,
        area: QRect,
        index: QModelIndex | QPersistentModelIndex,
        font: QFont,
    ) -> None:
        tokens = self._theme.tokens
        words = area.adjusted(_PAD, 0, -_PAD, 0)
        if index.data(Role.BUSY):
            words.setRight(words.right() - _MARK - 6)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.accent))
            painter.drawEllipse(
                QRectF(area.right() - _PAD - _MARK + 1, area.center().y() - _MARK / 2 + 1, _MARK, _MARK)
            )
        painter.setFont(font)
        painter.setPen(QColor(tokens.text))
        title = painter.fontMetrics().elidedText(
            str(index.data(Qt.ItemDataRole.DisplayRole)), Qt.TextElideMode.ElideRight, words.width()
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)

    # ---- renaming in place

    def createEditor(
        self,
        parent: QWidget,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> QWidget:
        edit = QLineEdit(parent)
        edit.setProperty("look", "rename")
        edit.setAccessibleName("Name of the chat")
        return edit

    def updateEditorGeometry(
        self,
        editor: QWidget,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        editor.setGeometry(option.rect.adjusted(_SIDE, 1, -_SIDE, -1))

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:
        # At once: Qt would do it later, when the focus may have left the editor and ended it already.
        if (
            isinstance(editor, QWidget)
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        ):
            self.commitData.emit(editor)
            self.closeEditor.emit(editor, QAbstractItemDelegate.EndEditHint.NoHint)
            return True
        return super().eventFilter(editor, event)

    def destroyEditor(self, editor: QWidget, index: QModelIndex | QPersistentModelIndex) -> None:
        super().destroyEditor(editor, index)
        self.ended.emit()
