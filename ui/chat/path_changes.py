"""How the view is told that another path through a chat is shown."""

from __future__ import annotations

from collections.abc import Sequence

from app.chats.message import Message
from ui.chat.view import View

_MOST_MOVED = 40  # messages that are taken away and put there one by one


def tell_path(view: View, before: Sequence[Message], after: Sequence[Message]) -> None:
    """The path was ``before`` and is ``after``: only what differs is taken away and put there."""
    same = 0
    while same < min(len(before), len(after)) and before[same] is after[same]:
        same += 1
    if len(before) + len(after) - 2 * same > _MOST_MOVED:
        view.conversation_replaced()
        return
    for message in reversed(before[same:]):
        view.message_removed(message)
    for message in after[same:]:
        view.message_added(message)
