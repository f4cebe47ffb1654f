"""All chats in one file: JSON that can be imported again, or a zip of Markdown to read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.export import FORMAT, FORMAT_VERSION, SUFFIXES, ExportedChat, ExportKind, as_markdown
from app.chats.message import Message
from app.chats.titles import file_name
from model_store.files import atomic_file

ARCHIVE_SUFFIXES: dict[ExportKind, str] = {"json": ".json", "markdown": ".zip"}
_ZIP_BEGAN = (1980, 1, 1, 0, 0, 0)


class ArchiveStopped(Exception):
    """It was not wanted any more; there is no file."""


class Snapshot:
    """Chats as they were at one moment, for another thread than theirs. Iterating raises ChatsError."""

    def __init__(
        self,
        chats: Sequence[Chat],
        in_memory: dict[int, list[Message]],
        read: Callable[[int], list[Message]],
    ) -> None:
        """Nobody else has these objects. ``read`` gets the messages of a chat that are not in memory."""
        self._chats = chats
        self._in_memory = in_memory
        self._read = read

    def __len__(self) -> int:
        return len(self._chats)

    def __iter__(self) -> Iterator[tuple[Chat, Conversation]]:
        for chat in self._chats:
            messages = self._in_memory.get(chat.id)
            if messages is None:
                messages = self._read(chat.id)
            yield chat, Conversation(messages, leaf=chat.leaf, started_at=chat.created_at)


def archive_name(kind: ExportKind, now: float) -> str:
    """A name that says what it is and of which day."""
    return f"slipstream-chats-{time.strftime('%Y-%m-%d', time.localtime(now))}{ARCHIVE_SUFFIXES[kind]}"


def write_archive(
    path: Path, chats: Snapshot, kind: ExportKind, wanted: Callable[[], bool] = lambda: True
) -> None:
    """Replace ``path`` by a file with all chats, one at a time in memory: "json" with every branch, which
    importing.py reads, "markdown" a zip with a file for what is shown of each, in folders as in the list.
    Raises ChatsError or OSError, and ArchiveStopped once ``wanted`` says no; the old file then stays."""
    with atomic_file(path) as file:
        if kind == "json":
            _write_json(file, chats, wanted)
        else:
            _write_zip(file, chats, wanted)


def _write_json(file: IO[bytes], chats: Snapshot, wanted: Callable[[], bool]) -> None:
    file.write(b'{"format": "%s", "version": %d, "chats": [' % (FORMAT.encode(), FORMAT_VERSION))
    for number, (chat, conversation) in enumerate(chats):
        _go_on(wanted)
        file.write(b",\n" if number else b"\n")
        file.write(msgspec.json.encode(ExportedChat(chat=chat, messages=conversation.everything)))
    file.write(b"\n]}\n")


def _write_zip(file: IO[bytes], chats: Snapshot, wanted: Callable[[], bool]) -> None:
    import zipfile  # not at every start

    taken: set[str] = set()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for chat, conversation in chats:
            _go_on(wanted)
            changed = max(_ZIP_BEGAN, time.localtime(chat.updated_at)[:6])
            entry = zipfile.ZipInfo(_free_name(chat, taken), changed)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, as_markdown(chat, conversation).encode("utf-8", "replace"))


def _go_on(wanted: Callable[[], bool]) -> None:
    if not wanted():
        raise ArchiveStopped


def _free_name(chat: Chat, taken: set[str]) -> str:
    """Where letters' case makes no difference, too."""
    folder = f"{file_name(chat.folder, '')}/" if chat.folder else ""
    suffix = SUFFIXES["markdown"]
    name = f"{folder}{file_name(chat.label, suffix)}"
    number = 1
    while name.casefold() in taken:
        number += 1
        name = f"{folder}{file_name(chat.label, f' ({number}){suffix}')}"
    taken.add(name.casefold())
    return name
