"""The rows of the list of chats: a heading for each group, and the chats below it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from enum import IntEnum

from msgspec import Struct
from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.chats.chat import Chat
from ui.bidi import visible
from ui.chat.chat_groups import Group, grouped

ANSWERING = "Being answered"
AnyIndex = QModelIndex | QPersistentModelIndex


class Role(IntEnum):
    """What the delegate asks for beside Qt's own roles."""

    ROW = Qt.ItemDataRole.UserRole
    BUSY = Qt.ItemDataRole.UserRole + 1
    SHOWN = Qt.ItemDataRole.UserRole + 2  # its chat is the one on the page


class Row(Struct, frozen=True):
    """A chat, or the heading of ``group`` where ``chat`` is None."""

    group: Group
    chat: Chat | None = None
    folded: bool = False

    @property
    def key(self) -> tuple[str, str | int]:
        return (self.group.kind, self.group.title if self.chat is None else self.chat.id)


class ChatListModel(QAbstractListModel):
    """``renamed`` carries a chat's id and what a person typed in its place in the list."""

    renamed = Signal(object, str)  # an id has more than 32 bits

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self._places: dict[int, int] = {}
        self._folded: set[str] = set()
        self._chats: tuple[Chat, ...] = ()
        self._busy: frozenset[int] = frozenset()
        self._shown: int | None = None
        self._now = datetime.now()

    # ---- what is shown

    def show_chats(self, chats: Iterable[Chat], now: datetime) -> bool:
        """Returns whether rows came, went or moved; else they only look different."""
        self._chats, self._now = tuple(chats), now
        return self._fill()

    def set_busy(self, chats: Collection[int]) -> None:
        """Which chats are being answered."""
        busy = frozenset(chats)
        changed, self._busy = busy ^ self._busy, busy
        self._repaint(changed)

    def set_shown(self, chat: int | None) -> None:
        changed = {id for id in (chat, self._shown) if id is not None}
        self._shown = chat
        self._repaint(changed)

    def fold(self, folder: str, folded: bool) -> None:
        """Hide or show the chats of a folder."""
        (self._folded.add if folded else self._folded.discard)(folder)
        self._fill()

    def _fill(self) -> bool:
        rows: list[Row] = []
        for group in grouped(self._chats, self._now):
            folded = group.kind == "folder" and group.title in self._folded
            rows.append(Row(group, folded=folded))
            if not folded:
                rows += [Row(group, chat) for chat in group.chats]
        same = [row.key for row in rows] == [row.key for row in self._rows]
        if not same:
            self.beginResetModel()
        self._rows = rows
        self._places = {row.chat.id: place for place, row in enumerate(rows) if row.chat is not None}
        if not same:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
        return not same

    def _repaint(self, chats: Iterable[int]) -> None:
        for id in chats:
            place = self._places.get(id)
            if place is not None:
                self.dataChanged.emit(self.index(place), self.index(place))

    # ---- asking

    def row_at(self, index: AnyIndex) -> Row | None:
        return self._rows[index.row()] if index.isValid() and index.row() < len(self._rows) else None

    def chat_at(self, index: AnyIndex) -> Chat | None:
        row = self.row_at(index)
        return row.chat if row is not None else None

    def index_of(self, chat: int | None) -> QModelIndex:
        """Invalid for a chat that is in a folded folder or not there at all."""
        place = self._places.get(chat) if chat is not None else None
        return self.index(place) if place is not None else QModelIndex()

    def rows(self) -> tuple[Row, ...]:
        return tuple(self._rows)

    # ---- QAbstractListModel

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        row = self.row_at(index)
        if row is None or (row.chat is None and row.group.kind != "folder"):
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemNeverHasChildren
        if row.chat is None:
            return flags
        return flags | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsDragEnabled

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row_at(index)
        if row is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return visible(row.group.title if row.chat is None else row.chat.label)
            case Qt.ItemDataRole.EditRole:
                return row.chat.label if row.chat is not None else None
            case Qt.ItemDataRole.ToolTipRole:
                return self._help(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row)
            case Role.ROW:
                return row
            case Role.BUSY:
                return row.chat is not None and row.chat.id in self._busy
            case Role.SHOWN:
                return row.chat is not None and row.chat.id == self._shown
        return None

    def setData(self, index: AnyIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        chat = self.chat_at(index)
        if chat is None or role != Qt.ItemDataRole.EditRole:
            return False
        self.renamed.emit(chat.id, str(value))
        return True

    def _help(self, row: Row) -> str:
        chat = row.chat
        if chat is None:
            return ""
        when = datetime.fromtimestamp(chat.updated_at)
        lines = [visible(chat.label), f"Changed {when:%Y-%m-%d %H:%M}"]
        if chat.id in self._busy:
            lines.append(f"{ANSWERING} just now.")
        return "\n".join(lines)

    def _spoken(self, row: Row) -> str:
        chat = row.chat
        if chat is None:
            title = visible(row.group.title)
            if row.group.kind != "folder":
                return title
            return f"Folder {title}, {len(row.group.chats)} chats, {'folded' if row.folded else 'unfolded'}"
        words = [visible(chat.label)]
        if chat.id in self._busy:
            words.append(ANSWERING.lower())
        if chat.id == self._shown:
            words.append("shown")
        return ", ".join(words)
