"""Between the sidebar and the chats: does what is asked for there and shows what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths, Qt, Signal
from PySide6.QtWidgets import QFileDialog

from app.chats.chat import Chat
from app.chats.errors import ChatsError
from app.chats.export import ExportKind, suggested_name
from app.chats.importing import ImportedChat, read_chats_file
from app.chats.titles import one_line
from ui.bidi import visible
from ui.chat.sidebar import Sidebar
from ui.chat.view import Problem
from ui.session import Session

_KINDS = {"markdown": "Markdown (*.md)", "json": "JSON (*.json)"}


class SidebarControl(QObject):
    _read = Signal(object)  # what a file had in it, or why it could not be read

    def __init__(self, session: Session, sidebar: Sidebar, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._controller = session.controller
        self._sidebar = sidebar
        self._deleted: int | None = None
        self._changing = False  # many chats, one after the other
        self._reader: ThreadPoolExecutor | None = None
        self._read.connect(self._take, Qt.ConnectionType.QueuedConnection)
        chats, rows = session.controller.chats, sidebar.list
        rows.opened.connect(self._open)
        rows.renamed.connect(chats.rename)
        rows.pinned.connect(chats.pin)
        rows.moved.connect(chats.move)
        rows.all_moved.connect(self._move_all)
        rows.duplicated.connect(chats.duplicate)
        rows.deleted.connect(self._delete)
        rows.exported.connect(self._ask_where)
        sidebar.import_asked.connect(self._ask_what)
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

    def _delete(self, id: int) -> None:
        chat = self._session.store.get(id)
        if chat is None:
            return
        self._controller.chats.delete(id)
        self._deleted = id
        self._sidebar.undo.offer(f"“{one_line(chat.label, 40)}” was deleted.")

    def _undo(self) -> None:
        if self._deleted is not None:
            chat = self._controller.chats.restore(self._deleted)
            self._deleted = None
            if chat is not None:
                self._controller.chats.open(chat.id)

    # ---- files

    def close(self) -> None:
        """Wait for a file that is being read. For shutdown only."""
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
            self._reader = None

    def _ask_where(self, id: int, kind: ExportKind) -> None:
        chat = self._session.store.get(id)
        if chat is None:
            return
        dialog = self._dialog("Export chat", _KINDS[kind])
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        name = suggested_name(chat, kind)
        dialog.setDefaultSuffix(Path(name).suffix[1:])
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda path: self.export(id, Path(path), kind))
        dialog.open()

    def export(self, chat: int, path: Path, kind: ExportKind) -> None:
        """Write a chat to a file and say so."""
        if self._controller.chats.export(chat, path, kind):
            self._session.noticed.emit(f"Exported to {visible(str(path))}.")

    def _ask_what(self) -> None:
        dialog = self._dialog("Import chats", "Chats (*.json);;All files (*)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda path: self.import_file(Path(path)))
        dialog.open()

    def _dialog(self, title: str, kinds: str) -> QFileDialog:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        dialog = QFileDialog(self._sidebar.window(), title, folder, kinds)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def import_file(self, path: Path) -> None:
        """Read the chats in a file on another thread, then add them and show the first."""
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="chat-import")
        self._reader.submit(self._read_file, path)

    def _read_file(self, path: Path) -> None:
        try:
            self._read.emit(read_chats_file(path))
        except ChatsError as error:
            self._read.emit(error)

    def _take(self, result: Sequence[ImportedChat] | ChatsError) -> None:
        if isinstance(result, ChatsError):
            self._session.problem_changed.emit(Problem(result.message))
            return
        count = self._controller.chats.take_imported(result)
        self._session.noticed.emit(
            "1 chat was imported." if count == 1 else f"{count:,} chats were imported."
        )
