"""The settings: one page, drawn from the declarations, every change in force at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.protocol import DRAFTERS, DrafterName
from app.settings import Settings
from ui import drafters
from ui.declared import declared
from ui.file_choice import FileChoice
from ui.learning_control import LearningControl
from ui.model_picker import file_dialog, gguf_dialog
from ui.switch import Switch
from ui.theme import Theme

_SETTLE_MS = 500
_CONTROL_WIDTH = 180
_AUTOMATIC = "Automatic"


class SettingsDialog(QDialog):
    """``changed`` carries the new settings; typed values are sent once they have settled."""

    changed = Signal(object)

    def __init__(
        self,
        theme: Theme,
        settings: Settings,
        model_path: str | None,
        models_folder: Path,
        templates: Callable[[], list[str]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.settings = settings
        self._theme = theme
        self._model_path = model_path
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(_SETTLE_MS)
        self._settle.timeout.connect(self._send)
        self.setWindowTitle("Settings")
        self.resize(560, 680)
        self.controls: dict[str, QWidget] = {}
        page = QWidget()
        self._rows = QVBoxLayout(page)
        self._rows.setContentsMargins(24, 16, 24, 16)
        self._rows.setSpacing(0)
        self._drafting_rows(models_folder)
        self._learning_rows(models_folder)
        self._answer_rows()
        self._model_rows(templates)
        self._section("Window")
        self._choice("theme", [(choice.capitalize(), choice) for choice in ("system", "light", "dark")])
        self._rows.addStretch()
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setWidget(page)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        close = QPushButton("Close", self)
        close.clicked.connect(self.close)
        below = QHBoxLayout()
        below.setContentsMargins(24, 8, 24, 12)
        note = QLabel("Changes hold from the next message on.", self)
        note.setProperty("role", "small")
        below.addWidget(note, 1)
        below.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(area, 1)
        column.addLayout(below)
        theme.changed.connect(self._recolour)

    # ---- groups

    def _drafting_rows(self, folder: Path) -> None:
        self._section("Drafting")
        self._switch("drafting", self.settings.drafting)
        self._choice("draft_mode", [(choice.capitalize(), choice) for choice in ("auto", "manual")])
        for look in drafters.looks():
            box = Switch(self._theme, self)
            box.setChecked(look.name in self.settings.links)
            box.toggled.connect(self._links_changed)
            self._row(f"links.{look.name}", look.name, look.help, box, icon_of=look)
        self._file("draft_model", lambda parent: gguf_dialog(parent, "Choose a draft model", folder))
        self._number("max_draft")

    def _learning_rows(self, folder: Path) -> None:
        words = declared("learn")
        control = LearningControl(self._theme, self.settings.learn, self)
        control.changed.connect(lambda learns: self._change(learn=learns))
        self._row("learn", words.title, words.help, control)
        self._file("lookup_cache", lambda parent: file_dialog(parent, "Choose a lookup cache", folder))

    def _answer_rows(self) -> None:
        self._section("Answers")
        self._number("temperature")
        for penalty in ("repeat_penalty", "frequency_penalty", "presence_penalty"):
            self._number(penalty)
        self._number("penalty_last_n", nothing="All tokens")
        self._number("max_tokens", nothing="No limit")
        edit = QPlainTextEdit(self)
        edit.setPlainText(self.settings.system_prompt)
        edit.setFixedHeight(72)
        edit.setTabChangesFocus(True)
        edit.textChanged.connect(lambda: self._change(settle=True, system_prompt=edit.toPlainText()))
        words = declared("system_prompt")
        self._row("system_prompt", words.title, words.help, edit, below=True)

    def _model_rows(self, templates: Callable[[], list[str]]) -> None:
        self._section("Model")
        self._number("n_ctx")
        self._number("n_threads", nothing=_AUTOMATIC)
        words = declared("chat_templates")
        box = QComboBox(self)
        box.addItem(_AUTOMATIC, None)
        for name in templates():
            box.addItem(name, name)
        chosen = self.settings.chat_templates.get(self._model_path or "")
        box.setCurrentIndex(max(0, box.findData(chosen)))
        box.setEnabled(self._model_path is not None)
        box.currentIndexChanged.connect(lambda: self._template_changed(box.currentData()))
        self._row("chat_templates", words.title, words.help, box)

    # ---- rows

    def _section(self, title: str) -> None:
        label = QLabel(title, self)
        label.setProperty("role", "section")
        label.setContentsMargins(0, 16 if self._rows.count() else 0, 0, 4)
        self._rows.addWidget(label)

    def _row(
        self,
        name: str,
        title: str,
        help: str,
        control: QWidget,
        *,
        below: bool = False,
        icon_of: drafters.DrafterLook | None = None,
    ) -> None:
        frame = QFrame(self)
        frame.setObjectName("row")
        words = QVBoxLayout()
        words.setSpacing(2)
        label = QLabel(title, frame)
        label.setBuddy(control)
        if icon_of is not None:
            label.setText(f"{title}")
            label.setStyleSheet(f"color: {icon_of.colour(self._theme.tokens.dark)}; font-weight: 600;")
        words.addWidget(label)
        explained = QLabel(help, frame)
        explained.setProperty("role", "small")
        explained.setWordWrap(True)
        words.addWidget(explained)
        control.setAccessibleName(title)
        control.setAccessibleDescription(help)
        control.setToolTip(help)
        self.controls[name] = control
        if below:
            column = QVBoxLayout(frame)
            column.setContentsMargins(0, 8, 0, 8)
            column.addLayout(words)
            column.addWidget(control)
        else:
            row = QHBoxLayout(frame)
            row.setContentsMargins(0, 8, 0, 8)
            row.setSpacing(16)
            row.addLayout(words, 1)
            if isinstance(control, QAbstractSpinBox | QComboBox):
                control.setFixedWidth(_CONTROL_WIDTH)
            row.addWidget(control, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._rows.addWidget(frame)

    def _switch(self, name: str, value: bool) -> None:
        words = declared(name)
        box = Switch(self._theme, self)
        box.setChecked(value)
        box.toggled.connect(lambda checked: self._change(**{name: checked}))
        self._row(name, words.title, words.help, box)

    def _number(self, name: str, nothing: str = "") -> None:
        words = declared(name)
        value = getattr(self.settings, name)
        box: QSpinBox | QDoubleSpinBox
        if isinstance(value, float):
            box = _DoubleSpin(self)
            box.setDecimals(2)
            box.setSingleStep(0.1)
            box.setRange(words.minimum or 0.0, words.maximum or 1.0)
            box.setValue(value)
        else:
            box = _Spin(self)
            box.setRange(int(words.minimum or 0), int(words.maximum or 0))
            box.setSingleStep(256 if name == "n_ctx" else 1)
            box.setGroupSeparatorShown(True)
            box.setValue(value)
        box.setSpecialValueText(nothing)
        box.setKeyboardTracking(False)
        box.valueChanged.connect(lambda number: self._change(settle=True, **{name: number}))
        self._row(name, words.title, words.help, box)

    def _choice(self, name: str, items: list[tuple[str, str]]) -> None:
        words = declared(name)
        box = QComboBox(self)
        for text, data in items:
            box.addItem(text, data)
        box.setCurrentIndex(box.findData(getattr(self.settings, name)))
        box.currentIndexChanged.connect(lambda: self._change(**{name: box.currentData()}))
        self._row(name, words.title, words.help, box)

    def _file(self, name: str, dialog: Callable[[QWidget], QFileDialog]) -> None:
        words = declared(name)
        control = FileChoice(words, getattr(self.settings, name), dialog, _CONTROL_WIDTH, self)
        control.chosen.connect(lambda path: self._change(**{name: path}))
        self._row(name, words.title, words.help, control)

    # ---- changes

    def _change(self, *, settle: bool = False, **values: Any) -> None:
        self.settings = replace(self.settings, **values)
        if settle:
            self._settle.start()
        else:
            self._send()

    def _send(self) -> None:
        self._settle.stop()
        self.changed.emit(self.settings)

    def _links_changed(self) -> None:
        links: list[DrafterName] = []
        for name in DRAFTERS:
            box = self.controls[f"links.{name}"]
            assert isinstance(box, QCheckBox)
            if box.isChecked():
                links.append(name)
        self._change(links=tuple(links))

    def _template_changed(self, name: str | None) -> None:
        if self._model_path is None:
            return
        templates = dict(self.settings.chat_templates)
        templates.pop(self._model_path, None)
        if name is not None:
            templates[self._model_path] = name
        self._change(chat_templates=templates)

    def _recolour(self) -> None:
        for look in drafters.looks():
            label = next(
                label
                for label in self.findChildren(QLabel)
                if label.buddy() is self.controls[f"links.{look.name}"]
            )
            label.setStyleSheet(f"color: {look.colour(self._theme.tokens.dark)}; font-weight: 600;")

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._settle.isActive():
            self._send()
        super().closeEvent(event)

    def reject(self) -> None:  # Esc
        self.close()


class _Spin(QSpinBox):
    """The wheel scrolls the page, it does not change what the pointer happens to be over."""

    def wheelEvent(self, event: Any) -> None:
        event.ignore()


class _DoubleSpin(QDoubleSpinBox):
    def wheelEvent(self, event: Any) -> None:
        event.ignore()
