"""All chats: the list in memory, their messages when asked for, and a thread that writes to disk."""

from __future__ import annotations

import collections
import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from app.chats.archive import Snapshot
from app.chats.chat import Chat
from app.chats.chat_file import ChatFile, StoreNews
from app.chats.conversation import Conversation
from app.chats.database import Changes, Database, FoundText
from app.chats.errors import ChatsError
from app.chats.ids import new_id
from app.chats.message import Message, interrupt
from app.chats.rows import chat_row, message_row, read_chat, read_message, read_struct
from app.chats.sampling import BUILT_IN, Preset
from app.chats.search_text import parse_query
from app.chats.titles import one_line

log = logging.getLogger(__name__)

_KEPT_OPEN = 8
_LAST_OPEN = "last_open"
_NEW_DRAFT = "new_draft"


class ChatStore:
    """Chats belong to the thread that made the store: it changes them, then says what to keep.

    Nothing here waits for a disk but reading a chat that is not in memory. What goes wrong with the
    file is news (``take_news``), and the chats go on in memory.
    """

    def __init__(
        self,
        path: Path | None = None,
        on_news: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``path`` None keeps everything in memory only. ``on_news`` is called, from whatever thread,
        when there is something for ``take_news``. Raises nothing for what is wrong with the file."""
        self._clock = clock
        self._on_news = on_news
        self._news: collections.deque[StoreNews] = collections.deque()
        self._chats: dict[int, Chat] = {}
        self._deleted: dict[int, Chat] = {}
        # Those looked at lately, and those that somebody still holds: there must never be two of one.
        self._conversations: OrderedDict[int, Conversation] = OrderedDict()
        self._held: weakref.WeakValueDictionary[int, Conversation] = weakref.WeakValueDictionary()
        self._presets: dict[str, Preset] = {}
        self._facts: dict[str, str] = {}
        self._file = ChatFile(path, self._tell, clock) if path is not None else None
        self.problem: ChatsError | None = self._file.problem if self._file is not None else None
        """Why chats are not being saved, None while they are."""
        if self._file is not None:
            self._load(self._file)
            self._recover(self._file)
            self._file.look_after()

    # ---- the list

    def chats(self) -> list[Chat]:
        """All but the deleted: the pinned ones first, then those that were written to last."""
        return sorted(
            self._chats.values(), key=lambda chat: (chat.pinned, chat.updated_at, chat.id), reverse=True
        )

    def folders(self) -> list[str]:
        """The folders that have a chat in them, by name."""
        return sorted({chat.folder for chat in self._chats.values() if chat.folder}, key=str.casefold)

    def get(self, chat_id: int) -> Chat | None:
        """A chat that is not deleted."""
        return self._chats.get(chat_id)

    def __contains__(self, chat: object) -> bool:
        return isinstance(chat, Chat) and self._chats.get(chat.id) is chat

    def __len__(self) -> int:
        return len(self._chats)

    @property
    def last_open(self) -> int | None:
        """The id of the chat that was shown last, if it is still there."""
        text = self._facts.get(_LAST_OPEN, "")
        return int(text) if text.isdigit() and int(text) in self._chats else None

    @last_open.setter
    def last_open(self, chat_id: int | None) -> None:
        self._note(_LAST_OPEN, "" if chat_id is None else str(chat_id))

    @property
    def new_draft(self) -> str:
        """What was typed into a chat that is not in the list yet."""
        return self._facts.get(_NEW_DRAFT, "")

    @new_draft.setter
    def new_draft(self, text: str) -> None:
        self._facts[_NEW_DRAFT] = text
        if self._file is not None:
            self._file.put_soon(0, lambda: Changes(facts={_NEW_DRAFT: self._facts[_NEW_DRAFT]}))

    # ---- messages

    def conversation(self, chat: Chat) -> Conversation:
        """What was said in ``chat``; the same object each time. Raises ChatsError when it cannot be
        read."""
        known = self._held.get(chat.id)
        if known is None:
            messages = self._read_messages(chat.id)
            known = Conversation(messages, leaf=chat.leaf, started_at=chat.created_at)
        self._hold(chat, known)
        return known

    def search(self, text: str, most: int = 100) -> list[FoundText]:
        """Where all words of ``text`` stand, the newest first, one place for each chat. Any text will
        do. May be called from another thread; a later search ends an earlier one, which returns [].
        Raises ChatsError."""
        if self._file is None or not self._file.reads:
            return self._search_memory(text, most)
        return self._file.read(lambda database: database.search(parse_query(text), most)) or []

    # ---- keeping

    def add(self, chat: Chat, conversation: Conversation | None = None) -> None:
        """Keep a chat from now on, with what has been said in it."""
        conversation = conversation or Conversation(started_at=chat.created_at)
        self._chats[chat.id] = chat
        self._hold(chat, conversation)
        self.keep(chat, *conversation.everything)

    def keep(self, chat: Chat, *messages: Message, removed: Iterable[Message] = ()) -> None:
        """Write the chat as it is now, with the branch that is shown, together with these messages, in
        one step."""
        if chat.id not in self._chats and chat.id not in self._deleted:
            return
        if (conversation := self._held.get(chat.id)) is not None:
            chat.leaf = conversation.leaf.id if conversation.leaf is not None else None
        changes = Changes(chats={chat.id: chat_row(chat)})
        changes.messages.update({message.id: message_row(chat.id, message) for message in messages})
        changes.messages.update({message.id: None for message in removed})
        self._put(changes)

    def keep_soon(self, chat: Chat, message: Message | None = None) -> None:
        """Write the chat, or this message of it that grows, within a second or so."""
        if self._file is None or chat.id not in self._chats:
            return
        if message is None:
            self._file.put_soon(chat.id, lambda: Changes(chats={chat.id: chat_row(chat)}))
        else:
            id, growing = message.id, message
            self._file.put_soon(id, lambda: Changes(messages={id: message_row(chat.id, growing)}))

    def touch(self, chat: Chat) -> None:
        """Something was said in it: it moves to the top of the list."""
        chat.updated_at = max(self._clock(), chat.updated_at)

    def delete(self, chat: Chat) -> None:
        """Take it off the list; ``restore`` brings it back as long as the program runs."""
        if self._chats.pop(chat.id, None) is None:
            return
        chat.deleted_at = self._clock()
        self._deleted[chat.id] = chat
        self._put(Changes(chats={chat.id: chat_row(chat)}))

    def restore(self, chat_id: int) -> Chat | None:
        """Undo ``delete``. None for a chat that is not there any more."""
        chat = self._deleted.pop(chat_id, None)
        if chat is not None:
            chat.deleted_at = None
            self._chats[chat.id] = chat
            self.keep(chat)
        return chat

    def duplicate(self, chat: Chat) -> Chat:
        """A copy of the chat with all its branches. Raises ChatsError when it cannot be read."""
        source = self.conversation(chat)
        now = self._clock()
        copy = msgspec.structs.replace(
            chat,
            id=new_id(),
            title=one_line(f"{chat.label} (copy)"),
            pinned=False,
            draft="",
            place=None,
            created_at=now,
            updated_at=now,
        )
        messages, ids = copied(source.everything)
        copy.leaf = ids.get(source.leaf.id) if source.leaf is not None else None
        self.add(copy, Conversation(messages, leaf=copy.leaf, started_at=copy.created_at))
        return copy

    def snapshot(self) -> Snapshot:
        """All chats but the deleted as they are now, to be read on another thread."""
        held = {id: conversation.everything for id, conversation in self._held.items()}
        return Snapshot(
            [msgspec.structs.replace(chat) for chat in self.chats()],
            {
                id: [msgspec.structs.replace(message, pieces=list(message.pieces)) for message in messages]
                for id, messages in held.items()
            },
            self._read_messages,
        )

    # ---- presets

    def presets(self) -> list[Preset]:
        """Those that come with the program, then a person's own by name."""
        return [*BUILT_IN, *sorted(self._presets.values(), key=lambda preset: preset.name.casefold())]

    def keep_preset(self, preset: Preset) -> None:
        """Add a person's own, or change the one of the same name. Raises ValueError for a name that
        is empty or of one that comes with the program."""
        name = preset.name.strip()
        if not name or any(name.casefold() == built_in.name.casefold() for built_in in BUILT_IN):
            raise ValueError("a preset needs a name of its own")
        preset = msgspec.structs.replace(preset, name=name, own=True)
        self._presets[name] = preset
        self._put(Changes(presets={name: msgspec.json.encode(preset).decode()}))

    def drop_preset(self, name: str) -> None:
        """Chats that use it keep its values."""
        if self._presets.pop(name, None) is not None:
            self._put(Changes(presets={name: None}))

    # ---- the file

    @property
    def saves(self) -> bool:
        """There is a file to write to, be it one that cannot be written just now."""
        return self._file is not None and self._file.saves

    @property
    def saved(self) -> bool:
        """Everything is on disk."""
        return self._file is not None and self._file.idle

    def take_news(self) -> list[StoreNews]:
        """What happened since the last time. Call it from the thread that owns the chats."""
        news: list[StoreNews] = []
        while self._news:
            news.append(self._news.popleft())
        for one in news:
            if one.error is not None:
                self.problem = one.error
            elif one.saved:
                self.problem = None
            if one.reload:
                self._reload()
        return news

    def retry(self) -> None:
        """Try again to write what could not be written."""
        if self._file is not None:
            self._file.retry()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything is on disk; False when it is not by then."""
        return self._file is not None and self._file.flush(timeout)

    def close(self) -> bool:
        """Write what is left and end; False when something could not be written."""
        return self._file is None or self._file.close()

    # ---- inside

    def _load(self, file: ChatFile) -> None:
        try:
            chats = file.read(Database.chats) or []
            presets = file.read(Database.presets) or []
            self._facts = file.read(Database.facts) or {}
        except ChatsError as error:
            log.warning("the list of chats cannot be read: %s", error.__cause__ or error)
            self._tell(StoreNews(error.message))
            return
        for id, data in chats:
            chat = read_chat(id, data)
            if chat is not None:
                self._chats[id] = chat
        for name, data in presets:
            preset = read_struct(data, Preset)
            if preset is not None:
                self._presets[name] = msgspec.structs.replace(preset, name=name, own=True)

    def _recover(self, file: ChatFile) -> None:
        """Answers that were being written when the program ended are marked so."""
        changes = Changes()
        try:
            unfinished = file.read(Database.unfinished) or []
        except ChatsError as error:
            log.warning("unfinished answers cannot be read: %s", error.__cause__ or error)
            return
        for id, chat, parent, data in unfinished:
            message = read_message(id, parent, data)
            if message is not None and chat in self._chats:
                interrupt(message)
                changes.messages[id] = message_row(chat, message)
        if changes:
            self._put(changes)
            self._tell(
                StoreNews(
                    "Slipstream ended while an answer was being written. What there was of it is kept, "
                    "and you can let it continue."
                )
            )

    def _reload(self) -> None:
        """After a repair: the list is what the new file has, and what is in memory beside."""
        if self._file is None:
            return
        try:
            saved = {id: read_chat(id, data) for id, data in self._file.read(Database.chats) or ()}
        except ChatsError as error:
            log.warning("the list of chats cannot be read: %s", error.__cause__ or error)
            return
        for id, chat in saved.items():
            if chat is not None and id not in self._chats and id not in self._deleted:
                self._chats[id] = chat
        # What memory knows is better than what was saved from the damaged file.
        for chat in list(self._chats.values()):
            conversation = self._held.get(chat.id)
            self.keep(chat, *(conversation.everything if conversation is not None else ()))

    def _read_messages(self, chat_id: int) -> list[Message]:
        messages: list[Message] = []
        rows = self._file.read(lambda database: database.messages(chat_id)) if self._file else None
        for id, parent, data in rows or ():
            message = read_message(id, parent, data)
            if message is not None:
                if message.in_progress:
                    interrupt(message)
                messages.append(message)
        return messages

    def _hold(self, chat: Chat, conversation: Conversation) -> None:
        """Have it in memory; of those that were not looked at lately only what is not on disk stays."""
        self._held[chat.id] = self._conversations[chat.id] = conversation
        self._conversations.move_to_end(chat.id)
        if self.saved:
            while len(self._conversations) > _KEPT_OPEN:
                self._conversations.popitem(last=False)

    def _note(self, name: str, value: str) -> None:
        if self._facts.get(name, "") != value:
            self._facts[name] = value
            self._put(Changes(facts={name: value}))

    def _put(self, changes: Changes) -> None:
        if self._file is not None:
            self._file.put(changes)

    def _tell(self, news: StoreNews) -> None:
        self._news.append(news)
        self._on_news()

    def _search_memory(self, text: str, most: int) -> list[FoundText]:
        words = text.casefold().split()
        found: list[FoundText] = []
        for chat in self.chats() if words else ():
            if all(word in chat.label.casefold() for word in words):
                found.append(FoundText(chat.id, None, chat.label, ()))
                continue
            conversation = self._held.get(chat.id)
            for message in reversed(conversation.everything if conversation is not None else ()):
                said = message.text
                if all(word in said.casefold() for word in words):
                    found.append(FoundText(chat.id, message.id, " ".join(said[:120].split()), ()))
                    break
        return found[:most]


def copied(messages: Iterable[Message]) -> tuple[list[Message], dict[int, int]]:
    """The same messages with ids of their own, parents first, and the new id of each old one."""
    ids: dict[int, int] = {}
    copies: list[Message] = []
    for message in messages:
        ids[message.id] = new_id()
        copies.append(
            msgspec.structs.replace(
                message,
                id=ids[message.id],
                parent=ids.get(message.parent) if message.parent is not None else None,
                pieces=list(message.pieces),
            )
        )
        if copies[-1].in_progress:
            interrupt(copies[-1])
    return copies, ids
