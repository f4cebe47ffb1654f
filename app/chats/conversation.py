"""One chat's messages in memory: a tree, the path through it that is shown, and what of it is sent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from app.chats.message import Message, MessageRole
from app.protocol import ChatMessage, Piece


class Conversation:
    """A tree of messages. Siblings are versions of one turn; ``messages`` is the path that is shown.

    The last message of the path is the ``leaf``. Every change but ``remove`` only adds: what was
    said before stays a branch that can be switched back to.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        leaf: int | None = None,
        started_at: float | None = None,
    ) -> None:
        """``messages`` in any order; a parent that is not among them counts as none. ``leaf`` is the
        id of the last message shown, by default of the newest. ``started_at`` (Unix seconds) is the
        date that templates print."""
        self.started_at = time.time() if started_at is None else started_at
        self._by_id: dict[int, Message] = {}
        self._children: dict[int | None, list[Message]] = {None: []}
        self._chosen: dict[int | None, int] = {}  # which child a path went through last
        self._path: list[Message] = []
        self._load(list(messages), leaf)

    # ---- what there is

    @property
    def messages(self) -> Sequence[Message]:
        """The path that is shown, from the first message to the leaf."""
        return tuple(self._path)

    @property
    def everything(self) -> Sequence[Message]:
        """All messages of all branches, the older ones first."""
        return sorted(self._by_id.values(), key=lambda message: message.id)

    @property
    def leaf(self) -> Message | None:
        """The last message of the path."""
        return self._path[-1] if self._path else None

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, message: object) -> bool:
        return isinstance(message, Message) and self._by_id.get(message.id) is message

    def get(self, message_id: int) -> Message | None:
        """The message with this id, on whatever branch."""
        return self._by_id.get(message_id)

    def siblings(self, message: Message) -> Sequence[Message]:
        """The versions of this turn, itself among them, the oldest first."""
        return tuple(self._children[message.parent])

    def children(self, message: Message | None) -> Sequence[Message]:
        """What was said after ``message``; first messages for None."""
        return tuple(self._children[message.id if message is not None else None])

    def place(self, message: Message) -> tuple[int, int]:
        """Which version of its turn it is, from 0, and how many there are."""
        versions = self._children[message.parent]
        return versions.index(message), len(versions)

    def last(self, role: MessageRole) -> Message | None:
        """The last message of this role on the path."""
        return next((message for message in reversed(self._path) if message.role == role), None)

    def prompt(self, system_prompt: str = "") -> tuple[ChatMessage, ...]:
        """What the model sees: thoughts are left out, and so are questions that got no answer,
        because many templates insist that the roles alternate."""
        return _prompt(self._path, system_prompt)

    def prompt_before(self, answer: Message, system_prompt: str = "") -> tuple[ChatMessage, ...]:
        """What the model saw, or would see, before it says ``answer``, on whatever branch that is."""
        return _prompt(self.path_to(answer)[:-1], system_prompt)

    def path_to(self, message: Message) -> list[Message]:
        """From the first message to this one."""
        path = [message]
        while path[-1].parent is not None:
            path.append(self._by_id[path[-1].parent])
        path.reverse()
        return path

    # ---- what can be done

    def add_user(self, text: str) -> Message:
        """Say something at the end of the path."""
        return self.add(Message(role="user", pieces=[Piece(text)]))

    def add_answer(self) -> Message:
        """An answer at the end of the path, still to be written."""
        return self.add(Message(role="assistant", state="waiting"))

    def add(self, message: Message) -> Message:
        """Put ``message`` at the end of the path."""
        message.parent = self._path[-1].id if self._path else None
        self._insert(message)
        self._path.append(message)
        self._chosen[message.parent] = message.id
        return message

    def add_version(self, of: Message, version: Message) -> Message:
        """Put ``version`` beside ``of`` and end the path with it; what followed ``of`` stays with it."""
        version.parent = of.parent
        self._insert(version)
        self._show(version, down=False)
        return version

    def switch(self, message: Message) -> None:
        """Show the branch that goes through ``message``, down to where it was left last."""
        self._show(message, down=True)

    def end_at(self, message: Message | None) -> None:
        """Let the path end with ``message``, so that the next one begins a branch there."""
        if message is None:
            self._path = []
        else:
            self._show(message, down=False)

    def remove(self, message: Message) -> list[Message]:
        """Take ``message`` and all that followed it out of the tree; returns them, parents first.

        Where the path went through it, it goes through a version of the same turn instead, the one
        before it if there is one, or ends."""
        versions = self._children[message.parent]
        at = versions.index(message)
        removed = [message]
        for one in removed:
            removed.extend(self._children[one.id])
        shown = message in self._path
        versions.pop(at)
        for one in removed:
            del self._by_id[one.id], self._children[one.id]
            self._chosen.pop(one.id, None)
        if self._chosen.get(message.parent) == message.id:
            del self._chosen[message.parent]
        if shown:
            if versions:
                self._show(versions[max(0, at - 1)], down=True)
            else:
                self._path = self._path[: self._path.index(message)]
        return removed

    def put_back(self, removed: Sequence[Message], leaf: Message | None = None) -> bool:
        """Undo ``remove``, which returned ``removed``; ``leaf`` was the end of the path before it.
        False when what they followed is not there any more."""
        first = removed[0]
        if first.parent is not None and first.parent not in self._by_id:
            return False
        for message in removed:
            self._insert(message)
            self._children[message.parent].sort(key=lambda version: version.id)
        self._show(leaf if leaf is not None and leaf in self else first, down=True)
        return True

    # ---- inside

    def _load(self, messages: list[Message], leaf: int | None) -> None:
        known = {message.id for message in messages}
        for message in sorted(messages, key=lambda message: message.id):
            # An id never exceeds its children's: this breaks any circle that a damaged file holds.
            if message.parent not in known or (message.parent or 0) >= message.id:
                message.parent = None
            self._insert(message)
        end = self._by_id.get(leaf) if leaf is not None else None
        if end is None and messages:
            end = max(self._by_id.values(), key=lambda message: message.id)
        if end is not None:
            self._show(end, down=False)

    def _insert(self, message: Message) -> None:
        self._by_id[message.id] = message
        self._children[message.id] = []
        self._children[message.parent].append(message)

    def _show(self, message: Message, down: bool) -> None:
        path = self.path_to(message)
        while down and (children := self._children[path[-1].id]):
            chosen = self._chosen.get(path[-1].id)
            path.append(next((child for child in children if child.id == chosen), children[-1]))
        for one in path:
            self._chosen[one.parent] = one.id
        self._path = path


def _prompt(path: Sequence[Message], system_prompt: str) -> tuple[ChatMessage, ...]:
    prompt: list[ChatMessage] = []
    if system_prompt.strip():
        prompt.append(ChatMessage("system", system_prompt))
    pending: ChatMessage | None = None
    for message in path:
        if message.role == "user":
            pending = ChatMessage("user", message.text)
        elif pending is not None and (text := message.text):
            prompt += [pending, ChatMessage("assistant", text)]
            pending = None
    if pending is not None:
        prompt.append(pending)
    return tuple(prompt)
