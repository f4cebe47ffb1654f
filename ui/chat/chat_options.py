"""What one chat does differently from the settings: its system prompt and how its answers are drawn."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chats.chat import Chat
from app.chats.sampling import Preset, SamplingChoice
from app.declaration import declarations
from app.settings import Settings
from ui.bidi import visible
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.number_box import NumberBox, number_box
from ui.widgets.quiet_button import QuietButton

WIDTH_PX = 360  # at the usual size of text
_TYPED_MS = 500
AS_SET, OWN = "As in the settings", "Own values"
NAMES: tuple[str, ...] = tuple(field.name for field in msgspec.structs.fields(SamplingChoice))


class ChatOptions(QFrame):
    """Its signals say what a person chose; ``show_chat`` shows what came of it. ``prompt_changed``
    carries a text or None, for that of the settings; ``sampling_changed`` a SamplingChoice,
    ``preset_chosen`` a Preset or None, ``preset_kept`` a Preset and ``preset_dropped`` a name."""

    prompt_changed = Signal(object)
    sampling_changed = Signal(object)
    preset_chosen = Signal(object)
    preset_kept = Signal(object)
    preset_dropped = Signal(str)
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._settings = Settings()
        self._presets: tuple[Preset, ...] = ()
        self._preset: str | None = None
        self._choice = SamplingChoice()
        self.setObjectName("options")
        self.setAccessibleName("Options of this chat")
        self.prompt = QPlainTextEdit(self)
        self.prompt.setObjectName("system")
        self.prompt.setAccessibleName("System prompt of this chat")
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMinimumHeight(96)
        self.prompt.setMaximumHeight(160)
        self._typed = QTimer(self)
        self._typed.setSingleShot(True)
        self._typed.setInterval(_TYPED_MS)
        self._typed.timeout.connect(self._say_prompt)
        self.prompt.textChanged.connect(self._typed.start)
        self.prompt_reset = QuietButton(theme, "again", "", self)
        self.prompt_reset.setToolTip("System prompt as in the settings")
        self.prompt_reset.setAccessibleName("System prompt as in the settings")
        self.prompt_reset.clicked.connect(self._reset_prompt)
        self.preset = QComboBox(self)
        self.preset.setAccessibleName("Preset")
        self.preset.activated.connect(self._take_preset)
        self.keep = QPushButton("Save as…", self)
        self.keep.setToolTip("Keep these values as a preset of your own")
        self.keep.clicked.connect(self._ask_for_name)
        self.drop = QPushButton("Delete", self)
        self.drop.setToolTip("Delete this preset; chats that use it keep its values")
        self.drop.clicked.connect(lambda: self.preset_dropped.emit(self._preset or ""))
        self.boxes: dict[str, NumberBox] = {}
        self.resets: dict[str, QuietButton] = {}
        self._build()

    def _build(self) -> None:
        close = QuietButton(self._theme, "close", "", self)
        close.setAccessibleName("Close the options")
        close.setToolTip("Close (Esc)")
        close.clicked.connect(self.closed)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(1, 8, 1, 8)
        head = nested(whole, QHBoxLayout())
        head.setContentsMargins(15, 0, 7, 0)
        head.addWidget(_heading("This chat", self), 1)
        head.addWidget(close)
        inside = QWidget(self)
        inside.setObjectName("options_body")
        column = QVBoxLayout(inside)
        column.setContentsMargins(16, 0, 16, 16)
        column.setSpacing(8)
        above = nested(column, QHBoxLayout())
        above.addWidget(_muted("System prompt", inside), 1)
        above.addWidget(self.prompt_reset)
        _keep_place(self.prompt_reset)
        column.addWidget(self.prompt)
        column.addSpacing(8)
        column.addWidget(_muted("Sampling", inside))
        row = nested(column, QHBoxLayout())
        row.setSpacing(8)
        row.addWidget(self.preset, 1)
        row.addWidget(self.keep)
        row.addWidget(self.drop)
        self._help = _muted("", inside)
        self._help.setWordWrap(True)
        column.addWidget(self._help)
        self._build_numbers(nested(column, QGridLayout()), inside)
        below = _muted("Holds from the next answer on, in this chat only.", inside)
        below.setWordWrap(True)
        column.addWidget(below)
        column.addStretch(1)
        self._inside = inside
        area = QScrollArea(self)
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        whole.addWidget(area, 1)

    def _build_numbers(self, grid: QGridLayout, parent: QWidget) -> None:
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(0, 1)
        declared = declarations(Settings)
        for line, name in enumerate(NAMES):
            words = declared[name]
            label = QLabel(words.title, parent)
            label.setToolTip(words.help)
            box = number_box(words, getattr(self._settings, name), parent)
            box.setToolTip(words.help)
            box.setAccessibleName(words.title)
            box.setAccessibleDescription(words.help)
            box.valueChanged.connect(lambda value, name=name: self._set(name, value))
            reset = QuietButton(self._theme, "again", "", parent)
            reset.setToolTip(f"{words.title} as in the settings")
            reset.setAccessibleName(f"{words.title} as in the settings")
            reset.clicked.connect(lambda _=False, name=name: self._set(name, None))
            _keep_place(reset)
            label.setBuddy(box)
            grid.addWidget(label, line, 0)
            grid.addWidget(box, line, 1)
            grid.addWidget(reset, line, 2)
            self.boxes[name], self.resets[name] = box, reset

    def wanted_height(self) -> int:
        """With which nothing has to be scrolled."""
        layout = self._inside.layout()
        if layout is not None:
            layout.activate()
        return self._inside.sizeHint().height() + 56

    # ---- content

    def show_chat(self, chat: Chat, settings: Settings, presets: Sequence[Preset]) -> None:
        self._settings, self._presets = settings, tuple(presets)
        self._preset, self._choice = chat.preset, chat.sampling
        self._show_prompt(chat.system_prompt)
        self._fill_presets()
        self._fill_numbers()

    def take_typed(self) -> str | None:
        """A system prompt that was typed a moment ago and not said yet."""
        if not self._typed.isActive():
            return None
        self._typed.stop()
        return self.prompt.toPlainText()

    def _show_prompt(self, text: str | None) -> None:
        general = self._settings.system_prompt
        self.prompt.setPlaceholderText(
            "None in this chat" if text is not None else f"As in the settings: {general or 'none'}"
        )
        self.prompt_reset.setVisible(text is not None)
        if not self._typed.isActive() and (text or "") != self.prompt.toPlainText():
            with QSignalBlocker(self.prompt):
                self.prompt.setPlainText(text or "")

    def _fill_presets(self) -> None:
        self.preset.clear()
        self.preset.addItem(AS_SET, None)
        for preset in self._presets:
            self.preset.addItem(visible(preset.name), preset.name)
            self.preset.setItemData(self.preset.count() - 1, preset.help, Qt.ItemDataRole.ToolTipRole)
        known = next((preset for preset in self._presets if preset.name == self._preset), None)
        if known is None and not self._choice.is_empty:
            self.preset.addItem(OWN, OWN)
            self.preset.setCurrentIndex(self.preset.count() - 1)
        else:
            at = self.preset.findData(known.name) if known is not None else 0
            self.preset.setCurrentIndex(max(0, at))
        self._help.setText(visible(known.help) if known is not None else "")
        self._help.setVisible(bool(self._help.text()))
        self.keep.setEnabled(not self._choice.is_empty)
        self.drop.setVisible(known is not None and known.own)

    def _fill_numbers(self) -> None:
        for name, box in self.boxes.items():
            own = getattr(self._choice, name)
            value = getattr(self._settings, name) if own is None else own
            with QSignalBlocker(box):
                box.setValue(value)
            self.resets[name].setVisible(own is not None)
            font = box.font()
            font.setBold(own is not None)
            box.setFont(font)

    # ---- what a person does

    def _say_prompt(self) -> None:
        self._typed.stop()
        self.prompt_changed.emit(self.prompt.toPlainText())

    def _reset_prompt(self) -> None:
        self._typed.stop()
        self.prompt_changed.emit(None)

    def _set(self, name: str, value: float | None) -> None:
        self.sampling_changed.emit(msgspec.structs.replace(self._choice, **{name: value}))

    def _take_preset(self, index: int) -> None:
        name = self.preset.itemData(index)
        if name != OWN:
            if self._typed.isActive():
                self._say_prompt()
            self.preset_chosen.emit(next((preset for preset in self._presets if preset.name == name), None))

    def _ask_for_name(self) -> None:
        dialog = QInputDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle("Save as a preset")
        dialog.setLabelText("Name of the preset")
        dialog.textValueSelected.connect(self._keep)
        dialog.open()

    def _keep(self, name: str) -> None:
        if name := " ".join(name.split())[:60]:
            self.preset_kept.emit(Preset(name=name, sampling=self._choice))


def _heading(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    font = QFont(label.font())
    font.setWeight(QFont.Weight.DemiBold)
    label.setFont(font)
    return label


def _keep_place(widget: QWidget) -> None:
    """Nothing moves when it is hidden."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def _muted(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setProperty("role", "small")
    return label
