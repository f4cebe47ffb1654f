"""Chats that are dragged within their list: what is carried, and what a place in the list makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from app.chats.chat import Chat
from ui.chat.chat_groups import Group
from ui.widgets.restyle import restyle

MIME_TYPE = "application/x-slipstream-chat"


def carried(chat: Chat) -> QMimeData:
    """For no other program: a chat is its id here."""
    data = QMimeData()
    data.setData(MIME_TYPE, str(chat.id).encode())
    return data


def carried_chat(data: QMimeData, chats: Sequence[Chat]) -> Chat | None:
    """The one that is dragged, if it is one of these."""
    id = bytes(data.data(MIME_TYPE).data())
    return next((chat for chat in chats if str(chat.id).encode() == id), None)


def moves(chat: Chat, group: Group) -> bool:
    """Whether ``group`` would be another place for ``chat``: by when it changed nobody can choose."""
    match group.kind:
        case "pinned":
            return not chat.pinned
        case "folder":
            return chat.pinned or chat.folder != group.title
        case _:
            return chat.pinned or bool(chat.folder)


class DropBar(QFrame):
    """Two places that the list may not have yet. Over its end, and only while a chat is dragged, so
    nothing moves for it. ``pinned`` and ``new_folder`` carry what was dragged there."""

    pinned = Signal(object)  # QMimeData
    new_folder = Signal(object)

    def __init__(self, room: QWidget) -> None:
        super().__init__(room)
        self._room = room
        self.setObjectName("drop_bar")
        self.pin = _Target("Pin", self)
        self.folder = _Target("New folder…", self)
        self.pin.dropped.connect(self.pinned)
        self.folder.dropped.connect(self.new_folder)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 8, 8, 8)
        row.setSpacing(8)
        row.addWidget(self.pin, 1)
        row.addWidget(self.folder, 1)
        self.hide()

    def show_for(self, chat: Chat) -> None:
        """At the lower end of the widget that it is in."""
        self.pin.setVisible(not chat.pinned)
        height = self.sizeHint().height()
        self.setGeometry(0, self._room.height() - height, self._room.width(), height)
        self.show()
        self.raise_()


class _Target(QLabel):
    dropped = Signal(object)

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.setObjectName("drop_target")
        self.setAccessibleName(text)
        self.setWordWrap(True)
        self.setAcceptDrops(True)

    def _light(self, on: bool) -> None:
        restyle(self, "lit", on)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(MIME_TYPE):
            self._light(True)
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._light(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._light(False)
        event.acceptProposedAction()
        self.dropped.emit(event.mimeData())
