"""Where things are kept, with a way there, and what they take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton, QWidget

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
