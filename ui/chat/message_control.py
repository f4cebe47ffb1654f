"""What a person does with messages: sends and edits them, asks again, switches, takes away."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.chats.message import Message
from ui.chat.composer import Composer
from ui.chat.message_list import MessageList, Place
from ui.session import Session
from ui.widgets.undo_line import UndoLine

EDIT_QUESTION = "Sending puts this beside your message, as another version with an answer of its own."
EDIT_ANSWER = "Saving puts this beside the answer, as another version; the model goes on from it."


class MessageControl(QObject):
    """Between the composer, the buttons of messages, and the controller."""

    def __init__(
        self,
        session: Session,
        messages: MessageList,
        composer: Composer,
        undo: UndoLine,
        show_speed: Callable[[Message], None],
        parent: QObject | None = None,
    ) -> None:
        """``show_speed`` shows how an answer was drafted."""
        super().__init__(parent)
        self._controller = session.controller
        self._messages = messages
        self._composer = composer
        self._undo = undo
        self._show_speed = show_speed
        self._editing: Message | None = None
        messages.message_acted.connect(self._act_on)
        messages.switched.connect(self._switch)
        composer.sent.connect(self._send)
        composer.edit_last.connect(self._edit_last)
        composer.editing_left.connect(self._stop_editing)
        undo.undone.connect(self._controller.restore_messages)

    def leave(self) -> None:
        """The chat is left: what is edited there stays as it is."""
        self._stop_editing()
        self._composer.end_editing()
        self._undo.dismiss()

    def regenerate(self) -> None:
        """Answer again, at the end of what is shown."""
        last = self._controller.conversation.leaf
        if last is not None:
            self._act_on(last, "regenerate")

    def copy_answer(self) -> None:
        """Without its thoughts, as Markdown."""
        answer = self._controller.conversation.last("assistant")
        if answer is None or not answer.text.strip():
            self._composer.show_hint("There is no answer to copy yet.")
        else:
            QGuiApplication.clipboard().setText(answer.text)
            self._composer.show_hint("The last answer is in the clipboard.")

    def _send(self, text: str) -> None:
        if self._editing is None:
            if self._controller.send(text):
                self._composer.clear()
        elif self._controller.edit(self._editing, text):
            self._stop_editing()
            self._composer.end_editing()

    def _edit_last(self) -> None:
        question = self._controller.conversation.last("user")
        if question is not None:
            self._edit(question)

    def _edit(self, message: Message) -> None:
        if self._controller.busy:
            self._still_writing()
            return
        self._editing = message
        is_answer = message.role == "assistant"
        words = EDIT_ANSWER if is_answer else EDIT_QUESTION
        self._composer.start_editing(message.text, words, saves=is_answer)

    def _stop_editing(self) -> None:
        self._editing = None

    def _still_writing(self) -> None:
        self._composer.show_hint("The answer is still being written: Esc stops it.")

    def _act_on(self, message: Message, action: str) -> None:
        """What was asked for with a message's own buttons."""
        match action:
            case "edit":
                self._edit(message)
                return
            case "speed":
                self._show_speed(message)
                return
            case "regenerate":
                done = self._controller.regenerate(message)
            case "continue":
                done = self._controller.continue_answer(message)
            case "delete":
                done = self._delete(message)
            case _:
                return
        if not done and self._controller.busy:
            self._still_writing()

    def _delete(self, message: Message) -> bool:
        count = self._controller.remove_message(message)
        if count:
            if self._editing is not None and self._editing not in self._controller.conversation:
                self._composer.leave_editing()
            words = "1 message was deleted." if count == 1 else f"{count:,} messages were deleted."
            self._undo.offer(words)
            self._composer.setFocus()
        return count > 0

    def _switch(self, message: Message, step: int) -> None:
        """Show another version of a message, where this one stands now."""
        view = self._messages.view_of(message)
        if view is None or self._controller.busy:
            self._still_writing()
            return
        offset = self._messages.verticalScrollBar().value() - view.y()
        siblings = self._controller.conversation.siblings(message)
        at, _ = self._controller.versions(message)
        with self._messages.standing_still():
            switched = self._controller.switch(message, step)
        if not switched:
            return
        other = siblings[at + step]
        self._messages.show_messages(self._controller.conversation.messages, Place(other.id, offset))
        shown = self._messages.view_of(other)
        if shown is not None:
            shown.switcher.take_focus(step)
