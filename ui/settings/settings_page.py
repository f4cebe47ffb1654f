"""The settings page: search, groups, and the form over the session's settings."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app import paths
from app.chat_template import builtin_names
from app.desktop_entry import has_menu
from app.engine_client import Event
from app.settings import GROUPS, Settings
from ui.bidi import visible
from ui.session import Session
from ui.settings.api_key_row import ApiKeyRow
from ui.settings.engine_row import EngineRow
from ui.settings.exchange_row import ExchangeRow
from ui.settings.group_list import GroupList
from ui.settings.hub_token_row import HubTokenRow
from ui.settings.menu_entry_row import MenuEntryRow
from ui.settings.past_acceptance import PastAcceptance
from ui.settings.server_row import ServerRow
from ui.settings.setting_row import SettingRow
from ui.settings.settings_form import SettingsForm
from ui.settings.storage_rows import ChatsRow, DiskUseRow, PlaceRow
from ui.theme import MEASURE, Theme
from ui.widgets.cards import NoticeLine
from ui.widgets.layouts import nested
from ui.widgets.restyle import restyle
from ui.widgets.search_field import SearchField
from ui.widgets.undo_line import UndoLine

_WIDE_PX = 880
_LEFT, _GAP = 16, 24
_PLACES = {"Chats": paths.data_dir, "Settings file": paths.config_dir, "Logs": paths.log_dir}
_HOLDS = "Changes hold from the next message on."
_STALE = "These changes need the model to be loaded again; that is done before the next answer."
_DUE = "The model is loaded again as soon as this answer has ended."


class SettingsPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session = session
        self._before: Settings | None = None  # what an undo brings back
        self.told: NoticeLine | None = None
        self._past = PastAcceptance(session, self)
        self._build()
        self._connect()
        self._engine_changed()
        self._show_folder()

    def start_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def go_to(self, group: str) -> None:
        self.search.clear()
        self.form.go_to(group)

    # ---- building

    def _build(self) -> None:
        theme, session = self._theme, self._session
        self.title = QLabel("Settings", self)
        self.title.setProperty("role", "title")
        self.search = SearchField(theme, "Search settings", self)
        self.search.setToolTip("Words in the names and the help of settings (Ctrl+F).")
        self.search.setMaximumWidth(MEASURE)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = nested(column, QHBoxLayout())
        head.setContentsMargins(_GAP, 16, _GAP, 8)
        head.setSpacing(_GAP)
        head.addWidget(self.title)
        head.addWidget(self.search, 1)
        head.addStretch()
        self.groups = GroupList(theme, GROUPS, self)
        state = session.controller.state
        model = state.report.path if state.report else state.wanted
        self.form = SettingsForm(
            theme,
            session.settings,
            model,
            session.models_folder(),
            builtin_names,
            self,
            first={
                "engine": [lambda parent: EngineRow(theme, session, parent)],
                "server": [self._server_row],
            },
            last={
                "storage": [
                    self._token_row,
                    self._chats_row,
                    *map(self._place_row, _PLACES),
                    self._disk_use_row,
                ],
                "server": [self._key_row],
                "window": [self._menu_row] if has_menu() else [],
                "all": [self._exchange_row],
            },
        )
        self.nothing = QLabel(self)
        self.nothing.setProperty("role", "muted")
        self.nothing.setTextFormat(Qt.TextFormat.PlainText)
        self.nothing.setWordWrap(True)
        self.nothing.setContentsMargins(24, 16, 24, 0)
        self.nothing.hide()
        self.undo = UndoLine(theme, self)
        body = self._body = nested(column, QHBoxLayout(), 1)
        body.setSpacing(0)
        body.addWidget(self.groups)
        form = nested(body, QVBoxLayout(), 1)
        form.setSpacing(0)
        form.addWidget(self.nothing)
        form.addWidget(self.form, 1)
        below = self._below = nested(column, QVBoxLayout())
        below.setContentsMargins(16, 0, 16, 0)
        below.addWidget(self.undo)
        column.addWidget(self._foot())

    def _token_row(self, parent: QWidget) -> SettingRow:
        self.token = HubTokenRow(self._theme, parent)
        return self.token

    def _server_row(self, parent: QWidget) -> SettingRow:
        self.server = ServerRow(self._theme, self._session, parent)
        return self.server

    def _key_row(self, parent: QWidget) -> SettingRow:
        self.key = ApiKeyRow(self._theme, parent)
        self.key.changed.connect(self._session.use_api_key)
        self.key.changed.connect(self.server.show_state)
        return self.key

    def _place_row(self, title: str) -> Callable[[QWidget], SettingRow]:
        return lambda parent: PlaceRow(self._theme, title, _PLACES[title](), parent)

    def _chats_row(self, parent: QWidget) -> SettingRow:
        self.chats = ChatsRow(self._theme, parent)
        self.chats.asked.connect(self._session.action_asked)
        return self.chats

    def _disk_use_row(self, parent: QWidget) -> SettingRow:
        self.disk_use = DiskUseRow(self._theme, self._session.models_folder, parent)
        return self.disk_use

    def _menu_row(self, parent: QWidget) -> SettingRow:
        self.menu_entry = MenuEntryRow(self._theme, parent)
        return self.menu_entry

    def _exchange_row(self, parent: QWidget) -> SettingRow:
        self.exchange = ExchangeRow(self._theme, lambda: self.form.settings, parent)
        return self.exchange

    def _foot(self) -> QFrame:
        foot = QFrame(self)
        foot.setObjectName("strip")
        self.note = QLabel(_HOLDS, foot)
        self.note.setProperty("role", "small")
        self.note.setWordWrap(True)
        self.reload = QPushButton("Load again now", foot)
        policy = self.reload.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # nothing moves when it comes
        self.reload.setSizePolicy(policy)
        self.reload.hide()
        row = QHBoxLayout(foot)
        row.setContentsMargins(24, 6, 16, 6)
        row.setSpacing(12)
        row.addWidget(self.note, 1)
        row.addWidget(self.reload)
        return foot

    def _connect(self) -> None:
        session = self._session
        self.form.changed.connect(lambda settings: session.apply(settings, later=True))
        self.form.reached.connect(self.groups.show_group)
        self.groups.chosen.connect(self.form.go_to)
        self.search.textChanged.connect(self._search)
        self.reload.clicked.connect(session.controller.reload)
        self.exchange.taken.connect(self._take_all)
        self.exchange.said.connect(self._say)
        self.undo.undone.connect(self._undo)
        session.events.connect(self._engine_said)
        self._past.found.connect(self.form.chain.show_figures)
        session.settings_changed.connect(self._settings_changed)
        session.engine_changed.connect(self._engine_changed)

    # ---- what a person does

    def _search(self, text: str) -> None:
        count = self.form.search(text)
        self.groups.show_found(self.form.found_groups())
        self.nothing.setText(f"No setting has “{text.strip()}” in its name or its help.")
        self.nothing.setVisible(count == 0)

    def _take_all(self, settings: Settings, told: str) -> None:
        """Other settings at once, which can be undone."""
        self._before = self._session.settings
        self._session.apply(settings, later=True)
        self.undo.offer(told)

    def _say(self, text: str) -> None:
        """Something to read once."""
        if self.told is not None:
            self._drop_told()
        self.told = NoticeLine(self._theme, text, parent=self)
        self.told.dismissed.connect(self._drop_told)
        self._below.addWidget(self.told)

    def _drop_told(self) -> None:
        line, self.told = self.told, None
        if line is not None:
            self._below.removeWidget(line)
            line.hide()
            line.deleteLater()

    def _undo(self) -> None:
        if self._before is not None:
            self._session.apply(self._before, later=True)
            self._before = None

    # ---- what the session says

    def _settings_changed(self, settings: Settings) -> None:
        self.form.show_settings(settings)
        self._show_folder()
        self._show_note()

    def _show_folder(self) -> None:
        row = self.form.row("models_folder")
        row.explain(f"{row.words.help} Now: {visible(str(self._session.models_folder()))}")

    def _engine_said(self, events: list[Event]) -> None:
        if self.isVisible():
            self._past.ask_after(events)

    def _engine_changed(self) -> None:
        state = self._session.controller.state
        self.form.show_model(state.report.path if state.report else state.wanted, state.report)
        self._show_note()

    def _show_note(self) -> None:
        controller = self._session.controller
        due = controller.reload_is_due
        stale = controller.needs_reload
        self.note.setText(_DUE if due else _STALE if stale else _HOLDS)
        restyle(self.note, "role", "note" if due or stale else "small")
        self.reload.setVisible(stale and not due)

    # ---- room

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= _WIDE_PX * self._theme.measures.zoom / 100
        self.groups.setVisible(wide)
        self._body.setContentsMargins(_LEFT if wide else 0, 0, 0, 0)
        # The search stands above the rows.
        self.title.setMinimumWidth(self.groups.width() + _LEFT - _GAP if wide else 0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.token.show_state()
        self.key.show_state()
        self.disk_use.count()
        self._past.ask()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.form.close()
        self.disk_use.close_pool()
        super().closeEvent(event)
