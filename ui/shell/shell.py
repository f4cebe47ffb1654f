"""What surrounds the pages of one window: palette, tray, notifications, logs, about, the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.run_marker import Run
from app.settings import Settings
from model_store.starter import starter_path
from ui.session import Session
from ui.shell.done_notice import DoneNotice
from ui.shell.entries import Entry
from ui.shell.palette import Palette
from ui.shell.program_facts import ProgramFacts
from ui.shell.regions import Regions
from ui.shell.tray import Tray
from ui.theme import Theme


class Shell(QObject):
    """``actions`` gives the palette the window's own; ``open_chat`` and ``open_model`` show what was
    found there."""

    def __init__(
        self,
        theme: Theme,
        session: Session,
        window: QWidget,
        actions: Callable[[], Sequence[Entry]],
        open_chat: Callable[[int], object],
        open_model: Callable[[str], object],
    ) -> None:
        super().__init__(window)
        self._theme = theme
        self._session = session
        self._window = window
        self._actions = actions
        self._open_chat = open_chat
        self._open_model = open_model
        self.facts = ProgramFacts(session, self)
        self.regions = Regions(window)
        self.tray = Tray(window)
        self.tray.shown.connect(self.raise_window)
        self._palette: Palette | None = None
        self._dialogs: dict[str, QDialog] = {}
        notice = DoneNotice(
            self._tell, window.isActiveWindow, lambda: self._session.settings.notify_when_done
        )
        session.added.connect(notice.heard)
        session.changed.connect(notice.heard)
        session.settings_changed.connect(self._settings_changed)

    def start(self) -> None:
        """What may wait until the window can be seen."""
        self._settings_changed(self._session.settings)

    def close(self) -> None:
        self.tray.close()
        for dialog in self._dialogs.values():
            dialog.close()

    # ---- palette

    @property
    def palette(self) -> Palette:
        if self._palette is None:
            self._palette = Palette(self._theme, self.entries, self._window)
        return self._palette

    def entries(self) -> list[Entry]:
        """Everything that the palette finds."""
        return [*self._actions(), *self._chats(), *self._models()]

    def _chats(self) -> list[Entry]:
        return [
            Entry("chat", chat.label, partial(self._open_chat, chat.id))
            for chat in self._session.store.chats()
        ]

    def _models(self) -> list[Entry]:
        library = self._session.library
        starter = starter_path()
        found = [] if starter is None else [(f"{starter.stem} (starter)", str(starter))]
        found += [
            (entry.name, str(entry.path))
            for entry in library.entries
            if entry.kind == "chat" and not entry.problem
        ]
        return [Entry("model", name, partial(self._open_model, path)) for name, path in found]

    # ---- windows of their own

    def show_logs(self) -> None:
        from ui.shell.log_viewer import LogViewer

        self._show("logs", lambda: LogViewer(self._window))

    def show_about(self) -> None:
        from ui.shell.about import About

        self._drop("about")  # what it says may have changed
        self._show("about", lambda: About(self.facts, self.show_logs, self._window))

    def copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self.facts.report())
        self._session.noticed.emit(
            "The diagnostic report is in the clipboard. No word of your chats is in it."
        )

    def _show(self, name: str, make: Callable[[], QDialog]) -> None:
        if name not in self._dialogs:
            self._dialogs[name] = make()
        dialog = self._dialogs[name]
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def _drop(self, name: str) -> None:
        dialog = self._dialogs.pop(name, None)
        if dialog is not None:
            dialog.close()
            dialog.deleteLater()

    # ---- the window and the desktop

    def raise_window(self) -> None:
        """Bring the window to the front, out of the tray if it is there."""
        window = self._window
        self.tray.watch(hidden=False)
        if window.isMinimized():
            window.showNormal() if not window.isMaximized() else window.showMaximized()
        else:
            window.show()
        window.raise_()
        window.activateWindow()

    def hide_window(self) -> bool:
        """Into the tray, where there is one that was asked for."""
        if not self.tray.keeps:
            return False
        self._window.hide()
        self.tray.watch(hidden=True)
        return True

    def tell_of_last_run(self, last: Run) -> None:
        """The last run did not end properly."""
        when = ""
        if last.started_at > 0:
            when = f", begun {datetime.fromtimestamp(last.started_at):%d %B at %H:%M},"
        self._session.offered.emit(
            f"The last run of Slipstream{when} did not end properly. Your chats and settings are kept.",
            "report",
        )

    def _tell(self, title: str, text: str) -> None:
        if not self.tray.say(title, text):
            QApplication.alert(self._window)

    def _settings_changed(self, settings: Settings) -> None:
        self.tray.want(settings.tray)
