"""The models page: what is here, what suits this machine, what the Hub has, and what is on its way."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

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
from ui.widgets.layouts import nested
from ui.widgets.quiet_button import QuietButton

_MARGIN = 24
_CHATS, _TOKEN = "Chats", "settings:storage"


class ModelsPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._notice: NoticeLine | None = None
        self._started = False
        self._anchor: tuple[QWidget, int] | None = None
        library = session.library
        words = "No models yet: get one below."
        self.ready = ReadyShelf(theme, session, "Ready", library.chat_models, words, self)
        self.others = ReadyShelf(theme, session, "Drafters and other files", library.other_files, "", self)
        self.others.group.begin_with(0)
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
        self._session.downloads.forget_deleted()
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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._above = nested(column, QVBoxLayout())
        self._above.setContentsMargins(_MARGIN, 16, _MARGIN, 12)
        self._above.setSpacing(12)
        head = nested(self._above, QHBoxLayout())
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
        self._above.addWidget(self.search)
        column.addWidget(self._groups(), 1)
        column.addWidget(self.downloads)

    def _groups(self) -> QScrollArea:
        inner = QWidget(self)
        inner.setObjectName("column")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_MARGIN, 4, _MARGIN, _MARGIN)
        column.setSpacing(24)
        for widget in (self.disk, *self._parts()):
            column.addWidget(widget)
        column.addStretch(1)
        self.disk.hide()
        self._inner = inner
        self.area = QScrollArea(self)
        self.area.setAccessibleName("Models")
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inner)
        return self.area

    def _listen(self) -> None:
        for shelf in (self.ready, self.suggested, self.found):
            shelf.chat_asked.connect(self._chat)
            shelf.token_asked.connect(lambda: self._session.action_asked.emit(_TOKEN))
        for here in (self.ready, self.others):
            here.noticed.connect(self.notice)
            here.changed.connect(self.refresh)
        self.ready.group.arranging.connect(self._remember_place)
        self.ready.group.shown_changed.connect(self._keep_place)
        for group in (self.found.group, self.ready.group, self.suggested.group, self.others.group):
            group.shown_changed.connect(self._order_focus)
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
        self.others.filter(text)
        self.suggested.filter(text)

    def _chat(self, path: str) -> None:
        state = self._session.controller.state
        is_there = state.phase == "ready" and state.report is not None and state.report.path == path
        if self.ready.take_new_pairing(path) or not is_there:
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

    # ---- what stays where it is

    def _parts(self) -> list[QWidget]:
        groups = self.found.group, self.ready.group, self.suggested.group, self.others.group
        return [*groups[:2], self.foreign, *groups[2:]]

    def _remember_place(self) -> None:
        """Of the first card in view that is not about to move by itself."""
        top, bottom = self._view()
        self._anchor = None
        for group in (self.found.group, self.suggested.group):
            for card in group.cards.values() if group.isVisible() else ():
                y = card.mapTo(self._inner, QPoint(0, 0)).y()
                if top <= y < bottom:
                    self._anchor = card, y
                    return

    def _keep_place(self) -> None:
        """Cards that came or went above what a person looks at do not push it away."""
        anchor, self._anchor = self._anchor, None
        if anchor is None or self.search.hasFocus():
            return
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        card, before = anchor
        moved = card.mapTo(self._inner, QPoint(0, 0)).y() - before
        bar = self.area.verticalScrollBar()
        bar.setValue(bar.value() + moved)

    def _view(self) -> tuple[int, int]:
        top = self.area.verticalScrollBar().value()
        return top, top + self.area.viewport().height()

    def _order_focus(self) -> None:
        controls: list[QWidget] = [self.use, self.search]
        controls += self.found.group.controls() + self.ready.group.controls()
        controls += list(self.foreign.buttons.values())
        controls += self.suggested.group.controls() + self.others.group.controls()
        for before, after in pairwise(controls):
            QWidget.setTabOrder(before, after)

    def notice(self, text: str) -> None:
        """A line above the groups, until it is dismissed or another takes its place."""
        self._drop_notice()
        line = self._notice = NoticeLine(self._theme, text, parent=self)
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
