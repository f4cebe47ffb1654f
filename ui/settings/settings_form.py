"""All settings in one column, drawn from their declarations; every change is in force at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from msgspec.structs import replace
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QHideEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.protocol import ModelReport
from app.settings import Settings, Verification
from ui.bidi import visible
from ui.models.model_picker import file_dialog, gguf_dialog
from ui.settings.chain_editor import ChainEditor
from ui.settings.declared import declared
from ui.settings.learning_control import LearningControl
from ui.theme import Theme, small_font
from ui.widgets.file_choice import FileChoice
from ui.widgets.number_box import WholeBox, number_box
from ui.widgets.switch import Switch

_SETTLE_MS = 500
_CONTROL_WIDTH = 180
_AUTOMATIC = "Automatic"
AUTO_HELP = "Who may guess; auto takes whichever guess is expected to pay most."


class SettingsForm(QWidget):
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
        self.controls: dict[str, QWidget] = {}
        self._frames: dict[str, QFrame] = {}
        self._report: ModelReport | None = None
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
        self.chain.moved.connect(area.ensureWidgetVisible)
        note = QLabel("Changes hold from the next message on.", self)
        note.setProperty("role", "small")
        note.setContentsMargins(24, 8, 24, 12)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(area, 1)
        column.addWidget(note)
        theme.changed.connect(self.chain.recolour)

    # ---- groups

    def _drafting_rows(self, folder: Path) -> None:
        self._section("Drafting")
        self._switch("drafting", self.settings.drafting)
        self._choice("draft_mode", [(choice.capitalize(), choice) for choice in ("auto", "manual")])
        self._chain_help = self._words(declared("links").title, "")
        self.chain = ChainEditor(self._theme, self.settings, self)
        self.chain.changed.connect(lambda: self._change(links=self.chain.links, order=self.chain.order))
        self.chain.tuned.connect(lambda: self._change(settle=True, parameters=self.chain.parameters))
        self.controls.update(self.chain.controls())
        self._rows.addWidget(self.chain)
        self._file("draft_model", lambda parent: gguf_dialog(parent, "Choose a draft model", folder))
        words = self._number("max_draft")
        self._clamp = QLabel(self)
        self._clamp.setProperty("role", "warning")
        self._clamp.setFont(small_font(self.font()))
        self._clamp.setWordWrap(True)
        words.addWidget(self._clamp)
        for name in ("floor_auto", "floor_manual"):
            self._share(name)
        self._choice("verification", [(each.capitalize(), each) for each in get_args(Verification)])
        self._show_mode()
        self._show_clamp()

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
    ) -> QVBoxLayout:
        """The layout of its words, to which more can be added."""
        frame = QFrame(self)
        frame.setObjectName("row")
        words = QVBoxLayout()
        words.setSpacing(2)
        label = QLabel(title, frame)
        label.setBuddy(control)
        words.addWidget(label)
        explained = QLabel(help, frame)
        explained.setProperty("role", "small")
        explained.setWordWrap(True)
        words.addWidget(explained)
        control.setAccessibleName(title)
        control.setAccessibleDescription(help)
        control.setToolTip(help)
        self.controls[name] = control
        self._frames[name] = frame
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
        return words

    def _words(self, title: str, help: str) -> QLabel:
        """A row without a control; its help can be changed."""
        frame = QFrame(self)
        column = QVBoxLayout(frame)
        column.setContentsMargins(0, 8, 0, 4)
        column.setSpacing(2)
        column.addWidget(QLabel(title, frame))
        explained = QLabel(help, frame)
        explained.setProperty("role", "small")
        explained.setWordWrap(True)
        column.addWidget(explained)
        self._rows.addWidget(frame)
        return explained

    def _switch(self, name: str, value: bool) -> None:
        words = declared(name)
        box = Switch(self._theme, self)
        box.setChecked(value)
        box.toggled.connect(lambda checked: self._change(**{name: checked}))
        self._row(name, words.title, words.help, box)

    def _number(self, name: str, nothing: str = "") -> QVBoxLayout:
        words = declared(name)
        box = number_box(words, getattr(self.settings, name), self)
        if name == "n_ctx":
            box.setSingleStep(256)
        box.setSpecialValueText(nothing)
        box.valueChanged.connect(lambda number: self._change(settle=True, **{name: number}))
        return self._row(name, words.title, words.help, box)

    def _share(self, name: str) -> None:
        """A share from 0 to 1, in percent."""
        words = declared(name)
        box = WholeBox(self)
        box.setRange(0, 100)
        box.setSingleStep(5)
        box.setSuffix(" %")
        box.setSpecialValueText("Off")
        box.setValue(round(100 * getattr(self.settings, name)))
        box.setKeyboardTracking(False)
        box.valueChanged.connect(lambda percent: self._change(settle=True, **{name: percent / 100}))
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
        if "draft_mode" in values:
            self._show_mode()
        self._show_clamp()
        if settle:
            self._settle.start()
        else:
            self._send()

    def _send(self) -> None:
        self._settle.stop()
        self.changed.emit(self.settings)

    def _show_mode(self) -> None:
        """Show what matters in the mode chosen."""
        manual = self.settings.draft_mode == "manual"
        words = declared("links").help
        self._chain_help.setText(f"{words} Drag to change the order." if manual else AUTO_HELP)
        self.chain.show_mode(manual)
        for name, shown in (("floor_auto", not manual), ("floor_manual", manual)):
            self._frames[name].setVisible(shown)

    def show_report(self, report: ModelReport | None) -> None:
        """What the model in memory can do; None while there is none."""
        self._report = report
        self.chain.show_reports(report.drafters if report is not None else ())
        self._show_clamp()

    def _show_clamp(self) -> None:
        """The longest draft that a pass has room for, where that is less than what was asked for."""
        report, asked = self._report, self.settings.max_draft
        room = asked if report is None else report.max_draft
        self._clamp.setVisible(room < asked)
        if report is not None and room < asked:
            tokens = "1 token" if room == 1 else f"{room} tokens"
            what = f"holds {tokens} at most" if room else "cannot be made"
            self._clamp.setText(f"With {visible(report.name)} a draft {what}: a pass has room for no more.")

    def _template_changed(self, name: str | None) -> None:
        if self._model_path is None:
            return
        templates = dict(self.settings.chat_templates)
        templates.pop(self._model_path, None)
        if name is not None:
            templates[self._model_path] = name
        self._change(chat_templates=templates)

    def hideEvent(self, event: QHideEvent) -> None:
        self._flush()
        super().hideEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._flush()
        super().closeEvent(event)

    def _flush(self) -> None:
        """What was typed last is not lost with the page."""
        if self._settle.isActive():
            self._send()
