"""A program that keeps chats until it is killed: ``python -m tests.app.chats_child PATH``."""

from __future__ import annotations

import sys
from pathlib import Path

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.chats.store import ChatStore
from app.protocol import Piece


def main() -> None:
    """Writes exchanges without end. Says "kept N" once exchange N and all before it are on disk, and
    "text N LENGTH" when that much of an answer that goes on has been handed over."""
    store = ChatStore(Path(sys.argv[1]))
    chat = Chat(title="long")
    conversation = Conversation()
    store.add(chat, conversation)
    number = 0
    while True:
        number += 1
        question = conversation.add(Message(role="user", pieces=[Piece(f"question {number}")]))
        answer = conversation.add(Message(role="assistant", state="writing"))
        store.keep(chat, question, answer)
        for word in range(200):
            answer.append(Piece(f"word{word} ", "cache" if word % 3 else None))
            store.keep_soon(chat, answer)
        answer.state = "done"
        store.keep(chat, answer)
        if number % 5 == 0:
            store.flush(30)
            print(f"kept {number}", flush=True)


if __name__ == "__main__":
    main()
