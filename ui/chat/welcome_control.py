"""Offers models in the empty chat to whoever has none but the starter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from ui.chat.empty_chat import EmptyChat
from ui.session import Session
from ui.theme import Theme

if TYPE_CHECKING:
    from ui.models.welcome import Welcome


class WelcomeControl(QObject):
    """Nothing is made or read before the models folder was: the window is there by then."""

    def __init__(self, theme: Theme, session: Session, empty: EmptyChat) -> None:
        super().__init__(empty)
        self._theme = theme
        self._session = session
        self._empty = empty
        self.welcome: Welcome | None = None
        session.library.listed.connect(self._look)

    def _look(self) -> None:
        has_own = any(entry.kind == "chat" for entry in self._session.library.entries)
        if self.welcome is not None:
            self.welcome.setVisible(not has_own or self.welcome.at_work)
        elif not has_own:
            from ui.models.welcome import Welcome

            self.welcome = Welcome(self._theme, self._session, self._empty)
            self._empty.add_section(self.welcome)
