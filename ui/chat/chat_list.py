"""The list of chats in the sidebar: opened, renamed, sorted and removed with mouse or keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from PySide6.QtCore import QMimeData, QModelIndex, QPoint, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QContextMenuEvent,
    QDrag,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QInputDialog,
    QListView,
    QMenu,
    QWidget,
)

from app.chats.chat import Chat
from ui.bidi import visible
from ui.chat.chat_drag import MIME_TYPE, DropBar, carried, carried_chat, moves
from ui.chat.chat_groups import Group
from ui.chat.chat_list_delegate import ChatListDelegate
from ui.chat.chat_list_model import ChatListModel, Row
from ui.theme import RADIUS, Theme

_LONGEST_FOLDER = 60


class ChatList(QListView):
    """Its signals say what a person asks for, by a chat's id; ``show_chats`` with the outcome."""

    opened = Signal(object)
    renamed = Signal(object, str)
    pinned = Signal(object, bool)
    moved = Signal(object, str)  # to a folder, "" for none
    dropped = Signal(object, bool, str)  # dragged to where it is pinned or not, and in this folder
    all_moved = Signal(list, str)  # the same for many
    duplicated = Signal(object)
    exported = Signal(object, str)  # "markdown" or "json"
    deleted = Signal(object)
    undo_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("chats")
        self.setAccessibleName("Chats")
        self.rows = ChatListModel(self)
        self.rows.renamed.connect(self.renamed)
        self.setModel(self.rows)
        delegate = ChatListDelegate(theme, self)
        delegate.ended.connect(self._renaming_ended)
        self.setItemDelegate(delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.verticalScrollBar().setSingleStep(24)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(False)  # it falls into a group, not between two rows
        self._over: Group | None = None  # where what is dragged would fall
        self.drop_bar = DropBar(self)
        self.drop_bar.pinned.connect(self._drop_on_pin)
        self.drop_bar.new_folder.connect(self._drop_on_new_folder)
        self.clicked.connect(self._use)
        self._waiting: tuple[tuple[Chat, ...], datetime] | None = None
        self._all: tuple[Chat, ...] = ()
        self._shown: int | None = None
        self._to_show = False  # it is not in the list yet
        theme.changed.connect(self.scheduleDelayedItemsLayout)  # rows may be higher now

    # ---- content

    def show_chats(self, chats: Iterable[Chat], now: datetime | None = None) -> None:
        """Show all of these; the current row and what is in view stay as far as they are there."""
        self._all = tuple(chats)
        wanted = (self._all, now or datetime.now())
        if self.is_renaming:  # a row must not move away under the editor
            self._waiting = wanted
            return
        self._waiting = None
        current = self.currentIndex()
        place = current.row()
        row = self.rows.row_at(current)
        bar = self.verticalScrollBar()
        value = bar.value()
        if not self.rows.show_chats(*wanted):
            return
        self.executeDelayedItemsLayout()
        bar.setValue(value)
        if row is not None:
            self._make_current(row, place)

    def set_shown(self, chat: int | None) -> None:
        """Mark the chat that is on the page; another one than before becomes the current row."""
        if chat != self._shown:
            self._to_show = True
        self._shown = chat
        self.rows.set_shown(chat)
        index = self.rows.index_of(chat)
        if self._to_show and index.isValid() and not self.is_renaming:
            self._to_show = False
            self.setCurrentIndex(index)

    def set_busy(self, chats: Collection[int]) -> None:
        self.rows.set_busy(chats)

    def chats(self) -> tuple[Chat, ...]:
        return self._all

    @property
    def is_renaming(self) -> bool:
        return self.state() == QAbstractItemView.State.EditingState

    def _make_current(self, row: Row, place: int) -> None:
        """Where the row is now; of one that went, what took its place."""
        index = QModelIndex()
        if row.chat is not None:
            index = self.rows.index_of(row.chat.id)
        if not index.isValid():
            last = self.rows.rowCount() - 1
            for near in (*range(place, last + 1), *range(min(place, last), -1, -1)):
                if self.rows.chat_at(self.rows.index(near)) is not None:
                    index = self.rows.index(near)
                    break
        if index.isValid():
            bar = self.verticalScrollBar()
            value = bar.value()
            self.setCurrentIndex(index)
            bar.setValue(value)

    # ---- dragging

    def startDrag(self, actions: Qt.DropAction) -> None:
        index = self.currentIndex()
        chat = self.rows.chat_at(index)
        if chat is None:
            return
        drag = QDrag(self)
        drag.setMimeData(carried(chat))
        row = self.visualRect(index)
        drag.setPixmap(self.viewport().grab(row))
        drag.setHotSpot(self.viewport().mapFromGlobal(self.cursor().pos()) - row.topLeft())
        self.drop_bar.show_for(chat)
        try:
            drag.exec(Qt.DropAction.MoveAction)
        finally:
            self.drop_bar.hide()
            self._show_over(None)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(MIME_TYPE):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        super().dragMoveEvent(event)  # scrolls near the edges
        group = self._group_for(event.mimeData(), event.position().toPoint())
        self._show_over(group)
        if group is not None:
            event.acceptProposedAction()
        else:
            event.ignore()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._show_over(None)

    def dropEvent(self, event: QDropEvent) -> None:
        group = self._group_for(event.mimeData(), event.position().toPoint())
        chat = carried_chat(event.mimeData(), self._all)
        self._show_over(None)
        self.stopAutoScroll()
        self.setState(QAbstractItemView.State.NoState)
        if group is None or chat is None:
            event.ignore()
            return
        event.acceptProposedAction()
        pinned = group.kind == "pinned"
        folder = chat.folder if pinned else group.title if group.kind == "folder" else ""
        self.dropped.emit(chat.id, pinned, folder)

    def _drop_on_pin(self, data: QMimeData) -> None:
        if (chat := carried_chat(data, self._all)) is not None:
            self.dropped.emit(chat.id, True, chat.folder)

    def _drop_on_new_folder(self, data: QMimeData) -> None:
        if (chat := carried_chat(data, self._all)) is not None:
            # once the drag is over
            QTimer.singleShot(0, self, lambda: self._ask_for_folder(chat.id, dragged=True))

    def _group_for(self, data: QMimeData, at: QPoint) -> Group | None:
        """The group at this place, if what is dragged would move there."""
        chat = carried_chat(data, self._all)
        row = self.rows.row_at(self.indexAt(at))
        return row.group if chat is not None and row is not None and moves(chat, row.group) else None

    def _show_over(self, group: Group | None) -> None:
        if group != self._over:
            self._over = group
            self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        area = QRect()
        for place, row in enumerate(self.rows.rows() if self._over is not None else ()):
            if row.group is self._over:
                area = area.united(self.visualRect(self.rows.index(place)))
        if area.isEmpty():
            return
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(self._theme.tokens.accent))
        painter.drawRoundedRect(QRectF(area).adjusted(4.5, 0.5, -4.5, -0.5), RADIUS - 2, RADIUS - 2)

    # ---- what a person does

    def rename(self, chat: int) -> None:
        """Let the title be typed over where it stands, if it can be seen."""
        index = self.rows.index_of(chat)
        if index.isValid() and self.isVisible() and not self.is_renaming:
            self.scrollTo(index)
            self.setCurrentIndex(index)
            self.edit(index)

    def _renaming_ended(self) -> None:
        if self._waiting is not None:  # not from here: Qt is still at it
            QTimer.singleShot(0, self, self._show_waiting)

    def _show_waiting(self) -> None:
        if self._waiting is not None:
            self.show_chats(*self._waiting)

    def _use(self, index: QModelIndex) -> None:
        row = self.rows.row_at(index)
        if row is None:
            return
        if row.chat is not None:
            self.opened.emit(row.chat.id)
        elif row.group.kind == "folder":
            self._fold(index, not row.folded)

    def _fold(self, index: QModelIndex, folded: bool) -> None:
        row = self.rows.row_at(index)
        if row is None or row.group.kind != "folder":
            return
        self.rows.fold(row.group.title, folded)
        for place, other in enumerate(self.rows.rows()):
            if other.chat is None and other.group.title == row.group.title and other.group.kind == "folder":
                self.setCurrentIndex(self.rows.index(place))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        index = self.currentIndex()
        chat = self.rows.chat_at(index)
        if event.matches(QKeySequence.StandardKey.Undo):
            self.undo_asked.emit()
            return
        plain = event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier)
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if plain:
                self._use(index)
            case Qt.Key.Key_F2 if chat is not None:
                self.rename(chat.id)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace if chat is not None and plain:
                self.deleted.emit(chat.id)
            case Qt.Key.Key_Left | Qt.Key.Key_Right if chat is None and plain:
                self._fold(index, event.key() == Qt.Key.Key_Left)
            case Qt.Key.Key_Menu:
                self._menu_at(index)
            case Qt.Key.Key_Escape:
                event.ignore()
            case _:
                super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        keyboard = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if keyboard else self.indexAt(event.pos())
        if self.rows.flags(index) & Qt.ItemFlag.ItemIsSelectable:
            self.setCurrentIndex(index)
            self._menu_at(index, None if keyboard else event.globalPos())

    def _menu_at(self, index: QModelIndex, at: QPoint | None = None) -> None:
        row = self.rows.row_at(index)
        if row is not None:
            menu = self.menu_for(row.chat) if row.chat is not None else self.menu_for_folder(row.group)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(at or self.viewport().mapToGlobal(self.visualRect(index).bottomLeft()))

    def menu_for_folder(self, folder: Group) -> QMenu:
        """What can be done with a folder: its chats stay."""
        menu = QMenu(self)
        menu.setAccessibleName(f"Folder {visible(folder.title)}")
        menu.addAction("Rename folder…").triggered.connect(lambda: self._ask_for_name_of(folder))
        dissolve = menu.addAction("Take all chats out of the folder")
        dissolve.triggered.connect(lambda: self._move_all(folder, ""))
        return menu

    def _ask_for_name_of(self, folder: Group) -> None:
        dialog = self._name_dialog("Rename folder", folder.title)
        dialog.textValueSelected.connect(lambda name: self.rename_folder(folder, name))
        dialog.open()

    def rename_folder(self, folder: Group, name: str) -> None:
        """Give it another name; that of another folder puts them together."""
        if name := _folder_name(name):
            self._move_all(folder, name)

    def _move_all(self, folder: Group, name: str) -> None:
        # pinned ones have their folder too, though they are shown elsewhere
        self.all_moved.emit([chat.id for chat in self._all if chat.folder == folder.title], name)

    def menu_for(self, chat: Chat) -> QMenu:
        """What can be done with a chat."""
        menu = QMenu(self)
        menu.setAccessibleName(f"Chat {visible(chat.label)}")
        id = chat.id
        menu.addAction("Open").triggered.connect(lambda: self.opened.emit(id))
        rename = menu.addAction("Rename")
        rename.setShortcut(QKeySequence(Qt.Key.Key_F2))
        rename.triggered.connect(lambda: self.rename(id))
        pin = menu.addAction("Unpin" if chat.pinned else "Pin")
        pin.triggered.connect(lambda: self.pinned.emit(id, not chat.pinned))
        self._add_folders(menu.addMenu("Move to folder"), chat)
        menu.addAction("Duplicate").triggered.connect(lambda: self.duplicated.emit(id))
        export = menu.addMenu("Export")
        for kind, words in (("markdown", "Markdown…"), ("json", "JSON…")):
            export.addAction(words).triggered.connect(lambda _=False, kind=kind: self.exported.emit(id, kind))
        menu.addSeparator()
        delete = menu.addAction("Delete")
        delete.setShortcut(QKeySequence(Qt.Key.Key_Delete))
        delete.triggered.connect(lambda: self.deleted.emit(id))
        for action in (rename, delete):  # a shortcut in a menu is only shown: the list has the keys
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        return menu

    def _add_folders(self, menu: QMenu, chat: Chat) -> None:
        names = sorted({other.folder for other in self._all if other.folder}, key=str.casefold)
        for name in ("", *names):
            action: QAction = menu.addAction(visible(name).replace("&", "&&") or "No folder")
            action.setCheckable(True)
            action.setChecked(chat.folder == name)
            action.triggered.connect(lambda _=False, name=name: self.moved.emit(chat.id, name))
        menu.addSeparator()
        menu.addAction("New folder…").triggered.connect(lambda: self._ask_for_folder(chat.id))

    def _ask_for_folder(self, chat: int, *, dragged: bool = False) -> None:
        dialog = self._name_dialog("New folder", "")
        dialog.textValueSelected.connect(lambda name: self._move_to_new(chat, name, dragged))
        dialog.open()

    def _move_to_new(self, chat: int, name: str, dragged: bool) -> None:
        if not (name := _folder_name(name)):
            return
        if dragged:
            self.dropped.emit(chat, False, name)
        else:
            self.moved.emit(chat, name)

    def _name_dialog(self, title: str, name: str) -> QInputDialog:
        dialog = QInputDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(title)
        dialog.setLabelText("Name of the folder")
        dialog.setTextValue(name)
        return dialog


def _folder_name(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_FOLDER]
