"""The header's button for the model: what is loaded, what could be, and how to get at a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QRect, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QAction, QColor, QDesktopServices, QPainter, QPaintEvent
from PySide6.QtWidgets import QFileDialog, QMenu, QSizePolicy, QToolButton, QWidget

from ui.bidi import visible
from ui.engine_state import EngineState
from ui.icons import icon
from ui.models.model_library import ModelLibrary
from ui.models.words import FIT_WORDS, KIND_WORDS, memory_words
from ui.theme import RADIUS, Theme
from ui.tooltips import plain

_NAME_PX = 320
_MOST = 30  # models in the menu
_PAD, _GAP, _ARROW = 10, 6, 16


class ModelPicker(QToolButton):
    """``chosen`` carries the path of a GGUF file; ``more_asked``: the models page is wanted."""

    chosen = Signal(str)
    more_asked = Signal()

    def __init__(
        self, theme: Theme, library: ModelLibrary, folder: Callable[[], Path], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._library = library
        self._folder = folder
        self._state = EngineState()
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._about_to_show)
        self.setMenu(self._menu)
        library.changed.connect(self.fill)
        theme.changed.connect(self._colour)
        self._colour()
        self.show_state(self._state)
        self.fill()

    def show_state(self, state: EngineState) -> None:
        moved = (state.phase, state.label) != (self._state.phase, self._state.label)
        self._state = state
        label = state.label
        if state.draft_label:
            label += f"  + {state.draft_label}"
        text = self.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, _NAME_PX)
        if text != self.text() or moved:
            self.setText(text)
            self.updateGeometry()
            self.setAccessibleName(f"Model: {label}")
            self.setToolTip(plain(self._help()))
            self.fill()

    def sizeHint(self) -> QSize:
        words = self.fontMetrics().horizontalAdvance(self.text()) + 1  # widths are rounded
        return QSize(words + 2 * _PAD + _GAP + _ARROW, 30)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 30)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.underMouse() or self.isDown() or self.hasFocus():
            painter.setBrush(QColor(tokens.hover))
            painter.setPen(QColor(tokens.accent) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        right = self.width() - _PAD - _ARROW
        area = QRect(right, (self.height() - _ARROW) // 2, _ARROW, _ARROW)
        icon("down", tokens.muted).paint(painter, area)
        painter.setPen(QColor(tokens.text))
        words = QRect(_PAD, 0, right - _GAP - _PAD, self.height())
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, shown)

    def _help(self) -> str:
        report = self._state.report
        if report is None:
            return visible(self._state.problem or "Choose the model that answers.")
        lines = [visible(report.description), visible(report.path), f"Context of {report.n_ctx:,} tokens"]
        if report.draft_model_path:
            lines.append(f"Draft model: {visible(report.draft_model_path)}")
        return "\n".join(lines)

    def _colour(self) -> None:
        self.update()
        self.fill()

    def _about_to_show(self) -> None:
        self._library.refresh(describe=True)
        self.fill()

    def fill(self) -> None:
        menu = self._menu
        menu.clear()
        colour = self._theme.tokens.text
        used = self._state.report.path if self._state.report else None
        starter = self._library.starter
        chat = [entry for entry in self._library.entries if entry.kind == "chat"]
        if starter is not None:
            self._add(menu, starter, f"{starter.stem}  (starter)", used)
        for entry in chat[:_MOST]:
            action = self._add(menu, entry.path, f"{entry.name}   {_size(entry.size_bytes)}", used)
            if entry.problem:
                action.setText(f"{action.text()}   {visible(entry.problem)}")
                action.setEnabled(False)
        if starter is None and not chat:
            menu.addAction("No models in the folder yet").setEnabled(False)
        menu.addSeparator()
        more = "Get more models…" if len(chat) <= _MOST else f"All {len(chat):,} models, and more…"
        menu.addAction(icon("models", colour), more).triggered.connect(self.more_asked)
        menu.addAction(icon("file", colour), "Open file…").triggered.connect(self.open_file)
        menu.addAction(icon("folder", colour), "Open models folder").triggered.connect(self._open_folder)

    def _add(self, menu: QMenu, path: Path, name: str, used: str | None) -> QAction:
        help = visible(str(path))
        ready = self._library.ready.get(path)
        if ready is not None:
            fit = FIT_WORDS[ready.fit.verdict].lower()
            name += f"   {KIND_WORDS[ready.kind]}, {fit}" if ready.kind is not None else f"   {fit}"
            help += f"\n{memory_words(ready.target, ready.beside, ready.fit)}"
            if ready.problem is not None:
                help += f"\n{visible(ready.problem)}"
        action = menu.addAction(visible(name).replace("&", "&&"))
        action.setCheckable(True)
        action.setChecked(str(path) == used)
        action.setToolTip(plain(help))
        action.triggered.connect(lambda: self.chosen.emit(str(path)))
        return action

    def open_file(self) -> None:
        dialog = gguf_dialog(self, "Open a model", self._folder())
        dialog.fileSelected.connect(self.chosen)
        dialog.open()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder())))


def gguf_dialog(parent: QWidget, title: str, folder: Path) -> QFileDialog:
    return file_dialog(parent, title, folder, "GGUF models (*.gguf);;All files (*)")


def file_dialog(parent: QWidget, title: str, folder: Path, kinds: str = "All files (*)") -> QFileDialog:
    dialog = QFileDialog(parent, title, str(folder), kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
