"""A first choice of models for this machine, to be got from the empty chat."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import paths
from app.suggestions import Suggestion, first_choices, suggestions
from model_store.catalog import load_catalog
from ui.models.card_view import ACTION_WORDS, CardView, catalog_key, suggested_view
from ui.models.downloads import Wish
from ui.models.fit_mark import FitMark
from ui.models.trouble_note import TroubleNote
from ui.session import Session
from ui.theme import Theme
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.restyle import restyle

_STEPS = 1000
_CHATS, _MODELS, _TOKEN = "Chats", "Models", "settings:storage"


class Welcome(QWidget):
    """Three models of the catalogue. Nothing is asked of the Hub before one of them is wanted."""

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._found: dict[str, Suggestion] = {}
        self.rows: dict[str, WelcomeRow] = {}
        self.setAccessibleName("Models that fit this machine")
        self.words = QLabel(self)
        self.words.setProperty("role", "muted")
        self.words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.words.setWordWrap(True)
        self.more = QPushButton("All models…", self)
        self.more.setProperty("look", "jump")
        self.more.setAccessibleName("All models: opens the models page")
        self.more.clicked.connect(lambda: session.page_asked.emit(_MODELS))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(self.words)
        self._column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignHCenter)
        self.hide()
        session.downloads.changed.connect(self._refresh)
        session.downloads.jobs_changed.connect(self._adopt)
        session.models.work_out(lambda: _choose(session), self._take)

    @property
    def at_work(self) -> bool:
        """One of them was asked for here."""
        return any(self._session.downloads.getting(key) is not None for key in self.rows)

    def _take(self, found: list[Suggestion]) -> None:
        self._found = {catalog_key(each.entry): each for each in found}
        starter = "The starter answers already. " if self._session.library.starter is not None else ""
        self.words.setText(f"{starter}These models say more, and fit this machine:")
        for key in self._found:
            row = WelcomeRow(self._theme, self._view(key), self)
            row.acted.connect(self._act)
            row.trouble.token_asked.connect(lambda: self._session.action_asked.emit(_TOKEN))
            self._column.insertWidget(self._column.count() - 1, row)
            self.rows[key] = row
        self.setVisible(bool(found))

    def _view(self, key: str) -> CardView:
        return suggested_view(self._found[key], self._session.downloads.getting(key))

    def _refresh(self, key: str) -> None:
        row = self.rows.get(key)
        if row is not None:
            row.show_view(self._view(key))

    def _adopt(self) -> None:
        for key, each in self._found.items():
            if self._session.downloads.adopt(key, Wish(each.entry.id), each.entry.title) is not None:
                self._refresh(key)

    def _act(self, key: str, action: str) -> None:
        downloads = self._session.downloads
        getting = downloads.getting(key)
        job = getting.job if getting is not None else None
        match action:
            case "get":
                downloads.get(key, Wish(self._found[key].entry.id))
            case "stop_looking":
                downloads.forget(key)
            case "pause" if job is not None:
                downloads.pause(job.id)
            case "resume" if job is not None:
                downloads.resume(job.id)
            case "retry":
                downloads.again(key)
            case "chat" if job is not None:
                self._session.choose_model(str(job.files[0].path))
                self._session.page_asked.emit(_CHATS)


class WelcomeRow(QFrame):
    """A card of two lines. ``acted`` carries its key and what is to be done."""

    acted = Signal(str, str)

    def __init__(self, theme: Theme, view: CardView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view
        self.setObjectName("card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.title = ElidedLabel(parent=self, role="section")
        self.facts = ElidedLabel(parent=self, role="small")
        self.mark = FitMark(theme, self)
        self.button = QPushButton(self)
        widest = max(self.button.fontMetrics().horizontalAdvance(words) for words in ACTION_WORDS.values())
        self.button.setMinimumWidth(widest + 32)
        self.button.clicked.connect(self._act)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        self.trouble = TroubleNote(self)
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 8, 12, 4)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(0, 1)
        grid.addWidget(self.title, 0, 0)
        grid.addWidget(self.facts, 1, 0)
        grid.addWidget(self.mark, 0, 1, 2, 1)
        grid.addWidget(self.button, 0, 2, 2, 1)
        grid.addWidget(self.bar, 2, 0, 1, 3)
        grid.addWidget(self.trouble, 3, 0, 1, 3)
        self._show(view)

    def show_view(self, view: CardView) -> None:
        if view != self.view:
            self.view = view
            self._show(view)

    def _show(self, view: CardView) -> None:
        self.setAccessibleName(view.title)
        self.title.say(view.title, view.line)
        facts = view.facts if view.progress is not None or view.working else view.facts[:1]
        self.facts.say(
            " · ".join(fact.text for fact in facts), "\n".join(f"{each.text}: {each.help}" for each in facts)
        )
        self.mark.show_mark(view.mark if view.progress is None and not view.working else None)
        self.bar.setVisible(view.working or view.progress is not None)
        self.bar.setRange(0, 0 if view.working else _STEPS)
        self.bar.setValue(round((view.progress or 0) * _STEPS))
        self.bar.setAccessibleName(f"{view.title}: {view.progress or 0:.0%}")
        self.trouble.show_trouble(view.trouble)
        action = view.action
        if action is not None and self.button.text() != ACTION_WORDS[action]:
            self.button.setText(ACTION_WORDS[action])
            restyle(self.button, "look", "primary" if action == "chat" else "")
        if action is not None:
            self.button.setAccessibleName(f"{ACTION_WORDS[action]}: {view.title}")
            self.button.setToolTip(view.action_help)

    def _act(self) -> None:
        if self.view.action is not None:
            self.acted.emit(self.view.key, self.view.action)


def _choose(session: Session) -> list[Suggestion]:
    catalog = load_catalog(paths.assets_dir() / "catalog.json", paths.data_dir() / "catalog.json")
    return first_choices(suggestions(catalog.entries, session.free_memory()))
