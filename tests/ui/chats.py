"""Steps that the tests of the chat page share."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.chats.store import ChatStore
from app.protocol import Piece
from ui.chat.message_view import MessageView
from ui.main_window import MainWindow

WAIT = 20_000


def ready(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.session.controller.state.phase == "ready", timeout=WAIT)


def say(window: MainWindow, qtbot: QtBot, text: str) -> None:
    """Type a message, send it and wait for the answer's end."""
    window.chat.composer.set_text(text)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Return)
    answered(window, qtbot)


def answered(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.session.controller.busy, timeout=WAIT)


def texts(window: MainWindow) -> list[str]:
    """What is shown, the oldest message first."""
    return [message.text for message in window.chat.messages.messages()]


def view(window: MainWindow, index: int) -> MessageView:
    """Of a message near the reader; a busy machine builds them one by one."""
    messages = window.chat.messages
    end = time.monotonic() + WAIT / 1000
    while (found := messages.view_of(messages.messages()[index])) is None:
        assert time.monotonic() < end
        QApplication.processEvents()
    return found


def settled(window: MainWindow, qtbot: QtBot) -> None:
    """All text near the reader is built."""
    messages = window.chat.messages

    def built() -> bool:
        waits = messages._build_timer.isActive() or any(one.body.building for one in messages.views())
        return not waits

    qtbot.waitUntil(built, timeout=WAIT)


def titles(window: MainWindow) -> list[str]:
    """The rows of the sidebar, with ``#`` before those of groups."""
    return [
        f"# {row.group.title}" if row.chat is None else row.chat.label
        for row in window.chat.sidebar.list.rows.rows()
    ]


def id_of(window: MainWindow, title: str) -> int:
    return next(chat.id for chat in window.session.store.chats() if chat.label == title)


def open_chat(window: MainWindow, qtbot: QtBot, title: str) -> None:
    """With the mouse, in the sidebar."""
    rows = window.chat.sidebar.list
    index = rows.rows.index_of(id_of(window, title))
    rows.scrollTo(index)
    qtbot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=rows.visualRect(index).center())


def fill_home(home: Path, chats: dict[str, list[str]]) -> None:
    """Keep chats before a window is made: titles with what was said in turn, the person first."""
    store = ChatStore(home / "data" / "chats.db")
    for title, said in chats.items():
        conversation = Conversation()
        for number, text in enumerate(said):
            role = "assistant" if number % 2 else "user"
            conversation.add(Message(role=role, pieces=[Piece(text)]))  # type: ignore[arg-type]
        leaf = conversation.leaf
        store.add(Chat(title=title, leaf=leaf.id if leaf is not None else None), conversation)
    assert store.close()
