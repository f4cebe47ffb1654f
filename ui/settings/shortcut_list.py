"""The window's actions, each with the keys for it, which a person can change."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QKeyCombination, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QGridLayout, QKeySequenceEdit, QLabel, QWidget

from app.shortcuts import ACTIONS, Action, chosen_keys, conflict, with_keys
from ui.theme import Theme
from ui.widgets.quiet_button import QuietButton

_FREE = frozenset({Qt.Key.Key_Escape, *(Qt.Key(Qt.Key.Key_F1 + n) for n in range(35))})
_MODIFIERS = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)
_KEYS_PX = 144


class KeysEdit(QKeySequenceEdit):
    """Tab leads on, it is no shortcut."""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            held = event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
            if event.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab) and not held:
                return self.focusNextPrevChild(event.key() == Qt.Key.Key_Tab)
        return super().event(event)


class ShortcutList(QWidget):
    """``changed`` carries the keys that a person chose, by action; what is as usual is not in it."""

    changed = Signal(dict)

    def __init__(self, theme: Theme, own: dict[str, str], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._own = own
        self.edits: dict[str, QKeySequenceEdit] = {}
        self.defaults: dict[str, QuietButton] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(4)
        self._grid.setColumnStretch(0, 1)
        for action in ACTIONS:
            self._add(action)
        self.note = QLabel(self)
        self.note.setProperty("role", "note")
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.note.setWordWrap(True)
        self.note.hide()
        self._grid.addWidget(self.note, self._grid.rowCount(), 0, 1, 3)
        theme.changed.connect(self._resize)
        self._resize()
        self.show_keys(own)

    def show_keys(self, own: dict[str, str]) -> None:
        self._own = own
        for name, keys in chosen_keys(own).items():
            self._show(name, keys)
            self.defaults[name].setVisible(name in own)

    # ---- inside

    def _add(self, action: Action) -> None:
        line = self._grid.rowCount()
        label = QLabel(action.title, self)
        label.setWordWrap(True)
        back = QuietButton(self._theme, "again", "", self)
        usual = f"back to {action.keys}" if action.keys else "back to no keys"
        back.setAccessibleName(f"{action.title}: {usual}")
        back.setToolTip(f"{usual.capitalize()}.")
        policy = back.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        back.setSizePolicy(policy)
        edit = KeysEdit(self)
        edit.setMaximumSequenceLength(1)
        edit.setClearButtonEnabled(True)
        edit.setAccessibleName(f"Keys for {action.title}")
        edit.setAccessibleDescription("Press the new keys; Tab goes on.")
        edit.setToolTip("Press the new keys.")
        label.setBuddy(edit)
        back.clicked.connect(lambda: self._take(action, action.keys))
        edit.editingFinished.connect(
            lambda: self._take(action, edit.keySequence().toString(QKeySequence.SequenceFormat.PortableText))
        )
        self._grid.addWidget(label, line, 0)
        self._grid.addWidget(back, line, 1)
        self._grid.addWidget(edit, line, 2)
        self.edits[action.name], self.defaults[action.name] = edit, back

    def _take(self, action: Action, keys: str) -> None:
        before = chosen_keys(self._own)[action.name]
        if keys == before:
            return
        problem = self._problem(action, keys)
        self.note.setText(problem)
        self.note.setVisible(bool(problem))
        if problem:
            self._show(action.name, before)
            return
        self.show_keys(with_keys(self._own, action.name, keys))
        self.changed.emit(self._own)

    def _problem(self, action: Action, keys: str) -> str:
        """Why these keys cannot be had, "" where they can."""
        if not keys:
            return ""
        other = conflict(self._own, action.name, keys)
        if other is not None:
            return f"{keys} is taken: {other.title}. Nothing was changed."
        pressed: QKeyCombination = QKeySequence(keys)[0]  # type: ignore[index]
        if not pressed.keyboardModifiers() & _MODIFIERS and pressed.key() not in _FREE:
            return f"{keys} alone is needed for typing: take it with Ctrl or Alt. Nothing was changed."
        return ""

    def _show(self, name: str, keys: str) -> None:
        edit = self.edits[name]
        with QSignalBlocker(edit):
            edit.setKeySequence(QKeySequence(keys))

    def _resize(self) -> None:
        self._grid.setVerticalSpacing(self._theme.measures.gap_px)
        for edit in self.edits.values():
            edit.setFixedWidth(_KEYS_PX * self._theme.measures.zoom // 100)
