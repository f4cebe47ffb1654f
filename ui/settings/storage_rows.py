"""Where things are kept, with a way there, and what they take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from app.declaration import Declared
from app.storage import storage_use
from ui.bidi import visible
from ui.settings.editors import Editor
from ui.settings.setting_row import SettingRow
from ui.theme import Theme


class PlaceRow(SettingRow):
    """A folder that a person may want to look into."""

    def __init__(self, theme: Theme, title: str, folder: Path, parent: QWidget) -> None:
        self.folder = folder
        words = Declared(title.lower(), title, visible(str(folder)), group="storage")
        super().__init__(theme, words, self._button, keywords="folder files where", parent=parent)

    def _button(self, parent: QWidget) -> Editor:
        button = QPushButton("Open folder", parent)
        button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.folder))))
        return Editor(button, lambda _: None)


class ChatsRow(SettingRow):
    """All chats to and from a file; ``asked`` carries the name of a window's action."""

    asked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        words = Declared(
            "all_chats",
            "All chats",
            "One file with every chat, as a copy or for another machine. JSON can be imported again, with "
            "all versions of each answer; Markdown is for reading.",
            group="storage",
        )
        super().__init__(theme, words, self._buttons, keywords="backup export import chats", parent=parent)

    def _buttons(self, parent: QWidget) -> Editor:
        widget = QWidget(parent)
        self.take = QPushButton("Import…", widget)
        self.take.setAccessibleName("Import chats")
        self.take.setToolTip("Take chats from files of Slipstream, ChatGPT, LM Studio or Jan.")
        self.take.clicked.connect(lambda: self.asked.emit("import_chats"))
        self.write = QPushButton("Export", widget)
        self.write.setProperty("look", "menu")
        self.write.setAccessibleName("Export all chats")
        self.write.setToolTip("Write all chats into one file.")
        menu = QMenu(self.write)
        for name, text in (("export_chats", "JSON…"), ("export_chats_markdown", "Markdown…")):
            menu.addAction(text).triggered.connect(lambda _=False, name=name: self.asked.emit(name))
        self.write.setMenu(menu)
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.take)
        row.addWidget(self.write)
        return Editor(widget, lambda _: None)


class DiskUseRow(SettingRow):
    """Counts on a thread of its own when it is asked to. ``close`` it at the end."""

    _counted = Signal(str)

    def __init__(self, theme: Theme, models: Callable[[], Path], parent: QWidget) -> None:
        words = Declared("disk_use", "Disk use", "What Slipstream takes on this machine.", group="storage")
        super().__init__(theme, words, self._button, keywords="space size free memory", parent=parent)
        self._models = models
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="disk-use")
        self._counted.connect(self._show, Qt.ConnectionType.QueuedConnection)
        self.button.clicked.connect(self.count)

    def count(self) -> None:
        self.button.setEnabled(False)
        models = self._models()
        self._pool.submit(lambda: self._counted.emit(storage_use(models).words))

    def close_pool(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _show(self, words: str) -> None:
        self.button.setEnabled(True)
        self.explain(words)

    def _button(self, parent: QWidget) -> Editor:
        self.button = QPushButton("Count again", parent)
        return Editor(self.button, lambda _: None)
