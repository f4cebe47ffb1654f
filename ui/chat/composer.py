"""Where a message is typed: Enter sends, Shift+Enter breaks the line, it grows with the text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from ui.chat.quoted_file import NotQuotable, quoted_file
from ui.icons import icon
from ui.theme import Theme
from ui.widgets.quiet_button import QuietButton
from ui.widgets.restyle import restyle

_MAX_LINES = 8
_HINT_MS = 4000
_PAD = 8


class Composer(QWidget):
    """``sent`` carries the text and leaves it in place: ``clear`` it once it was taken. While a
    message is edited here (``start_editing``), what was typed before waits until that is over."""

    sent = Signal(str)
    stopped = Signal()
    edit_last = Signal()
    editing_left = Signal()
    draft_changed = Signal(str)  # what was typed, but for a message that is being edited

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._busy = False
        self._aside: str | None = None  # what was typed before a message is edited
        self._saves = False
        self._frame = QFrame(self)
        self._frame.setObjectName("composer")
        self.edit = _Edit(self._frame)
        self.edit.submitted.connect(self._submit)
        self.edit.up_pressed.connect(self._up)
        self.edit.focus_changed.connect(self._show_focus)
        self.edit.textChanged.connect(self._typed)
        self.edit.escaped.connect(self.leave_editing)
        self.edit.files_dropped.connect(self.quote_files)
        self.button = QPushButton(self._frame)
        self.button.setFixedSize(32, 32)
        self.button.clicked.connect(self._press)
        row = QHBoxLayout(self._frame)
        row.setContentsMargins(12, 6, 6, 6)
        row.setSpacing(8)
        row.addWidget(self.edit, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        self.hint = QLabel(self)
        self.hint.setProperty("role", "small")
        self.hint.setWordWrap(True)
        self.hint.hide()
        self._hint_timer = QTimer(self)
        self._hint_timer.setSingleShot(True)
        self._hint_timer.setInterval(_HINT_MS)
        self._hint_timer.timeout.connect(self.hint.hide)
        self.banner = QFrame(self)
        self.banner.setObjectName("notice")
        self._banner_words = QLabel(self.banner)
        self._banner_words.setWordWrap(True)
        self.cancel = QuietButton(theme, "close", "Cancel", self.banner)
        self.cancel.setToolTip("Leave the message as it is (Esc)")
        self.cancel.clicked.connect(self.leave_editing)
        above = QHBoxLayout(self.banner)
        above.setContentsMargins(12, 4, 4, 4)
        above.addWidget(self._banner_words, 1)
        above.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignTop)
        self.banner.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.hint)
        column.addWidget(self.banner)
        column.addWidget(self._frame)
        self.setFocusProxy(self.edit)
        theme.changed.connect(self._show_button)
        self._show_button()

    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        self.edit.moveCursor(QTextCursor.MoveOperation.End)
        self.edit.setFocus()

    def give_back(self, text: str) -> None:
        """Put a refused message back, before anything that was typed since."""
        typed = self.text()
        self.set_text(f"{text}\n\n{typed}" if typed.strip() else text)

    def clear(self) -> None:
        self.edit.clear()

    # ---- editing a message that was sent

    @property
    def editing(self) -> bool:
        return self._aside is not None

    def start_editing(self, text: str, words: str, saves: bool = False) -> None:
        """Put ``text`` here to be changed; ``words`` say what sending does. ``saves``: nothing is
        asked of the model by it."""
        aside = self._aside if self._aside is not None else self.text()
        self._aside, self._saves = aside, saves
        self._banner_words.setText(words)
        self.banner.setAccessibleName(words)
        self.banner.show()
        self.edit.takes_escape = True
        self._show_button()
        self.set_text(text)

    def end_editing(self) -> None:
        """What was typed before is back."""
        if self._aside is None:
            return
        aside, self._aside = self._aside, None
        self._saves = False
        self.banner.hide()
        self.edit.takes_escape = False
        self._show_button()
        self.set_text(aside)

    def leave_editing(self) -> None:
        if self.editing:
            self.end_editing()
            self.editing_left.emit()

    # ---- files

    def quote_files(self, paths: Sequence[Path]) -> None:
        """Put text files where the cursor is, each as a block of code; says which it cannot."""
        problems: list[str] = []
        for path in paths:
            try:
                text = quoted_file(path)
            except NotQuotable as error:
                problems.append(str(error))
                continue
            cursor = self.edit.textCursor()
            lead = "" if cursor.atBlockStart() else "\n"
            cursor.insertText(f"{lead}{text}")
            self.edit.setTextCursor(cursor)
        self.edit.setFocus()
        if problems:
            self.show_hint(" ".join(problems), lasting=True)

    def set_busy(self, busy: bool) -> None:
        if busy != self._busy:
            self._busy = busy
            self._show_button()

    def show_hint(self, text: str, lasting: bool = False) -> None:
        self.hint.setText(text)
        self.hint.setVisible(bool(text))
        self._hint_timer.stop()
        if text and not lasting:
            self._hint_timer.start()

    def _submit(self) -> None:
        if self._busy:
            self.show_hint("The answer is still being written: Esc stops it.")
        elif not self.text().strip():
            self.show_hint("Write a message first.")
        else:
            self.show_hint("")
            self.sent.emit(self.text())

    def _press(self) -> None:
        if self._busy:
            self.stopped.emit()
        else:
            self._submit()
        self.edit.setFocus()

    def _up(self) -> None:
        if not self._busy:
            self.edit_last.emit()

    def _typed(self) -> None:
        if not self.editing:
            self.draft_changed.emit(self.text())

    def _show_button(self) -> None:
        tokens = self._theme.tokens
        name = "Stop" if self._busy else "Save" if self._saves else "Send"
        restyle(self.button, "look", None if self._busy else "primary")
        colour = tokens.text if self._busy else tokens.on_accent
        self.button.setIcon(icon({"Stop": "stop", "Save": "check"}.get(name, "send"), colour))
        self.button.setIconSize(QSize(16, 16))
        self.button.setAccessibleName(name)
        self.button.setToolTip("Stop (Esc)" if self._busy else f"{name} (Enter)")

    def _show_focus(self, focused: bool) -> None:
        restyle(self._frame, "focus", "true" if focused else "false")


class _Edit(QPlainTextEdit):
    submitted = Signal()
    up_pressed = Signal()
    escaped = Signal()
    focus_changed = Signal(bool)
    files_dropped = Signal(list)  # of Path

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._composing = False
        self._all_fits = True
        self._fitted_width = 0
        self.takes_escape = False
        self.setPlaceholderText("Message")
        self.setAccessibleName("Message")
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(0, _PAD, 0, _PAD)
        self.textChanged.connect(self._grow)
        self._grow()

    def _grow(self) -> None:
        """As high as the text, up to eight lines."""
        self._fitted_width = self.width()
        height = 0.0
        lines = 0
        block = self.document().begin()
        while block.isValid() and lines < _MAX_LINES:
            whole = self.blockBoundingRect(block).height()
            count = max(1, block.layout().lineCount())
            shown = min(count, _MAX_LINES - lines)
            height += whole * shown / count
            lines += shown
            block = block.next()
        self.setFixedHeight(max(32, math.ceil(height) + 2 * _PAD))
        scrolls = lines == _MAX_LINES
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self._all_fits = not scrolls

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Its own width: that of the text changes with the bar, which may come and go with it.
        if self.width() != self._fitted_width:
            self._grow()
        if self._all_fits:  # the cursor's line was made visible before there was room for all
            self.verticalScrollBar().setValue(0)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        if any(url.isLocalFile() for url in source.urls()):  # a model alone is for the window
            return bool(local_files(source))
        return super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if files := local_files(source):
            self.files_dropped.emit(files)
        else:
            super().insertFromMimeData(source)

    def event(self, event: QEvent) -> bool:
        # Else the window's own Esc would come first.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self.takes_escape
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.takes_escape and not self._composing:
            self.escaped.emit()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self._composing:  # it belongs to the input method
                event.ignore()
                return
            if not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.submitted.emit()
                return
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            event.ignore()  # they scroll the messages
            return
        if event.key() == Qt.Key.Key_Up and self.document().isEmpty() and not self._composing:
            self.up_pressed.emit()
            return
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._grow()


def local_files(data: QMimeData) -> list[Path]:
    """Files that a message can quote; models are for the window."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.suffix.lower() != ".gguf"]
