"""The line above the messages: the sidebar's switch, the chat's title, its options, the model."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QSizePolicy, QToolButton, QWidget

from ui.bidi import visible
from ui.icons import icon
from ui.theme import FONT_PX, RADIUS, Theme, scaled_px

_LEAST_PX, _ROOM_PX = 48, 24
_WIDE_PX = 720
_LEAST_TITLE_PX = 80
_BUTTONS_PX = 70
_TITLE_PAD = 8


def header_px(theme: Theme) -> int:
    """As high as the window's text needs, here and beside it."""
    return max(_LEAST_PX, scaled_px(FONT_PX, theme.measures.zoom) * 4 // 3 + _ROOM_PX)


class ChatHeader(QFrame):
    """Its signals say what a person asks for; ``renamed`` carries the new title."""

    sidebar_asked = Signal(bool)
    new_asked = Signal()
    renamed = Signal(str)
    drafts_asked = Signal(bool)
    options_asked = Signal(bool)

    def __init__(self, theme: Theme, picker: QWidget, parent: QWidget | None = None) -> None:
        """``picker`` chooses the model; it stands at the right end."""
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("header")
        self.sidebar_button = self._button("Chats", "Show or hide the chats (Ctrl+B)", checkable=True)
        self.sidebar_button.clicked.connect(self.sidebar_asked)
        self.new_button = self._button("New chat", "New chat (Ctrl+N)")
        self.new_button.clicked.connect(self.new_asked)
        self.title = TitleButton(theme, self)
        self.title.renamed.connect(self.renamed)
        self.drafts_button = self._button(
            "Show drafted text",
            "Underline what was drafted, by drafter: each has a colour and a kind of line of its own.",
            checkable=True,
        )
        self.drafts_button.clicked.connect(self.drafts_asked)
        self.options_button = self._button(
            "Options of this chat", "System prompt and sampling of this chat", checkable=True
        )
        self.options_button.clicked.connect(self.options_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self.sidebar_button)
        row.addWidget(self.new_button)
        row.addWidget(self.title, 1)
        row.addWidget(self.drafts_button)
        row.addWidget(self.options_button)
        row.addWidget(picker)
        theme.changed.connect(self._colour)
        self._colour()

    def _button(self, name: str, help: str, checkable: bool = False) -> QToolButton:
        button = QToolButton(self)
        button.setAccessibleName(name)
        button.setToolTip(help)
        button.setCheckable(checkable)
        return button

    def _colour(self) -> None:
        self.setFixedHeight(header_px(self._theme))
        tokens = self._theme.tokens
        for button, name in (
            (self.sidebar_button, "sidebar"),
            (self.new_button, "new"),
            (self.drafts_button, "drafts"),
            (self.options_button, "sliders"),
        ):
            lit = button.isChecked() and button in (self.drafts_button, self.options_button)
            button.setIcon(icon(name, tokens.accent if lit else tokens.text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The model's name has the rest, and can be cut as well.
        self.title.setMinimumWidth(max(_LEAST_TITLE_PX, self.width() // 3 - _BUTTONS_PX))
        wide = self.width() >= scaled_px(_WIDE_PX, self._theme.measures.zoom)
        self.new_button.setText("New chat" if wide else "")
        self.new_button.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon if wide else Qt.ToolButtonStyle.ToolButtonIconOnly
        )

    def show_sidebar(self, shown: bool) -> None:
        self.sidebar_button.setChecked(shown)

    def show_drafts(self, shown: bool) -> None:
        self.drafts_button.setChecked(shown)
        self._colour()

    def show_options(self, shown: bool) -> None:
        self.options_button.setChecked(shown)
        self._colour()


class TitleButton(QToolButton):
    """A title that is cut where there is no room; a click lets it be typed over."""

    renamed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(_LEAST_TITLE_PX)
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        self.setFont(font)
        self.edit = _TitleEdit(self)
        self.edit.setFont(font)
        self.edit.setProperty("look", "rename")
        self.edit.setAccessibleName("Name of the chat")
        self.edit.left.connect(self._leave)
        self.edit.returnPressed.connect(lambda: self._leave(True))
        self.edit.hide()
        self.clicked.connect(self.start_renaming)

    @property
    def title(self) -> str:
        return self._title

    def show_title(self, title: str, can_rename: bool) -> None:
        self._title = title
        self.setEnabled(can_rename)
        words = visible(title)
        self.setAccessibleName(f"Chat: {words}")
        self.setToolTip(f"{words}\nClick to rename" if can_rename else words)
        self.update()

    def start_renaming(self) -> None:
        self.edit.setText(self._title)
        self.edit.setGeometry(self.rect())
        self.edit.show()
        self.edit.setFocus()
        self.edit.selectAll()

    def _leave(self, keep: bool) -> None:
        if self.edit.isHidden():
            return
        had_focus = self.edit.hasFocus()
        self.edit.hide()
        if had_focus:
            self.setFocus()
        if keep and self.edit.text() != self._title:
            self.renamed.emit(self.edit.text())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        words = visible(self._title)
        area = self.rect().adjusted(_TITLE_PAD, 0, -_TITLE_PAD, 0)
        if self.isEnabled() and (self.underMouse() or self.hasFocus()):
            width = min(self.width(), self.fontMetrics().horizontalAdvance(words) + 2 * _TITLE_PAD)
            ground = QRectF(0, 0, width, self.height()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.setBrush(QColor(tokens.hover) if self.underMouse() else Qt.BrushStyle.NoBrush)
            painter.setPen(QColor(tokens.accent) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.drawRoundedRect(ground, RADIUS, RADIUS)
        painter.setPen(QColor(tokens.text))
        shown = self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)

    def sizeHint(self) -> QSize:
        return QSize(_LEAST_TITLE_PX, max(30, self.fontMetrics().height() + 12))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.edit.setGeometry(self.rect())


class _TitleEdit(QLineEdit):
    left = Signal(bool)  # whether to keep what was typed

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit(False)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.left.emit(True)
        elif (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()  # else the window's own Esc would come first
            return True
        return super().event(event)
