"""Chats to and from files: one at a time or all at once, read and written on another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths, Qt, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chats.archive import ArchiveStopped, Snapshot, archive_name, write_archive
from app.chats.errors import ChatsError
from app.chats.export import ExportKind, suggested_name
from app.chats.imported import ImportedChat
from app.chats.importing import read_chats_file
from ui.bidi import visible
from ui.chat.view import Problem
from ui.session import Session

_KINDS: dict[ExportKind, str] = {"markdown": "Markdown (*.md)", "json": "JSON (*.json)"}
_ARCHIVES: dict[ExportKind, str] = {"markdown": "Markdown in a zip (*.zip)", "json": _KINDS["json"]}
# So many at a time are added, then the window has its turn.
_SLICE = 20


class ChatFiles(QObject):
    """``window`` is what its dialogs stand before."""

    _finished = Signal(object)  # what is still to be done, on this thread

    def __init__(self, session: Session, window: QWidget) -> None:
        super().__init__(window)
        self._session = session
        self._chats = session.controller.chats
        self._window = window
        self._closing = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._finished.connect(lambda then: then(), Qt.ConnectionType.QueuedConnection)

    def close(self) -> None:
        """End what is being read or written. For shutdown only."""
        self._closing.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    # ---- one chat

    def ask_export(self, id: int, kind: ExportKind) -> None:
        """Where to? Then ``export``."""
        chat = self._session.store.get(id)
        if chat is not None:
            name = suggested_name(chat, kind)
            self._ask_where("Export chat", name, _KINDS[kind], lambda path: self.export(id, path, kind))

    def export(self, chat: int, path: Path, kind: ExportKind) -> None:
        """Write a chat to a file and say so."""
        if self._chats.export(chat, path, kind):
            self._session.noticed.emit(f"Exported to {visible(str(path))}.")

    # ---- all of them

    def ask_export_all(self, kind: ExportKind) -> None:
        """Where to? Then ``export_all``."""
        if not self._session.store:
            self._session.noticed.emit("There are no chats to export yet.")
            return
        name = archive_name(kind, time.time())
        self._ask_where("Export all chats", name, _ARCHIVES[kind], lambda path: self.export_all(path, kind))

    def export_all(self, path: Path, kind: ExportKind) -> None:
        """Write all chats to one file on another thread, and say so."""
        self._run(self._write_all, path, self._session.store.snapshot(), kind)

    def _write_all(self, path: Path, chats: Snapshot, kind: ExportKind) -> None:
        try:
            write_archive(path, chats, kind, lambda: not self._closing.is_set())
        except ArchiveStopped:
            return
        except ChatsError as error:
            why = error.message
        except OSError as error:
            why = f"The chats could not be exported: {error.strerror or error}."
        else:
            count = "1 chat was" if len(chats) == 1 else f"{len(chats):,} chats were"
            words = f"{count} exported to {visible(str(path))}."
            self._finished.emit(lambda: self._session.noticed.emit(words))
            return
        again = "export_chats" if kind == "json" else "export_chats_markdown"
        self._finished.emit(lambda: self._cannot(why, again))

    # ---- import

    def ask_import(self) -> None:
        """Which files? Then ``import_files``."""
        dialog = self._dialog("Import chats", "Chats (*.json *.jsonl);;All files (*)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda paths: self.import_files([Path(path) for path in paths]))
        dialog.open()

    def import_files(self, paths: Sequence[Path]) -> None:
        """Read the chats in these files on another thread, then add them and show the first."""
        self._run(self._read, paths)

    def _read(self, paths: Sequence[Path]) -> None:
        found: list[ImportedChat] = []
        why = ""
        for path in paths:
            if self._closing.is_set():
                return
            try:
                found += read_chats_file(path)
            except ChatsError as error:
                why = error.message if len(paths) == 1 else f"{visible(path.name)}: {error.message}"
        self._finished.emit(lambda: self._take(found, why))

    def _take(self, found: Sequence[ImportedChat], why: str) -> None:
        """``why`` is what was wrong with the last file that could not be read, "" where all could."""
        new = self._chats.without_known(found)
        self._add(new, 0, lambda: self._tell(len(new), len(found) - len(new), why))

    def _add(self, new: Sequence[ImportedChat], done: int, then: Callable[[], None]) -> None:
        self._chats.add_imported(new[done : done + _SLICE])
        done += _SLICE
        if done < len(new):
            QTimer.singleShot(0, self, lambda: self._add(new, done, then))
            return
        self._chats.show_imported(new)
        then()

    def _tell(self, new: int, known: int, why: str) -> None:
        if new or known:
            self._session.noticed.emit(_told(new, known))
        if why:
            self._cannot(why, "import_chats")

    # ---- inside

    def _cannot(self, why: str, again: str) -> None:
        self._session.page_asked.emit("Chats")  # the card is there
        self._session.problem_changed.emit(Problem(why, "Your chats are as they were.", (again,)))

    def _run(self, do: Callable[..., None], *arguments: object) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="chat-files")
        self._pool.submit(do, *arguments)

    def _ask_where(self, title: str, name: str, kinds: str, then: Callable[[Path], None]) -> None:
        dialog = self._dialog(title, kinds)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(Path(name).suffix[1:])
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda path: then(Path(path)))
        dialog.open()

    def _dialog(self, title: str, kinds: str) -> QFileDialog:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        dialog = QFileDialog(self._window.window(), title, folder, kinds)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog


def _told(new: int, known: int) -> str:
    if not new:
        return "All these chats are here already."
    text = "1 chat was imported." if new == 1 else f"{new:,} chats were imported."
    if known:
        text += " 1 more was here already." if known == 1 else f" {known:,} more were here already."
    return text
