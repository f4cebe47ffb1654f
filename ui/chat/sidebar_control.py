"""Between the sidebar and the chats: does what is asked for there and shows what came of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from app.chats.chat import Chat
from app.chats.titles import one_line
from ui.chat.chat_files import ChatFiles
from ui.chat.sidebar import Sidebar
from ui.session import Session


class SidebarControl(QObject):
    def __init__(
        self, session: Session, sidebar: Sidebar, files: ChatFiles, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._controller = session.controller
        self._sidebar = sidebar
        self._take_back: Callable[[], object] | None = None  # what was done here last
        self._changing = False  # many chats, one after the other
        chats, rows = session.controller.chats, sidebar.list
        rows.opened.connect(self._open)
        rows.renamed.connect(chats.rename)
        rows.pinned.connect(chats.pin)
        rows.moved.connect(chats.move)
        rows.dropped.connect(self._drop)
        rows.all_moved.connect(self._move_all)
        rows.duplicated.connect(chats.duplicate)
        rows.deleted.connect(self.delete)
        rows.exported.connect(files.ask_export)
        sidebar.import_asked.connect(files.ask_import)
        sidebar.export_asked.connect(files.ask_export_all)
        sidebar.undo_asked.connect(self._undo)
        session.chats_changed.connect(self.fill)
        session.chat_changed.connect(self._chat_changed)
        session.replaced.connect(self._show_current)
        session.engine_changed.connect(self._show_busy)
        self.fill()

    def fill(self) -> None:
        """Read the list of chats anew."""
        if self._changing:
            return
        self._sidebar.show_chats(self._session.store.chats())
        self._show_current()
        self._show_busy()

    def _chat_changed(self, chat: Chat) -> None:
        self._sidebar.show_chats(self._session.store.chats())
        self._show_busy()

    def _show_current(self) -> None:
        self._sidebar.set_shown(self._controller.chat.id)

    def _show_busy(self) -> None:
        self._sidebar.set_busy(self._controller.busy_chats)

    def _open(self, chat: int) -> None:
        if chat != self._controller.chat.id:
            self._controller.chats.open(chat)

    def _move_all(self, chats: list[int], folder: str) -> None:
        self._changing = True
        for chat in chats:
            self._controller.chats.move(chat, folder)
        self._changing = False
        self.fill()

    def delete(self, id: int) -> None:
        """Take a chat off the list and offer to take that back."""
        chat = self._session.store.get(id)
        if chat is None:
            return
        self._controller.chats.delete(id)
        self._offer(f"“{one_line(chat.label, 40)}” was deleted.", partial(self._restore, id))

    def _restore(self, id: int) -> None:
        chat = self._controller.chats.restore(id)
        if chat is not None:
            self._controller.chats.open(chat.id)

    def _drop(self, id: int, pinned: bool, folder: str) -> None:
        """A hand slips easily: what was dragged can be taken back."""
        chat = self._session.store.get(id)
        if chat is None:
            return
        before = chat.pinned, chat.folder
        self._put(id, pinned, folder)
        where = "pinned" if pinned else f"in “{one_line(chat.folder, 30)}”" if chat.folder else "in no folder"
        self._offer(f"“{one_line(chat.label, 40)}” is {where} now.", partial(self._put, id, *before))

    def _put(self, id: int, pinned: bool, folder: str) -> None:
        self._changing = True
        self._controller.chats.pin(id, pinned)
        self._controller.chats.move(id, folder)
        self._changing = False
        self.fill()

    def _offer(self, words: str, take_back: Callable[[], object]) -> None:
        self._take_back = take_back
        self._sidebar.undo.offer(words)

    def _undo(self) -> None:
        take_back, self._take_back = self._take_back, None
        if take_back is not None:
            take_back()
