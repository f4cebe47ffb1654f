"""What a person does with chats as a whole: open, rename, sort, delete, copy, set up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.errors import ChatsError
from app.chats.export import ExportKind, exported
from app.chats.imported import ImportedChat
from app.chats.importing import read_chats_file
from app.chats.message import clean_text
from app.chats.sampling import Preset, SamplingChoice
from app.chats.titles import one_line, title_of
from model_store.files import write_atomically
from ui.chat.view import Problem

if TYPE_CHECKING:
    from ui.chat.controller import Controller


class ChatKeeping:
    """Part of the controller. Changes are kept at once and told to the view."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._store = controller.store
        self._view = controller.view

    # ---- which is shown

    def start(self) -> None:
        """Show the chat that was shown last, or else a new one with what was typed for it. Call it once
        the view is there."""
        last = self._store.last_open
        if last is None or not self.open(last):
            self._controller.chat.draft = self._store.new_draft
            self._controller.leave(self._controller.chat, self._controller.conversation)
        self._view.chats_changed()

    def new(self) -> None:
        """Show an empty chat."""
        self._keep_draft()
        chat = Chat()
        self._controller.leave(chat, Conversation(started_at=chat.created_at))
        self._store.last_open = None

    def open(self, chat_id: int, message_id: int | None = None) -> bool:
        """Show a chat, on the branch that this message is on. False when it is not there any more or
        cannot be read, which the view is told."""
        chat = self._store.get(chat_id)
        if chat is None:
            return False
        try:
            conversation = self._store.conversation(chat)
        except ChatsError as error:
            self._view.problem(Problem(error.message, "", ()))
            return False
        message = conversation.get(message_id) if message_id is not None else None
        if message is not None and message not in conversation.messages and not self._busy(chat):
            conversation.switch(message)
            self._store.keep(chat)
        if chat is self._controller.chat:
            if message is not None:
                self._controller.leave(chat, conversation)
            return True
        self._keep_draft()
        self._controller.leave(chat, conversation)
        self._store.last_open = chat.id
        return True

    def set_draft(self, text: str) -> None:
        """What stands in the composer now."""
        chat, text = self._controller.chat, clean_text(text)
        if text == chat.draft:
            return
        chat.draft = text
        if chat in self._store:
            self._store.keep_soon(chat)
        else:
            self._store.new_draft = text

    def set_place(self, chat_id: int, place: tuple[int, int] | None) -> None:
        """Where its reader is, see Chat."""
        chat = self._store.get(chat_id)
        if chat is not None and chat.place != place:
            chat.place = place
            self._store.keep_soon(chat)

    # ---- the list

    def rename(self, chat_id: int, title: str) -> None:
        """Give it a title; with none it gets that of its first message."""
        chat = self._store.get(chat_id)
        if chat is None:
            return
        title = one_line(title)
        chat.title_given = bool(title)
        if not title:
            try:
                first = next(iter(self._store.conversation(chat).messages), None)
            except ChatsError:
                first = None
            title = title_of(first.text) if first is not None else ""
        chat.title = title
        self._changed(chat)

    def pin(self, chat_id: int, pinned: bool) -> None:
        """Keep it at the top of the list, or not."""
        if (chat := self._store.get(chat_id)) is not None:
            chat.pinned = pinned
            self._changed(chat, moved=True)

    def move(self, chat_id: int, folder: str) -> None:
        """Put it into a folder, which need not exist yet; "" takes it out."""
        if (chat := self._store.get(chat_id)) is not None:
            chat.folder = one_line(folder)
            self._changed(chat, moved=True)

    def delete(self, chat_id: int) -> None:
        """Take it off the list; its answer, if one is being written, is stopped."""
        chat = self._store.get(chat_id)
        if chat is None:
            return
        self._controller.drop_answer_of(chat)
        self._store.delete(chat)
        if chat is self._controller.chat:
            self.new()
        self._view.chats_changed()

    def restore(self, chat_id: int) -> Chat | None:
        """Undo ``delete``, as long as the program runs."""
        chat = self._store.restore(chat_id)
        if chat is not None:
            self._view.chats_changed()
        return chat

    def duplicate(self, chat_id: int) -> Chat | None:
        """Copy a chat with all its branches and show the copy."""
        chat = self._store.get(chat_id)
        if chat is None:
            return None
        try:
            copy = self._store.duplicate(chat)
        except ChatsError as error:
            self._view.problem(Problem(error.message, "", ()))
            return None
        self._view.chats_changed()
        self.open(copy.id)
        return copy

    # ---- files

    def export(self, chat_id: int, path: Path, kind: ExportKind) -> bool:
        """Write a chat to a file, "markdown" what is shown of it, "json" all of it. False when that
        failed, which the view is told. For a name see app.chats.export.suggested_name."""
        chat = self._store.get(chat_id)
        if chat is None:
            return False
        try:
            write_atomically(path, exported(chat, self._store.conversation(chat), kind))
        except ChatsError as error:
            self._view.problem(Problem(error.message, "", ()))
        except OSError as error:
            why = error.strerror or str(error)
            self._view.problem(Problem(f"The chat could not be exported: {why}.", "Your chat is kept.", ()))
        else:
            return True
        return False

    def import_file(self, path: Path) -> int:
        """Add the chats of a file and show the first; how many there were. A file that holds none is
        told to the view. Large files take a while: read them elsewhere, then ``take_imported``."""
        try:
            return self.take_imported(read_chats_file(path))
        except ChatsError as error:
            self._view.problem(Problem(error.message, "", ()))
            return 0

    def take_imported(self, imported: Sequence[ImportedChat]) -> int:
        """Add what app.chats.importing.read_chats_file has read, and show the first of it."""
        self.add_imported(imported)
        self.show_imported(imported)
        return len(imported)

    def without_known(self, imported: Sequence[ImportedChat]) -> list[ImportedChat]:
        """Of an archive those that are not in the list as they are there. A chat on its own is always
        wanted, be it as a copy."""
        here = {(chat.created_at, chat.updated_at) for chat in self._store.chats()}
        known = [(one.chat.created_at, one.chat.updated_at) in here for one in imported]
        return [one for one, is_here in zip(imported, known, strict=True) if not is_here or len(known) == 1]

    def add_imported(self, imported: Sequence[ImportedChat]) -> None:
        """A part of them; ``show_imported`` tells once all are there."""
        for one in imported:
            conversation = Conversation(one.messages, leaf=one.chat.leaf, started_at=one.chat.created_at)
            self._store.add(one.chat, conversation)

    def show_imported(self, imported: Sequence[ImportedChat]) -> None:
        if imported:
            self._view.chats_changed()
            self.open(imported[0].chat.id)

    # ---- how the chat that is shown is answered

    def set_system_prompt(self, text: str | None) -> None:
        """Instructions for this chat alone; None takes those of the settings, "" none at all."""
        self._controller.chat.system_prompt = clean_text(text) if text is not None else None
        self._changed(self._controller.chat)

    def set_sampling(self, sampling: SamplingChoice) -> None:
        """Values for this chat alone."""
        self._controller.chat.sampling = sampling
        self._controller.chat.preset = None
        self._changed(self._controller.chat)

    def use_preset(self, preset: Preset | None) -> None:
        """Take over a preset's values; None goes back to the settings."""
        chat = self._controller.chat
        chat.preset = preset.name if preset is not None else None
        chat.sampling = preset.sampling if preset is not None else SamplingChoice()
        if preset is not None and preset.system_prompt is not None:
            chat.system_prompt = preset.system_prompt
        self._changed(chat)

    # ---- inside

    def _busy(self, chat: Chat) -> bool:
        return chat.id in self._controller.busy_chats

    def _keep_draft(self) -> None:
        """What was typed into a new chat makes it one of the list."""
        chat = self._controller.chat
        if chat not in self._store and chat.deleted_at is None and chat.draft.strip():
            self._store.add(chat, self._controller.conversation)
            self._view.chats_changed()
        self._store.new_draft = ""

    def _changed(self, chat: Chat, moved: bool = False) -> None:
        self._store.keep(chat)
        if moved:
            self._view.chats_changed()
        else:
            self._view.chat_changed(chat)
