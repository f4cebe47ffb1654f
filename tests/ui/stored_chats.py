"""Chats on disk for tools and tests: many of them, of a real one's size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.message import Message
from app.chats.store import ChatStore
from app.protocol import Piece

DAY_S = 24 * 3600.0
_WORDS = (
    "the harbour log says that a boat came in with a broken mast and left again before the tide turned "
    "because nobody could mend it while the smith was away so the crew waited in the inn and wrote letters"
)
_CODE = (
    "```python\ndef records(path):\n    with open(path) as file:\n"
    "        return [line.split(',') for line in file]\n```"
)


def text(chance: random.Random, n_words: int) -> str:
    """Words that mean nothing, in sentences."""
    words = chance.choices(_WORDS.split(), k=n_words)
    return " ".join(words).capitalize() + "."


def conversation(chance: random.Random, turns: int, started_at: float) -> Conversation:
    """Questions and answers in turn; every third answer holds code."""
    result = Conversation(started_at=started_at)
    for turn in range(turns):
        result.add_user(text(chance, chance.randint(4, 40)))
        answer = text(chance, chance.randint(40, 160))
        if turn % 3 == 0:
            answer += f"\n\n{_CODE}\n\n{text(chance, 20)}"
        result.add(Message(role="assistant", pieces=pieces(chance, answer), model="toy"))
    return result


def pieces(chance: random.Random, said: str) -> list[Piece]:
    """``said`` in runs, some of them drafted."""
    result: list[Piece] = []
    while said:
        length = chance.randint(3, 60)
        result.append(Piece(said[:length], chance.choice((None, None, "cache", "map-k", "mod", "suffix"))))
        said = said[length:]
    return result


def store_chats(path: Path, count: int, now: float, turns: Sequence[int] = (1, 6)) -> list[int]:
    """Write ``count`` chats of the last year to the file at ``path``; returns their ids, the newest first.
    ``turns`` are the least and most of each."""
    chance = random.Random(1)
    store = ChatStore(path)
    ids: list[int] = []
    for number in range(count):
        age = 365 * DAY_S * number / count
        chat = Chat(
            title=text(chance, chance.randint(2, 7)).rstrip("."),
            created_at=now - age - 600,
            updated_at=now - age,
            pinned=number in (3, 40),
            folder=("", "", "", "Harbour", "Work")[number % 5],
        )
        said = conversation(chance, chance.randint(*turns), chat.created_at)
        chat.leaf = said.messages[-1].id
        store.add(chat, said)
        ids.append(chat.id)
    store.last_open = ids[0]
    if store.problem is not None or not store.close():
        raise OSError(f"the chats could not be written to {path}")
    return ids
