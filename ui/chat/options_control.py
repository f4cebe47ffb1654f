"""Shows the options of the chat that is on the page, and keeps what is chosen there."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from app.chats.chat import Chat
from app.chats.sampling import Preset
from ui.chat.chat_header import ChatHeader
from ui.chat.chat_options import WIDTH_PX, ChatOptions
from ui.session import Session
from ui.theme import Theme, scaled_px

_MARGIN = 8
_LEAST_PX = 240


class OptionsControl(QObject):
    """The panel lies over ``area``, below its header, and is made when it is first seen."""

    def __init__(self, theme: Theme, session: Session, header: ChatHeader, area: QWidget) -> None:
        super().__init__(area)
        self._theme = theme
        self._session = session
        self._header = header
        self._area = area
        self.panel: ChatOptions | None = None
        self._chat = session.controller.chat
        header.options_asked.connect(self.show)
        session.replaced.connect(self._replaced)
        session.chat_changed.connect(self._chat_changed)
        session.settings_changed.connect(self._fill)
        theme.changed.connect(self._place)
        area.installEventFilter(self)

    @property
    def shown(self) -> bool:
        return self.panel is not None and self.panel.isVisible()

    def show(self, shown: bool) -> None:
        if shown:
            if self.panel is None:
                self.panel = self._make()
            self._fill()
            self._place()
            self.panel.show()
            self.panel.raise_()
            self.panel.prompt.setFocus()
        elif self.panel is not None:
            self.flush()
            self.panel.hide()
        self._header.show_options(shown)

    def flush(self) -> None:
        """Keep what was typed a moment ago."""
        text = self.panel.take_typed() if self.panel is not None else None
        if text is not None:
            self._chat.system_prompt = text
            self._session.store.keep(self._chat)

    def _make(self) -> ChatOptions:
        panel = ChatOptions(self._theme, self._area)
        chats = self._session.controller.chats
        panel.prompt_changed.connect(chats.set_system_prompt)
        panel.sampling_changed.connect(chats.set_sampling)
        panel.preset_chosen.connect(chats.use_preset)
        panel.preset_kept.connect(self._keep)
        panel.preset_dropped.connect(self._drop)
        panel.closed.connect(lambda: self.show(False))
        return panel

    def _keep(self, preset: Preset) -> None:
        try:
            self._session.store.keep_preset(preset)
        except ValueError:
            self._session.noticed.emit(
                f"A preset named “{preset.name}” comes with Slipstream: take another name."
            )
            return
        self._session.controller.chats.use_preset(preset)

    def _drop(self, name: str) -> None:
        self._session.store.drop_preset(name)
        self._fill()

    def _replaced(self) -> None:
        self.flush()  # of the chat that was left
        self._chat = self._session.controller.chat
        self._fill()

    def _chat_changed(self, chat: Chat) -> None:
        if chat is self._session.controller.chat:
            self._fill()

    def _fill(self) -> None:
        if self.panel is not None:
            session = self._session
            self.panel.show_chat(session.controller.chat, session.settings, session.store.presets())

    def _place(self) -> None:
        if self.panel is not None:
            wanted = scaled_px(WIDTH_PX, self._theme.measures.zoom)
            width = min(wanted, self._area.width() - 2 * _MARGIN)
            top = self._header.height() + _MARGIN
            room = self._area.height() - top - 2 * _MARGIN
            height = max(_LEAST_PX, min(self.panel.wanted_height(), room))
            self.panel.setGeometry(self._area.width() - width - _MARGIN, top, width, height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._area and event.type() == QEvent.Type.Resize and self.shown:
            self._place()
        return False
