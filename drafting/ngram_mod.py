"""The mod drafter: one table, shared by all chats, from a hash of the last n tokens to the next.

The method is llama.cpp's ``ngram-mod``: constant memory and time whatever the history, and drafts
of any length, walked one look-up at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from drafting.drafter import NO_DRAFT, Draft, Draw
from drafting.parameters import ModParameters

_EMPTY = -1
_FACTOR = 6364136223846793005  # Knuth's MMIX multiplier
_MASK = (1 << 64) - 1
_POOR_LIMIT = 5


class ModTable:
    """4 Mi entries of 4 bytes. Emptied when a quarter is full: beyond that, strangers collide."""

    def __init__(self, n: int = 24, bits: int = 22) -> None:
        self._bits = bits
        self.set_n(n)

    def set_n(self, n: int) -> None:
        """Look up ``n`` tokens from now on; what was learned with another number is lost."""
        self.n = n
        self._leaving = pow(_FACTOR, n, 1 << 64)
        self.clear()

    def clear(self) -> None:
        self._next = array("i", [_EMPTY]) * (1 << self._bits)
        self._used = 0
        self._poor = 0

    def roll(self, key: int, token: int, leaving: int | None) -> int:
        """The key after ``token``; ``leaving`` is the token that drops out of the last n."""
        key = key * _FACTOR + token + 1
        if leaving is not None:
            key -= (leaving + 1) * self._leaving
        return key & _MASK

    def _slot(self, key: int) -> int:
        return ((key ^ (key >> 29)) * _FACTOR & _MASK) >> (64 - self._bits)

    def put(self, key: int, token: int) -> None:
        slot = self._slot(key)
        if self._next[slot] == _EMPTY:
            self._used += 1
            if self._used > len(self._next) // 4:
                self.clear()
                self._used = 1
        self._next[slot] = token

    def get(self, key: int) -> int | None:
        token = self._next[self._slot(key)]
        return None if token == _EMPTY else token

    def judged(self, drafted: int, accepted: int) -> None:
        """Five poor drafts in a row mean that the table speaks of other texts: start it anew."""
        self._poor = 0 if accepted * 2 >= drafted else self._poor + 1
        if self._poor >= _POOR_LIMIT:
            self.clear()


class NgramMod:
    """Keeps its sequence's tokens and takes them in one at a time; the table is everyone's."""

    name = "mod"

    def __init__(self, table: ModTable, shortest: int = 48, longest: int = 64) -> None:
        """``shortest``: walks that end before this many tokens are not trusted at all."""
        self._table = table
        self.shortest, self.longest = shortest, longest
        self._forget()

    def configure(self, parameters: ModParameters) -> None:
        """For the next answers."""
        self.shortest, self.longest = parameters.n_min, parameters.n_max
        if parameters.n != self._table.n:
            self._table.set_n(parameters.n)
            self._forget()

    def _forget(self) -> None:
        self.history: list[int] = []
        self._key = 0

    def begin(self, tokens: Sequence[int]) -> None:
        """Continue where ``tokens`` extends the history; otherwise start over with an empty one."""
        known = len(self.history)
        if known > len(tokens) or self.history != list(tokens[:known]):
            self._forget()
        self.commit(tokens[len(self.history) :])

    def commit(self, tokens: Sequence[int]) -> None:
        n, table, history = self._table.n, self._table, self.history
        for token in tokens:
            leaving = None
            if len(history) >= n:
                table.put(self._key, token)
                leaving = history[-n]
            history.append(token)
            self._key = table.roll(self._key, token, leaving)

    def propose(self, limit: int, draw: Draw) -> Draft:
        n, table = self._table.n, self._table
        if len(self.history) < n or table.get(self._key) is None:
            return NO_DRAFT
        tail, key = self.history[-n:], self._key
        draft: list[int] = []
        while len(draft) < self.longest and (token := table.get(key)) is not None:
            draft.append(token)
            key = table.roll(key, token, tail[len(draft) - 1] if len(draft) <= n else draft[-n - 1])
        return Draft(draft[:limit]) if len(draft) >= self.shortest else NO_DRAFT

    def judged(self, drafted: int, accepted: int) -> None:
        self._table.judged(drafted, accepted)
