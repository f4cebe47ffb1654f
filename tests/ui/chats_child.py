"""A program that asks the scripted engine and keeps the answer, until it is killed.

``python -m tests.ui.chats_child CHATS SCRIPT``. Prints how many characters of the answer it has shown.
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from pathlib import Path

from app.chats.chat import Chat
from app.chats.message import Message
from app.chats.store import ChatStore
from app.engine_client import EngineClient, Event
from app.protocol import Piece
from app.settings import Settings
from ui.chat.controller import Controller
from ui.chat.view import Problem


class Printer:
    """A view that says how far the answer is."""

    def message_added(self, message: Message) -> None: ...

    def message_removed(self, message: Message) -> None: ...

    def answer_grew(self, message: Message, pieces: Sequence[Piece]) -> None:
        print(len(message.text), flush=True)

    def message_changed(self, message: Message) -> None: ...

    def conversation_replaced(self) -> None: ...

    def chats_changed(self) -> None: ...

    def chat_changed(self, chat: Chat) -> None: ...

    def engine_changed(self) -> None: ...

    def numbers_changed(self) -> None: ...

    def notice(self, text: str, action: str = "") -> None: ...

    def problem(self, problem: Problem | None) -> None: ...

    def give_back(self, text: str) -> None: ...


def main() -> None:
    """Ends only by being killed."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    command = (sys.executable, "-m", "app.worker", "--fake", sys.argv[2])
    client = EngineClient(events.put, command=command, log_path=Path(sys.argv[2]).with_suffix(".log"))
    controller = Controller(client, Settings(), Printer(), store=ChatStore(Path(sys.argv[1])))
    client.start()
    controller.choose_model(__file__)
    controller.send("tell me a long story")
    while True:
        controller.handle([events.get()])


if __name__ == "__main__":
    main()
