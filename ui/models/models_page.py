"""The models page: what is here, what suits this machine, what the Hub has, and what is on its way."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from ui.icons import icon
from ui.models.disk_panel import DiskPanel
from ui.models.downloads_bar import DownloadsBar
from ui.models.foreign_bar import ForeignBar
from ui.models.ready_shelf import ReadyShelf
from ui.models.search_shelf import SearchShelf
from ui.models.suggested_shelf import SuggestedShelf
from ui.session import Session
from ui.theme import Theme
from ui.widgets.cards import NoticeLine
from ui.widgets.quiet_button import QuietButton

_MARGIN = 24
_CHATS, _SETTINGS = "Chats", "Settings"


class ModelsPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._notice: NoticeLine | None = None
        self._started = False
        self.ready = ReadyShelf(theme, session, self)
        self.suggested = SuggestedShelf(theme, session, self)
        self.found = SearchShelf(theme, session, self)
        self.foreign = ForeignBar(theme, session, self)
        self.disk = DiskPanel(theme, session, self)
        self.downloads = DownloadsBar(theme, session.downloads, self)
        self._build()
        self._listen()
        theme.changed.connect(self._colour)
        self._colour()

    def start_search(self) -> None:
        """Put the focus where the search is typed."""
        self.search.setFocus()
        self.search.selectAll()

    def refresh(self) -> None:
        """Look again at everything that may have changed on the disk."""
        self._session.library.refresh()
        self.foreign.look()
        self.disk.read()
        self.suggested.fill()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._started:
            self._started = True
            self._session.downloads.start()
        self.refresh()
        self.suggested.ask_again()
        self.search.setFocus()

    # ---- building

    def _build(self) -> None:
        title = QLabel("Models", self)
        title.setProperty("role", "title")
        self.use = QuietButton(self._theme, "right", "Disk use", self)
        self.use.setCheckable(True)
        self.use.toggled.connect(self._show_disk)
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self.use)
        self.search = QLineEdit(self)
        self.search.setProperty("look", "search")
        self.search.setPlaceholderText("Search Hugging Face, or paste a link or owner/name")
        self.search.setAccessibleName("Search models")
        self.search.setClearButtonEnabled(True)
        self._glass = self.search.addAction(
            icon("search", self._theme.tokens.muted), QLineEdit.ActionPosition.LeadingPosition
        )
        self.search.textChanged.connect(self._typed)
        self.search.returnPressed.connect(self.found.search_now)
        self._above = QVBoxLayout()
        self._above.setContentsMargins(_MARGIN, 16, _MARGIN, 12)
        self._above.setSpacing(12)
        self._above.addLayout(head)
        self._above.addWidget(self.search)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._above)
        column.addWidget(self._groups(), 1)
        column.addWidget(self.downloads)

    def _groups(self) -> QScrollArea:
        inner = QWidget(self)
        inner.setObjectName("column")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_MARGIN, 4, _MARGIN, _MARGIN)
        column.setSpacing(24)
        for widget in (self.disk, self.found.group, self.ready.group, self.foreign, self.suggested.group):
            column.addWidget(widget)
        column.addStretch(1)
        self.disk.hide()
        self.area = QScrollArea(self)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inner)
        return self.area

    def _listen(self) -> None:
        for shelf in (self.ready, self.suggested, self.found):
            shelf.chat_asked.connect(self._chat)
            shelf.token_asked.connect(lambda: self._session.page_asked.emit(_SETTINGS))
        self.ready.noticed.connect(self.notice)
        self.ready.changed.connect(self.refresh)
        self.foreign.noticed.connect(self.notice)
        self.foreign.imported.connect(self.refresh)
        self.disk.noticed.connect(self.notice)
        self.disk.told.connect(self._show_use)
        self._session.downloads.arrived.connect(self._arrived)
        self._session.settings_changed.connect(lambda _: self.ready.forget_readiness())

    def _colour(self) -> None:
        self._glass.setIcon(icon("search", self._theme.tokens.muted))

    # ---- what happens

    def _typed(self, text: str) -> None:
        self.found.search(text)
        self.ready.filter(text)
        self.suggested.filter(text)

    def _chat(self, path: str) -> None:
        self._session.choose_model(path)
        self._session.page_asked.emit(_CHATS)

    def _arrived(self, job: object) -> None:
        self.disk.read()
        self.ready.forget_readiness()

    def _show_disk(self, out: bool) -> None:
        self.use.show_icon("down" if out else "right")
        self.disk.setVisible(out)
        if out:
            self.disk.read()

    def _show_use(self, words: str) -> None:
        self.use.setText(words)
        self.use.setAccessibleName(f"Disk use: {words}")
        self.use.updateGeometry()

    def notice(self, text: str) -> None:
        """A line above the groups, until it is dismissed or another takes its place."""
        self._drop_notice()
        line = self._notice = NoticeLine(self._theme, text, self)
        line.dismissed.connect(self._drop_notice)
        self._above.addWidget(line)

    @property
    def noticed(self) -> str:
        return self._notice.text if self._notice is not None else ""

    def _drop_notice(self) -> None:
        line, self._notice = self._notice, None
        if line is not None:
            self._above.removeWidget(line)
            line.hide()
            line.deleteLater()
