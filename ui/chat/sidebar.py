"""The sidebar: all chats, found again by group, by title or by what was said in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chats.chat import Chat
from app.chats.database import FoundText
from ui.chat.chat_header import header_px
from ui.chat.chat_list import ChatList
from ui.chat.chat_search import ChatSearcher, FoundList, Search
from ui.icons import icon
from ui.theme import Theme
from ui.widgets.layouts import nested
from ui.widgets.undo_line import UndoLine

_NEXT_DAY_MS = 60_000


class Sidebar(QFrame):
    """``found`` carries a FoundText that was chosen. What is asked of a single chat comes from
    ``list``."""

    found = Signal(object)
    import_asked = Signal()
    export_asked = Signal(str)  # of all chats: "json" or "markdown"
    undo_asked = Signal()

    def __init__(self, theme: Theme, search: Search, parent: QWidget | None = None) -> None:
        """``search`` may be called on another thread."""
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("sidebar")
        self.setAccessibleName("Chats")
        self._titles: dict[int, str] = {}
        self.search = QLineEdit(self)
        self.search.setObjectName("search")
        self.search.setPlaceholderText("Search chats")
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName("Search chats")
        self.search.setToolTip("Search all chats (Ctrl+Shift+F)")
        self._glass = self.search.addAction(
            icon("search", theme.tokens.muted), QLineEdit.ActionPosition.LeadingPosition
        )
        self.more = QToolButton(self)
        self.more.setToolTip("More")
        self.more.setAccessibleName("More about chats")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self.more)
        menu.addAction("Import chats…").triggered.connect(self.import_asked)
        menu.addSeparator()
        for kind, words in (("json", "JSON"), ("markdown", "Markdown")):
            action = menu.addAction(f"Export all chats as {words}…")
            action.triggered.connect(lambda _=False, kind=kind: self.export_asked.emit(kind))
        self.more.setMenu(menu)
        self.list = ChatList(theme, self)
        self.results = FoundList(theme, self._title_of, self)
        self.words = QLabel(self)
        self.words.setProperty("role", "muted")
        self.words.setWordWrap(True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self.words.setContentsMargins(16, 24, 16, 0)
        self.stack = QStackedWidget(self)
        for page in (self.list, self.results, self.words):
            self.stack.addWidget(page)
        self.undo = UndoLine(theme, self, stacked=True)
        self.undo.undone.connect(self.undo_asked)
        self.list.undo_asked.connect(self._undo_with_keys)
        self._build()
        self._searcher = ChatSearcher(search, self)
        self._searcher.found.connect(self._show_found)
        self._searcher.failed.connect(self._show_words)
        self.search.textChanged.connect(self._search_for)
        self.search.returnPressed.connect(self._open_first)
        self.results.opened.connect(self.found)
        self.results.left_upwards.connect(self.search.setFocus)
        # "Today" is yesterday after midnight.
        self._clock = QTimer(self)
        self._clock.setInterval(_NEXT_DAY_MS)
        self._clock.setTimerType(Qt.TimerType.VeryCoarseTimer)
        self._clock.timeout.connect(lambda: self.list.show_chats(self.list.chats()))
        self._clock.start()
        theme.changed.connect(self._colour)
        self._colour()
        self._show_page()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.setContentsMargins(8, 0, 8, 0)
        top.setSpacing(4)
        top.addWidget(self.search, 1)
        top.addWidget(self.more)
        self._head = head = QWidget(self)
        head.setLayout(top)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(head)
        column.addWidget(self.stack, 1)
        below = nested(column, QVBoxLayout())
        below.setContentsMargins(8, 4, 8, 8)
        below.addWidget(self.undo)

    def _colour(self) -> None:
        self._head.setFixedHeight(header_px(self._theme))
        tokens = self._theme.tokens
        self._glass.setIcon(icon("search", tokens.muted))
        self.more.setIcon(icon("more", tokens.text))

    def take_focus(self) -> None:
        """To the list, or the search while there is none."""
        page = self.stack.currentWidget()
        (self.search if page is None or page is self.words else page).setFocus()

    @property
    def has_focus(self) -> bool:
        focused = self.focusWidget()
        return focused is not None and focused.hasFocus()

    # ---- content

    def show_chats(self, chats: Iterable[Chat]) -> None:
        self.list.show_chats(chats)
        self._titles = {chat.id: chat.label for chat in self.list.chats()}
        self._show_page()

    def set_shown(self, chat: int | None) -> None:
        self.list.set_shown(chat)

    def set_busy(self, chats: Collection[int]) -> None:
        self.list.set_busy(chats)

    def close_search(self) -> None:
        """End what looks. For shutdown only."""
        self._clock.stop()
        self._searcher.close()

    def _title_of(self, chat: int) -> str:
        return self._titles.get(chat, "")

    def _undo_with_keys(self) -> None:
        if self.undo.isVisible():
            self.undo.button.click()

    # ---- searching

    def start_search(self) -> None:
        """Put the cursor where a search is typed."""
        self.search.setFocus()
        self.search.selectAll()

    def _search_for(self, text: str) -> None:
        self._searcher.ask(text.strip())
        if not text.strip():
            self._show_page()

    def _show_found(self, text: str, found: list[FoundText]) -> None:
        found = [one for one in found if one.chat in self._titles]
        self.results.show_found(found)
        if found:
            self.stack.setCurrentWidget(self.results)
            self.results.setAccessibleDescription(f"{len(found)} chats found")
        else:
            self._show_words(f"No chat has “{text}” in it.")

    def _show_words(self, words: str) -> None:
        self.words.setText(words)
        self.stack.setCurrentWidget(self.words)

    def _show_page(self) -> None:
        if self.search.text().strip():
            return
        if self.list.chats():
            self.stack.setCurrentWidget(self.list)
        else:
            self._show_words("No chats yet. What you write is kept here.")

    def _open_first(self) -> None:
        if self.stack.currentWidget() is self.results:
            found = self.results.rows.found_at(self.results.currentIndex())
            if found is not None:
                self.found.emit(found)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.search.text():
            self.search.clear()
        elif event.key() == Qt.Key.Key_Down and self.search.hasFocus():
            self.take_focus()
        else:
            super().keyPressEvent(event)
