"""The settings page: the form over the session's settings."""

from __future__ import annotations

from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chat_template import builtin_names
from app.settings import Settings
from ui.session import Session
from ui.settings.settings_form import SettingsForm
from ui.theme import Theme


class SettingsPage(QWidget):
    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        state = session.controller.state
        model = state.report.path if state.report else state.wanted
        self.form = SettingsForm(theme, session.settings, model, session.models_folder(), builtin_names, self)
        self.form.changed.connect(session.apply)
        session.settings_changed.connect(self._settings_changed)
        session.engine_changed.connect(self._engine_changed)
        self._engine_changed()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.form)

    def _settings_changed(self, settings: Settings) -> None:
        self.form.settings = settings  # a change made elsewhere is not undone by the form

    def _engine_changed(self) -> None:
        self.form.show_report(self._session.controller.state.report)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.form.close()
        super().closeEvent(event)
