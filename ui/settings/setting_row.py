"""One row of the settings: what it is, what it does, how it is changed, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from app.declaration import Declared
from ui.settings.editors import Editor
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton

_CONTROL_PX = 168
_NARROW_PX = 440  # below it the control stands under its words
RELOADS = "loads the model again"


class SettingRow(QFrame):
    """``reset_asked``: back to the default. ``names`` are the settings that are changed here."""

    reset_asked = Signal()

    def __init__(
        self,
        theme: Theme,
        words: Declared,
        make: Callable[[QWidget], Editor],
        *,
        names: Sequence[str] = (),
        keywords: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """``make`` makes the control, with the row as its parent. ``keywords`` are found, too."""
        super().__init__(parent)
        self.setObjectName("row")
        self.words = words
        self.names = tuple(names)
        self.wanted = True
        """Whether it matters now; a search does not show what does not."""
        self._theme = theme
        self._title, self._help = words.title, words.help
        self._found: tuple[str, ...] = ()
        self.is_found = True
        """Whether the last search, if there was one, found it."""
        choices = " ".join(label for _, label in words.choices)
        self._keywords = f"{words.name.replace('_', ' ')} {choices} {keywords}"
        self.title = _label(self)
        self.explanation = _label(self)
        self.explanation.setProperty("role", "small")
        self.reset = QuietButton(theme, "again", "", self)
        self.reset.setAccessibleName(f"{words.title}: back to the default")
        self.reset.setToolTip("Back to the default.")
        self.reset.clicked.connect(self.reset_asked)
        # It takes its room also while it is not there, so that nothing moves when it comes.
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(bool(names))
        self.reset.setSizePolicy(policy)
        self.reset.hide()
        # After the way back, so that Tab comes to them in the order in which they stand.
        self.editor = make(self)
        self.control = self.editor.control
        self.title.setBuddy(self.control)
        self.note = _label(self)
        self.note.setProperty("role", "note")
        self.note.hide()
        self._lay_out()
        self._explain_control()
        self.refresh()
        theme.changed.connect(self.refresh)

    # ---- what it says

    def explain(self, help: str) -> None:
        """Other help than the declared one."""
        self.show_words(self._title, help)

    def show_words(self, title: str, help: str) -> None:
        """Other words than the declared ones."""
        self._title, self._help = title, help
        self._explain_control()
        self._show_words()

    def show_note(self, text: str) -> None:
        """A line of warning under the help; "" takes it away."""
        self.note.setText(escape(text))
        self.note.setVisible(bool(text))

    def show_differs(self, differs: bool, default: str = "") -> None:
        """Offer the way back only where there is one; ``default`` is where it leads, in words."""
        if default:
            self.reset.setToolTip(f"Back to the default: {default}.")
        self.reset.setVisible(differs)

    # ---- search

    def search(self, found: Sequence[str], group: str) -> bool:
        """Mark the casefolded words ``found`` and say whether all of them occur in this row, or in the
        title of its group."""
        text = f"{self._title} {self._help} {self._keywords} {group}".casefold()
        matches = all(word in text for word in found)
        self.is_found = matches
        self._found = tuple(found) if matches else ()
        self._show_words()
        return matches

    # ---- inside

    def _lay_out(self) -> None:
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._line = QBoxLayout(down if self.editor.below else across, self)
        if self.editor.below:
            self._line.setSpacing(8)
            self._side = nested(self._line, QHBoxLayout())
            self._words = nested(self._side, QVBoxLayout(), 1)
            self._side.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignTop)
            self._line.addWidget(self.control)
        else:
            self._line.setSpacing(12)
            self._words = nested(self._line, QVBoxLayout(), 1)
            self._side = nested(self._line, QHBoxLayout())
            self._side.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignVCenter)
            self._side.addWidget(self.control, 0, Qt.AlignmentFlag.AlignVCenter)
        self._side.setSpacing(4)
        self._words.setSpacing(2)
        for label in (self.title, self.explanation, self.note):
            self._words.addWidget(label)

    def _explain_control(self) -> None:
        control = self.control
        help = f"{self._help} A change {RELOADS}." if self.words.reloads else self._help
        control.setAccessibleName(self._title)
        control.setAccessibleDescription(help)
        if not control.toolTip() or self.words.control != "file":
            control.setToolTip(help)
        explain = getattr(control, "explain", None)
        if explain is not None:
            explain(self._title, help)

    def refresh(self) -> None:
        """Take on colours and sizes of the theme."""
        gap = self._theme.measures.gap_px
        self._line.setContentsMargins(0, gap, 0, gap)
        if isinstance(self.control, QAbstractSpinBox | QComboBox):
            least = _CONTROL_PX * self._theme.measures.zoom // 100
            self.control.setFixedWidth(max(least, self.control.sizeHint().width()))
        self._show_words()
        self._turn()

    def _show_words(self) -> None:
        tokens = self._theme.tokens
        mark = f' <span style="color: {tokens.muted}">· {RELOADS}</span>' if self.words.reloads else ""
        self.title.setText(self._marked(self._title) + mark)
        self.explanation.setText(self._marked(self._help))

    def _marked(self, text: str) -> str:
        if not self._found:
            return escape(text)
        tokens = self._theme.tokens
        style = f"background-color: {tokens.selection}; color: {tokens.on_selection}"
        pattern = "|".join(re.escape(word) for word in sorted(self._found, key=len, reverse=True))
        parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
        return "".join(
            f'<span style="{style}">{escape(part)}</span>' if place % 2 else escape(part)
            for place, part in enumerate(parts)
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        if self.editor.below:
            return
        narrow = self.width() < _NARROW_PX * self._theme.measures.zoom / 100
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        wanted = down if narrow else across
        if self._line.direction() != wanted:
            self._line.setDirection(wanted)
            self._line.setSpacing(6 if narrow else 12)
            self._line.setAlignment(self._side, Qt.AlignmentFlag.AlignLeft if narrow else Qt.AlignmentFlag(0))
            # The way back has its place at the control's inner side.
            back = QBoxLayout.Direction.RightToLeft
            self._side.setDirection(back if narrow else across)


def _label(parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.RichText)
    label.setWordWrap(True)
    return label
