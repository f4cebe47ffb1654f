"""Shows in the answers what was drafted, and the legend to it, while a person wants to see that."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import QObject

from app.chats.chat import Chat
from app.protocol import NEURAL, ModelReport
from app.settings import Settings
from ui.chat.chat_header import ChatHeader
from ui.chat.message_list import MessageList
from ui.session import Session
from ui.speed import drafters
from ui.speed.legend import Legend


class DraftsControl(QObject):
    """``legend`` has a place in the page's layout, or none while it is hidden."""

    def __init__(self, session: Session, header: ChatHeader, messages: MessageList, legend: Legend) -> None:
        super().__init__(legend)
        self._session = session
        self._header = header
        self._messages = messages
        self._legend = legend
        self._report: ModelReport | None = None
        legend.setToolTip("What is underlined in the answers was drafted, each by its drafter.")
        header.drafts_asked.connect(self._ask)
        session.settings_changed.connect(self._settings_changed)
        session.replaced.connect(self._show_legend)
        session.chat_changed.connect(self._chat_changed)
        session.engine_changed.connect(self._engine_changed)
        self._settings_changed(session.settings)

    def _ask(self, shown: bool) -> None:
        self._session.apply(replace(self._session.settings, show_drafts=shown))

    def _settings_changed(self, settings: Settings) -> None:
        self._header.show_drafts(settings.show_drafts)
        self._messages.show_drafts(settings.show_drafts)
        self._show_legend()

    def _chat_changed(self, chat: Chat) -> None:
        if chat is self._session.controller.chat:
            self._show_legend()

    def _engine_changed(self) -> None:
        report = self._session.controller.state.report
        if report is not self._report:
            self._report = report
            self._show_legend()

    def _show_legend(self) -> None:
        """Who has drafted in this chat or may: it stays as it is while an answer is written."""
        settings, report = self._session.settings, self._session.controller.state.report
        self._legend.setVisible(settings.show_drafts)
        if not settings.show_drafts:
            return
        # Who has a file for it is known once the model is there.
        off = {link.name for link in report.drafters if link.reason is not None} if report else set(NEURAL)
        names: set[str] = {name for name in settings.drafting_params().links if name not in off}
        for message in self._session.controller.conversation.messages:
            names.update(piece.drafter for piece in message.pieces if piece.drafter is not None)
        known = [look.name for look in drafters.looks() if look.name in names]
        self._legend.show_drafters([*known, *sorted(names.difference(known))])
