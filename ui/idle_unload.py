"""Takes the model out of memory when nobody has asked it anything for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from ui.session import Session


class IdleUnload(QObject):
    """Waits as long as the settings say since the last answer ended, or the model was loaded.

    ``minute_ms``: how long a minute is.
    """

    def __init__(self, session: Session, minute_ms: int = 60_000) -> None:
        super().__init__(session)
        self.minute_ms = minute_ms
        self._session = session
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._unload)
        session.engine_changed.connect(self.wait_again)
        session.settings_changed.connect(self.wait_again)
        session.server_changed.connect(self.wait_again)  # it has answered, perhaps

    def wait_again(self) -> None:
        minutes = self._session.settings.idle_minutes
        controller = self._session.controller
        if minutes and controller.state.phase == "ready" and not controller.busy_chats:
            self._timer.start(minutes * self.minute_ms)
        else:
            self._timer.stop()

    def _unload(self) -> None:
        if self._session.server.busy:
            self.wait_again()
        else:
            self._session.controller.unload()
