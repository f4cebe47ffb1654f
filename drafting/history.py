"""The tokens of one sequence, with indexes that find earlier occurrences of an n-gram."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

from drafting.ngram_trie import NgramTrie

_FACTOR = 6364136223846793005  # Knuth's MMIX multiplier
_MASK = (1 << 64) - 1
_FIRST_BITS = 10
# Other n-grams in a slot that a look-up passes before it gives up: one that is everywhere in the text
# must not slow down those that happen to share its slot.
_STRANGERS = 64


class NgramIndex:
    """Where each n-gram of a list of tokens ends, newest first.

    Hash chains as in LZ77 coders: ``head`` leads from a slot to the newest n-gram in it, ``older``
    from each n-gram to the one before it in its slot. A match is always compared with the tokens,
    so a collision costs time and never a wrong match. Constant time and about eight bytes a token.
    """

    def __init__(self, n: int, tokens: list[int]) -> None:
        """Index ``tokens``, which its owner extends (then calls ``grow``) and cuts (``cut`` first)."""
        self.n = n
        self._tokens = tokens
        self._leaving = pow(_FACTOR, n, 1 << 64)
        self._clear(_FIRST_BITS)
        self.grow()

    def _clear(self, bits: int) -> None:
        self._shift = 64 - bits
        self._head = array("i", [-1]) * (1 << bits)
        self._older = array("i")  # by n-gram, the first of which ends after n tokens
        self._hash = 0  # of the last n tokens taken in
        self._end = 0  # tokens taken in

    def grow(self) -> None:
        """Take in the tokens added since the last call."""
        length, bits = len(self._tokens), 64 - self._shift
        if length > len(self._head):
            while length > 1 << bits:
                bits += 2
            self._clear(bits)
        self._take_in(length)

    def _take_in(self, length: int) -> None:
        tokens, n = self._tokens, self.n
        for end in range(self._end + 1, length + 1):
            key = self._hash * _FACTOR + tokens[end - 1] + 1
            if end > n:
                key -= (tokens[end - n - 1] + 1) * self._leaving
            self._hash = key & _MASK
            if end >= n:
                slot = self._slot(self._hash)
                self._older.append(self._head[slot])
                self._head[slot] = end
        self._end = max(self._end, length)

    def cut(self, length: int) -> None:
        """Forget all but the first ``length`` tokens; the owner drops them afterwards."""
        if length < self._end // 2:
            self._clear(64 - self._shift)
            self._take_in(length)
            return
        while self._end > length:
            if self._end >= self.n:
                self._head[self._slot(self._hash)] = self._older.pop()
            self._end -= 1
            self._hash = self._hash_of(self._tokens[max(0, self._end - self.n) : self._end])

    def ends(self, key: Sequence[int]) -> Iterator[int]:
        """Where the n tokens of ``key`` were seen: the number of tokens up to their last, newest
        first. If the tokens themselves end with ``key``, that is the first."""
        return self._ends(list(key), self._hash_of(key))

    def _ends(self, key: list[int], hashed: int) -> Iterator[int]:
        tokens, n = self._tokens, self.n
        end = self._head[self._slot(hashed)]
        strangers = 0
        while end >= 0 and strangers < _STRANGERS:
            if tokens[end - n : end] == key:
                yield end
            else:
                strangers += 1
            end = self._older[end - n]

    def latest(self) -> Iterator[int]:
        """The same of the last n tokens, when all are taken in: their hash is known."""
        return self._ends(self._tokens[-self.n :], self._hash)

    def _hash_of(self, tokens: Sequence[int]) -> int:
        key = 0
        for token in tokens:
            key = key * _FACTOR + token + 1
        return key & _MASK

    def _slot(self, key: int) -> int:
        return ((key ^ (key >> 29)) * _FACTOR & _MASK) >> self._shift


class History:
    """A sequence's tokens, shared by its n-gram drafters; each index is built on its first use."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._indexes: dict[int, NgramIndex] = {}
        self._trie: NgramTrie | None = None
        self._followers: list[NgramIndex | NgramTrie] = []
        self._found: dict[int, tuple[int, list[int]]] = {}  # by n: how many were asked for, and were there

    def index(self, n: int) -> NgramIndex:
        """The index of n-grams of this history."""
        if n not in self._indexes:
            index = self._indexes[n] = NgramIndex(n, self.tokens)
            self._followers.append(index)
        return self._indexes[n]

    def drop_index(self, n: int) -> None:
        """Nobody may need it any more; if somebody does, it is built again on its next use."""
        index = self._indexes.pop(n, None)
        if index is not None:
            self._followers.remove(index)

    @property
    def trie(self) -> NgramTrie:
        """The counts of its shortest n-grams."""
        if self._trie is None:
            self._trie = NgramTrie(self.tokens)
            self._followers.append(self._trie)
        return self._trie

    def begin(self, tokens: Sequence[int]) -> None:
        """Make these the tokens, keeping what is known of the prefix they share with the old."""
        kept = common_prefix(self.tokens, tokens)
        if kept < len(self.tokens):
            for index in self._followers:
                index.cut(kept)
            del self.tokens[kept:]
        self.commit(tokens[kept:])

    def commit(self, tokens: Sequence[int]) -> None:
        self._found.clear()
        self.tokens.extend(tokens)
        for index in self._followers:
            index.grow()

    def earlier(self, n: int, most: int) -> list[int]:
        """Up to ``most`` places where the last n tokens were seen before, newest first.

        A place is the number of tokens up to the end of that occurrence: what followed starts there.
        """
        asked, places = self._found.get(n, (0, []))
        if asked < most:
            tokens = self.tokens
            ends = self.index(n).latest() if len(tokens) > n else ()
            places = list(islice((end for end in ends if end < len(tokens)), most))
            self._found[n] = most, places  # drafters that ask the same share the answer
        return places[:most]

    def following(self, place: int, length: int) -> list[int]:
        """What came after ``place``. A place so close that its text runs into the end means that the
        text repeats itself with that distance as its period: then it goes round again."""
        follow = self.tokens[place : place + length]
        return follow if len(follow) == length else (follow * (length // len(follow) + 1))[:length]


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    n = min(len(a), len(b))
    low, high = 0, n
    if a[:n] == b[:n]:
        return n
    # Slices compare at C speed, so halving beats a loop even on short sequences.
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low if low == n or a[low] != b[low] else low + 1
