"""The symbol in the desktop's tray: there when it was asked for, or while it has something to say."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from ui.icons import app_icon

_LOOK_MS = 5000
_MESSAGE_MS = 10_000


class Tray(QObject):
    """``shown`` asks for the window, ``quit_asked`` for the end of the program.

    A desktop without a tray, or one whose tray goes away, must not hide the window for good: ``keeps``
    says whether there is a way back now, and ``shown`` is sent when it vanishes.
    """

    shown = Signal()
    new_chat = Signal()
    quit_asked = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._wanted = False
        self._icon: QSystemTrayIcon | None = None
        self._menu = QMenu(window)
        for words, signal in (
            ("Open Slipstream", self.shown),
            ("New chat", self.new_chat),
            ("Quit", self.quit_asked),
        ):
            action = QAction(words, self._menu)
            action.triggered.connect(signal.emit)
            self._menu.addAction(action)
        self._look = QTimer(self)
        self._look.setInterval(_LOOK_MS)
        self._look.timeout.connect(self._look_again)
        self._gone = QTimer(self)
        self._gone.setSingleShot(True)
        self._gone.setInterval(_MESSAGE_MS)
        self._gone.timeout.connect(self._update)

    def want(self, wanted: bool) -> None:
        """Put the symbol there for good, or take it away."""
        self._wanted = wanted
        self._update()

    @property
    def keeps(self) -> bool:
        """Whether the window may be hidden: it was asked for, and the symbol can be seen."""
        return self._wanted and self.available() and self._icon is not None and self._icon.isVisible()

    @staticmethod
    def available() -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def watch(self, hidden: bool) -> None:
        """While the window is hidden, look whether the tray is still there."""
        if hidden:
            self._look.start()
        else:
            self._look.stop()

    def say(self, title: str, text: str) -> bool:
        """A notification of the desktop; False where it takes none."""
        if not self.available() or not QSystemTrayIcon.supportsMessages():
            return False
        self._put().showMessage(title, text, app_icon(), _MESSAGE_MS)
        self._gone.start()
        return True

    def close(self) -> None:
        self._look.stop()
        self._gone.stop()
        if self._icon is not None:
            self._icon.hide()
            self._icon.deleteLater()
            self._icon = None

    def _put(self) -> QSystemTrayIcon:
        if self._icon is None:
            self._icon = QSystemTrayIcon(app_icon(), self)
            self._icon.setToolTip("Slipstream")
            self._icon.setContextMenu(self._menu)
            self._icon.activated.connect(self._activated)
            self._icon.messageClicked.connect(self.shown.emit)
        self._icon.show()
        return self._icon

    def _update(self) -> None:
        if self._wanted and self.available():
            self._put()
        elif self._icon is not None and not self._gone.isActive():
            self._icon.hide()

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason != QSystemTrayIcon.ActivationReason.Context:
            self.shown.emit()

    def _look_again(self) -> None:
        if not self.keeps:
            self._look.stop()
            self.shown.emit()
