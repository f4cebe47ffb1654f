"""In which groups the list of chats shows them: pinned ones, folders, then by when they changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Literal

from msgspec import Struct

from app.chats.chat import Chat

GroupKind = Literal["pinned", "folder", "date"]
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


class Group(Struct, frozen=True):
    """``title`` is shown; of a folder it is its name. The chat that changed last comes first."""

    kind: GroupKind
    title: str
    chats: tuple[Chat, ...]


def grouped(chats: Iterable[Chat], now: datetime) -> list[Group]:
    """Groups without chats are left out; a pinned chat is in no other group. ``now`` is local time."""
    pinned: list[Chat] = []
    folders: dict[str, list[Chat]] = {}
    dated: list[Chat] = []
    for chat in sorted(chats, key=lambda chat: (chat.updated_at, chat.id), reverse=True):
        if chat.pinned:
            pinned.append(chat)
        elif chat.folder:
            folders.setdefault(chat.folder, []).append(chat)
        else:
            dated.append(chat)
    groups = [Group("pinned", "Pinned", tuple(pinned))] if pinned else []
    for name in sorted(folders, key=lambda name: (name.casefold(), name)):
        groups.append(Group("folder", name, tuple(folders[name])))
    return groups + _by_date(dated, now)


def _by_date(chats: list[Chat], now: datetime) -> list[Group]:
    """``chats`` are newest first, so each group is a run of them."""
    groups: list[Group] = []
    start, title, begins = 0, "", float("inf")
    for index, chat in enumerate(chats):
        if chat.updated_at >= begins:
            continue
        if index > start:
            groups.append(Group("date", title, tuple(chats[start:index])))
        start = index
        title, begins = _period(chat.updated_at, now)
    if chats:
        groups.append(Group("date", title, tuple(chats[start:])))
    return groups


def _period(seconds: float, now: datetime) -> tuple[str, float]:
    """What the time is called, and when (Unix seconds) that stretch of time began."""
    midnight = datetime.combine(now.date(), time(), now.tzinfo)
    for title, days in (("Today", 0), ("Yesterday", 1), ("Previous 7 days", 7)):
        begins = (midnight - timedelta(days=days)).timestamp()
        if seconds >= begins:
            return title, begins
    then = datetime.fromtimestamp(seconds, now.tzinfo)
    month = _MONTHS[then.month - 1]
    first = datetime.combine(then.date().replace(day=1), time(), now.tzinfo)
    return month if then.year == now.year else f"{month} {then.year}", first.timestamp()
