"""What the palette finds: actions, pages, models and chats, as plain data with something to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from ui.shell.fuzzy import Match, match

Kind = Literal["action", "page", "model", "chat"]

MOST = 60
_WORDS: dict[Kind, str] = {"action": "Action", "page": "Page", "model": "Model", "chat": "Chat"}
_ICONS: dict[Kind, str] = {"action": "action", "page": "right", "model": "models", "chat": "chats"}
# What comes first among equal fits; without a query, how many of each are offered.
_RANK: dict[Kind, int] = {"page": 0, "action": 1, "chat": 2, "model": 3}
_OFFERED: dict[Kind, int] = {"page": 9, "action": 99, "chat": 5, "model": 5}


class Entry(Struct, frozen=True):
    """``keys`` are those that do the same, "" for none."""

    kind: Kind
    title: str
    run: Callable[[], object]
    keys: str = ""
    icon: str = ""

    @property
    def icon_name(self) -> str:
        return self.icon or _ICONS[self.kind]

    @property
    def kind_word(self) -> str:
        return _WORDS[self.kind]


class Found(Struct, frozen=True):
    entry: Entry
    match: Match


def search(query: str, entries: Sequence[Entry]) -> list[Found]:
    """Those that fit, the best first; without a query a short choice of everything, in order."""
    if not query.strip():
        left = dict(_OFFERED)
        offered: list[Found] = []
        for entry in sorted(entries, key=lambda entry: _RANK[entry.kind]):
            if left[entry.kind] > 0:
                left[entry.kind] -= 1
                offered.append(Found(entry, Match(0)))
        return offered
    found = [Found(entry, fits) for entry in entries if (fits := match(query, entry.title)) is not None]
    found.sort(key=lambda one: (-one.match.score, _RANK[one.entry.kind]))
    return found[:MOST]
