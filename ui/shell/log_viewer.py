"""The logs, to be read, followed and copied."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import paths
from app.program_log import crash_log, last_lines, program_log, worker_log
from ui.theme import SPACE, SPACE_WIDE, code_font, small_font
from ui.widgets.layouts import nested

_FOLLOW_MS = 500
_LINES = 3000


class LogViewer(QDialog):
    """A window of its own beside the main one. It looks at the file only while it follows it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Logs")
        self.setAccessibleName("Logs")
        self.resize(820, 520)
        self._seen: tuple[Path, int, int] | None = None
        self.choice = QComboBox(self)
        self.choice.setAccessibleName("Which log")
        for name, path in (
            ("Engine", worker_log()),
            ("Program", program_log()),
            ("Crashes", crash_log()),
        ):
            self.choice.addItem(name, path)
        self.choice.currentIndexChanged.connect(self.read)
        self.follow = QCheckBox("Follow", self)
        self.follow.setToolTip("Show new lines as they are written.")
        self.follow.setChecked(True)
        self.follow.toggled.connect(self._follow)
        self.text = QPlainTextEdit(self)
        self.text.setAccessibleName("Log")
        self.text.setReadOnly(True)
        self.text.setProperty("look", "input")
        self.text.setUndoRedoEnabled(False)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setFont(code_font(small_font().pixelSize()))
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.nothing = QLabel("Nothing has been written here yet.", self)
        self.nothing.setProperty("role", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        copy = QPushButton("Copy", self)
        copy.setToolTip("Copy the selected lines, or all of them.")
        copy.clicked.connect(self.copy)
        folder = QPushButton("Open folder", self)
        folder.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(paths.log_dir()))))
        close = QPushButton("Close", self)
        close.clicked.connect(self.close)
        for button in (copy, folder, close):
            button.setAutoDefault(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_WIDE, SPACE_WIDE, SPACE_WIDE, SPACE_WIDE)
        column.setSpacing(SPACE_WIDE)
        above = nested(column, QHBoxLayout())
        above.setSpacing(SPACE_WIDE)
        above.addWidget(self.choice)
        above.addWidget(self.follow)
        above.addStretch(1)
        column.addWidget(self.text, 1)
        column.addWidget(self.nothing, 1)
        below = nested(column, QHBoxLayout())
        below.setSpacing(SPACE)
        below.addWidget(copy)
        below.addWidget(folder)
        below.addStretch(1)
        below.addWidget(close)
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW_MS)
        self._timer.timeout.connect(self.read)

    def read(self) -> None:
        """Show the end of the chosen file, if it changed."""
        path: Path = self.choice.currentData()
        try:
            status = path.stat()
            now = (path, status.st_size, status.st_mtime_ns)
        except OSError:
            now = (path, 0, 0)
        if now == self._seen:
            return
        self._seen = now
        lines = last_lines(path, _LINES)
        bar = self.text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 2
        place = bar.value()
        self.text.setPlainText("\n".join(lines))
        self.text.setVisible(bool(lines))
        self.nothing.setVisible(not lines)
        bar.setValue(bar.maximum() if at_end or self.follow.isChecked() else place)

    def copy(self) -> None:
        """What is selected, or everything that is shown."""
        selected = self.text.textCursor().selectedText().replace("\u2029", "\n")
        QGuiApplication.clipboard().setText(selected or self.text.toPlainText())

    def _follow(self, on: bool) -> None:
        if on and self.isVisible():
            self.read()
            self._timer.start()
        else:
            self._timer.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._seen = None
        self.read()
        self._follow(self.follow.isChecked())

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()
