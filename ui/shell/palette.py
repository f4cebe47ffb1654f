"""The command palette: a line to type in, and what fits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from ui.bidi import visible
from ui.icons import icon
from ui.shell.entries import Entry, Found, search
from ui.theme import RADIUS, SPACE, SPACE_TIGHT, Theme, small_font

_WIDTH = 620
_ROWS = 10
_PAD, _GAP, _ICON = 12, 12, 16
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class Palette(QWidget):
    """Lies over the whole window while it is open; a click beside it closes it.

    ``entries`` is asked each time it opens. Keys alone are enough: type, move, Enter, Esc.
    """

    def __init__(self, theme: Theme, entries: Callable[[], Sequence[Entry]], parent: QWidget) -> None:
        super().__init__(parent)
        self._window = parent
        self._theme = theme
        self._ask = entries
        self._entries: Sequence[Entry] = ()
        self._before: QWidget | None = None
        self._box = QFrame(self)
        self._box.setObjectName("palette")
        self.edit = QLineEdit(self._box)
        self.edit.setPlaceholderText("Search actions, chats and models")
        self.edit.setAccessibleName("Command palette")
        self.edit.setProperty("look", "palette")
        self.edit.addAction(icon("search", theme.tokens.muted), QLineEdit.ActionPosition.LeadingPosition)
        self.edit.textChanged.connect(self._typed)
        self.edit.installEventFilter(self)
        self.list = QListView(self._box)
        self.list.setAccessibleName("What fits")
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setMouseTracking(True)
        self._model = _FoundModel(self)
        self.list.setModel(self._model)
        self._delegate = _Row(theme, self)
        self.list.setItemDelegate(self._delegate)
        self.list.clicked.connect(self._run)
        self.list.entered.connect(self.list.setCurrentIndex)
        self.nothing = QLabel("Nothing is called that.", self._box)
        self.nothing.setProperty("role", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        help = QLabel("↑ ↓ move   Enter opens   Esc closes", self._box)
        help.setProperty("role", "small")
        column = QVBoxLayout(self._box)
        column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        column.setSpacing(SPACE_TIGHT)
        column.addWidget(self.edit)
        column.addWidget(self.list)
        column.addWidget(self.nothing)
        column.addWidget(help, 0, Qt.AlignmentFlag.AlignHCenter)
        parent.installEventFilter(self)
        theme.changed.connect(self._colour)
        self.hide()

    # ---- open and closed

    def open(self) -> None:
        """Show it with an empty line; what had the focus gets it back."""
        window = self._window
        self._before = window.focusWidget() if not self.isVisible() else self._before
        self._entries = self._ask()
        self.edit.clear()
        self._typed("")
        self.setGeometry(window.rect())
        self.show()
        self.raise_()
        self._place()
        self.edit.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_palette(self) -> None:
        if not self.isVisible():
            return
        self.hide()
        before, self._before = self._before, None
        if before is not None and _alive(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)
        self._entries = ()

    # ---- inside

    def _typed(self, text: str) -> None:
        found = search(text, self._entries)
        self._model.show_found(found)
        self.list.setVisible(bool(found))
        self.nothing.setVisible(not found)
        if found:
            self.list.setCurrentIndex(self._model.index(0))
            self.list.scrollToTop()
        self._say()
        self._place()

    def _say(self) -> None:
        found = self._model.found_at(self.list.currentIndex())
        words = "" if found is None else f"{found.entry.title}, {found.entry.kind_word}"
        self.edit.setAccessibleDescription(words or self.nothing.text())

    def _place(self) -> None:
        width = max(280, min(_WIDTH, self.width() - 48))
        rows = min(_ROWS, self._model.rowCount(), max(3, (self.height() - 180) // self._delegate.height()))
        self.list.setFixedHeight(max(1, rows) * self._delegate.height() + 2)
        self._box.setFixedWidth(width)
        self._box.adjustSize()
        self._box.move((self.width() - self._box.width()) // 2, max(16, self.height() // 8))

    def _run(self, index: QModelIndex | QPersistentModelIndex) -> None:
        found = self._model.found_at(index)
        self.close_palette()
        if found is not None:
            found.entry.run()

    def _move(self, key: int) -> None:
        rows = self._model.rowCount()
        if not rows:
            return
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -_ROWS, Qt.Key.Key_PageDown: _ROWS}
        at, step = self.list.currentIndex().row(), steps[Qt.Key(key)]
        at = (at + step) % rows if abs(step) == 1 else min(rows - 1, max(0, at + step))
        self.list.setCurrentIndex(self._model.index(at))
        self._say()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.edit and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
                event.accept()  # else the window's own Esc takes it
                return True
            if event.type() == QEvent.Type.KeyPress:
                return self._key(event)
        elif watched is self._window and event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self._window.rect())
            self._place()
        return False

    def _key(self, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Escape:
            self.close_palette()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self.list.currentIndex())
        elif event.key() in _MOVES:
            self._move(event.key())
        elif event.key() not in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):  # the focus stays here
            return False
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._box.geometry().contains(event.position().toPoint()):
            self.close_palette()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self._theme.colour("shade"))

    def _colour(self) -> None:
        for action in self.edit.actions():
            action.setIcon(icon("search", self._theme.tokens.muted))
        self.update()


def _alive(widget: QWidget) -> bool:
    from shiboken6 import isValid

    return isValid(widget)


class _FoundModel(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._found: list[Found] = []

    def show_found(self, found: list[Found]) -> None:
        self.beginResetModel()
        self._found = found
        self.endResetModel()

    def found_at(self, index: QModelIndex | QPersistentModelIndex) -> Found | None:
        return self._found[index.row()] if index.isValid() and index.row() < len(self._found) else None

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._found)

    def data(
        self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        found = self.found_at(index)
        if found is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return found.entry.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{found.entry.title}, {found.entry.kind_word}, {found.entry.keys}".rstrip(", ")
        return None


class _Row(QStyledItemDelegate):
    """Icon, name with the letters that fit in bold, keys or kind at the right."""

    def __init__(self, theme: Theme, palette: Palette) -> None:
        super().__init__(palette)
        self._theme = theme
        self._palette = palette

    def height(self) -> int:
        return max(32, QFontMetrics(self._palette.font()).height() + 14)

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        size = super().sizeHint(option, index)
        size.setHeight(self.height())
        return size

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        model = index.model()
        assert isinstance(model, _FoundModel)
        found = model.found_at(index)
        if found is None:
            return
        tokens = self._theme.tokens
        area: QRect = option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setBrush(QColor(tokens.hover))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(area.adjusted(0, 1, 0, -1), RADIUS, RADIUS)
        square = QRect(area.left() + _PAD, area.center().y() - _ICON // 2, _ICON, _ICON)
        icon(found.entry.icon_name, tokens.muted).paint(painter, square)
        small = small_font(self._palette.font())
        note = found.entry.keys or found.entry.kind_word
        width = QFontMetrics(small).horizontalAdvance(note)
        painter.setFont(small)
        painter.setPen(QColor(tokens.muted))
        right = area.adjusted(0, 0, -_PAD, 0)
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, note)
        left = square.right() + _GAP
        self._name(
            painter, found, QRect(left, area.top(), right.right() - width - _GAP - left, area.height())
        )
        painter.restore()

    def _name(self, painter: QPainter, found: Found, area: QRect) -> None:
        """In runs of one weight; a name with marks in it that change direction is drawn plain."""
        plain = QFont(self._palette.font())
        bold = QFont(plain)
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setPen(QColor(self._theme.tokens.text))
        title = found.entry.title
        shown = QFontMetrics(bold).elidedText(visible(title), Qt.TextElideMode.ElideRight, area.width())
        if not found.match.positions or not shown.isascii() or shown != title:
            painter.setFont(plain)
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, shown)
            return
        marked = set(found.match.positions)
        x, at = area.left(), 0
        while at < len(shown):
            end = at
            while end < len(shown) and (end in marked) == (at in marked):
                end += 1
            painter.setFont(bold if at in marked else plain)
            painter.drawText(
                QRect(x, area.top(), area.width(), area.height()),
                Qt.AlignmentFlag.AlignVCenter,
                shown[at:end],
            )
            x += painter.fontMetrics().horizontalAdvance(shown[at:end])
            at = end
