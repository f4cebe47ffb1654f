"""The actions of app.shortcuts in one window: what they do, and the keys that the settings give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.shortcuts import ACTIONS, chosen_keys
from ui.shell.entries import Entry

# Other keys for the same, as long as nobody chose own ones: how layouts differ, or a row of pages.
_ALSO = {"zoom_in": ("Ctrl+=",), "settings": ("Ctrl+4",)}
_PAGES = ("chats", "models", "speed", "settings")
_ICONS = {
    "new_chat": "new",
    "search_chats": "search",
    "sidebar": "sidebar",
    "speed_panel": "speed",
    "rename_chat": "edit",
    "pin_chat": "chats",
    "duplicate_chat": "copy",
    "delete_chat": "close",
    "chat_options": "sliders",
    "drafted_text": "drafts",
    "regenerate": "again",
    "copy_answer": "copy",
    "import_chats": "file",
    "export_chats": "file",
    "export_chats_markdown": "file",
    "find": "search",
    "find_next": "down",
    "find_previous": "up",
    "chats": "chats",
    "models": "models",
    "speed": "speed",
    "settings": "settings",
    "reload_model": "again",
    "unload_model": "models",
    "about": "info",
    "logs": "log",
    "report": "copy",
    "quit": "close",
}
# They make no sense from the palette, which is closed by then.
_NOT_LISTED = ("palette", "stop", "next_region", "previous_region")


class WindowActions:
    """Every action that has something to do here; ``handlers`` are by name."""

    def __init__(self, window: QWidget, handlers: Mapping[str, Callable[[], object]]) -> None:
        self._actions: dict[str, QAction] = {}
        for declared in ACTIONS:
            if declared.name in handlers:
                action = QAction(declared.title, window)
                action.triggered.connect(lambda _=False, run=handlers[declared.name]: run())
                window.addAction(action)
                self._actions[declared.name] = action

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def use_keys(self, own: Mapping[str, str]) -> None:
        """Take the keys that a person chose, and the usual ones for the rest."""
        chosen = chosen_keys(own)
        taken = {QKeySequence(keys).toString() for keys in chosen.values() if keys}
        for name, action in self._actions.items():
            keys = [QKeySequence(chosen[name])] if chosen[name] else []
            if name not in own:
                keys += [QKeySequence(also) for also in _ALSO.get(name, ()) if also not in taken]
            action.setShortcuts(keys)

    def entries(self) -> list[Entry]:
        """For the palette, with the keys as this desktop writes them."""
        return [
            Entry(
                "page" if name in _PAGES else "action",
                action.text(),
                action.trigger,
                action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
                _ICONS.get(name, ""),
            )
            for name, action in self._actions.items()
            if name not in _NOT_LISTED and action.isEnabled()
        ]
