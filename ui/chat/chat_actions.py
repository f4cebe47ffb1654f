"""What keys and the palette do with the chat that is shown."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ui.chat.chat_header import ChatHeader
from ui.chat.message_control import MessageControl
from ui.chat.side_frame import SideFrame
from ui.chat.sidebar_control import SidebarControl
from ui.session import Session


class ChatActions:
    def __init__(
        self,
        session: Session,
        header: ChatHeader,
        frame: SideFrame,
        sidebar: SidebarControl,
        messages: MessageControl,
    ) -> None:
        self._session = session
        self._controller = session.controller
        self._header = header
        self._frame = frame
        self._sidebar = sidebar
        self._messages = messages

    def handlers(self) -> dict[str, Callable[[], object]]:
        """By their names in app.shortcuts."""
        return {
            "rename_chat": self._rename,
            "pin_chat": self._pin,
            "duplicate_chat": lambda: self._controller.chats.duplicate(self._controller.chat.id),
            "delete_chat": self._delete,
            "chat_options": lambda: self._header.options_button.click(),
            "drafted_text": self._toggle_drafts,
            "regenerate": self._messages.regenerate,
            "copy_answer": self._messages.copy_answer,
        }

    def _rename(self) -> None:
        if self._header.title.isEnabled():
            self._header.title.start_renaming()

    def _pin(self) -> None:
        chat = self._controller.chat
        self._controller.chats.pin(chat.id, not chat.pinned)

    def _delete(self) -> None:
        chat = self._controller.chat
        if chat in self._session.store:
            self._frame.show_side(True)  # where it can be taken back
            self._sidebar.delete(chat.id)

    def _toggle_drafts(self) -> None:
        settings = self._session.settings
        self._session.apply(replace(settings, show_drafts=not settings.show_drafts))
