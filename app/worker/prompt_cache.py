"""Conversations that no slot has room for any more, in ordinary memory until they go on.

As llama-server does it: reading a prompt takes seconds to minutes, copying its KV cache milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from drafting.history import common_prefix
from drafting.target import SavedState

_MOST = 64  # conversations: each is looked at for each request


@dataclass(frozen=True, eq=False)
class Cached:
    """``tokens`` are all that ``state`` holds; the first ``read`` of them were read by exact mode."""

    tokens: Sequence[int]
    state: SavedState
    read: int = 0


class PromptCache:
    """Holds ``most_bytes`` at most; of too many, those go first that were left longest ago."""

    def __init__(self, most_bytes: int, free_bytes: Callable[[], int]) -> None:
        """``free_bytes``: memory that nobody needs now; it may be less than nothing."""
        self._most = most_bytes
        self._free = free_bytes
        self._entries: list[Cached] = []

    @property
    def n_bytes(self) -> int:
        return sum(entry.state.n_bytes for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def room(self) -> int:
        """Bytes that the next conversation may take: others make room for it, other programs do not."""
        return max(0, min(self._most, self._free() // 2)) if self._most else 0

    def has(self, tokens: Sequence[int]) -> bool:
        """Whether one begins with all of them and can be cut behind them."""
        n = len(tokens)
        return any(
            common_prefix(entry.tokens, tokens) == n == entry.state.usable(n) for entry in self._entries
        )

    def best(self, tokens: Sequence[int]) -> tuple[Cached | None, int]:
        """The one that most tokens need not be read with, and how many that are; the last one always is."""
        found, most = None, 0
        for entry in reversed(self._entries):
            shared = entry.state.usable(min(common_prefix(entry.tokens, tokens), len(tokens) - 1))
            if shared > most:
                found, most = entry, shared
        return found, most

    def add(self, entry: Cached) -> None:
        """In the place of those that it goes on from."""
        self._entries = [
            other for other in self._entries if common_prefix(other.tokens, entry.tokens) < len(other.tokens)
        ]
        self._entries.append(entry)
        while len(self._entries) > _MOST or self.n_bytes > self._most:
            del self._entries[0]

    def drop(self, entry: Cached) -> None:
        """Harmless where it has gone already."""
        if entry in self._entries:
            self._entries.remove(entry)


def free_bytes() -> int:
    """Memory that no program has for itself; weights mapped from a file are counted, since they could be
    read again."""
    return int(psutil.virtual_memory().available)
