"""How often each token followed each of the last 1 to 4 tokens of a text: a trie of its n-grams."""

from __future__ import annotations

from array import array

DEPTH = 4
"""Tokens of the longest context."""
ROOT = 0

_FACTOR = 6364136223846793005  # Knuth's MMIX multiplier
_SLOTS = 1 << 18
_TOKEN = (1 << 32) - 1


class NgramTrie:
    """All n-grams of up to ``DEPTH`` + 1 tokens of a text, counted while it grows.

    A node is an n-gram: its parent lacks the last token, its link lacks the first (a suffix trie cut
    off at a depth). So the children of a context are its followers. Nodes lie in flat arrays and are
    found by hash chains: about 24 bytes for each different n-gram, and constant time, as the links
    lead from one context to the next without looking it up.
    """

    def __init__(self, tokens: list[int]) -> None:
        """Count ``tokens``, which its owner extends (then calls ``grow``) and cuts (``cut`` first)."""
        self._tokens = tokens
        self._clear()
        self.grow()

    def _clear(self) -> None:
        self._head = array("i", [-1]) * _SLOTS
        # By node: parent and last token, the node before in its slot, link, how often it occurred,
        # and the newest of its most frequent children.
        self._key = array("q", [-1])
        self._older = array("i", [-1])
        self.link = array("i", [-1])
        self._count = array("i", [0])
        self.favourite = array("i", [-1])
        # For each token taken in, what the favourites of its DEPTH + 1 contexts were before.
        self._before = array("i")
        self._ends = [ROOT]  # the nodes of the last 0 to DEPTH tokens

    @property
    def context(self) -> int:
        """The node of the last ``DEPTH`` tokens, or of all where there are fewer."""
        return self._ends[-1]

    @property
    def depth(self) -> int:
        """Tokens of ``context``."""
        return len(self._ends) - 1

    def seen(self, node: int, depth: int) -> int:
        """How often something followed the context ``node`` of ``depth`` tokens."""
        # Where the text ends, nothing has followed yet.
        return self._count[node] - (depth < len(self._ends) and self._ends[depth] == node)

    def count(self, node: int) -> int:
        """How often the n-gram itself occurred."""
        return self._count[node]

    def followed(self, node: int, token: int) -> int:
        """How often ``token`` followed the context ``node``."""
        child = self.child(node, token)
        return self._count[child] if child >= 0 else 0

    def token(self, node: int) -> int:
        """The last token of the n-gram."""
        return self._key[node] & _TOKEN

    def child(self, node: int, token: int) -> int:
        """The n-gram ``node`` with one more token, -1 if it never occurred."""
        key = node << 32 | token
        child = self._head[_slot(key)]
        while child >= 0 and self._key[child] != key:
            child = self._older[child]
        return child

    def follow(self, node: int, depth: int, token: int) -> tuple[int, int]:
        """The longest known context, and its tokens, once ``token`` has followed ``node``."""
        while node >= 0:
            child = self.child(node, token)
            if child >= 0:
                return (child, depth + 1) if depth < DEPTH else (self.link[child], DEPTH)
            node, depth = self.link[node], depth - 1
        return ROOT, 0

    def grow(self) -> None:
        """Take in the tokens added since the last call."""
        self._take_in(len(self._tokens))

    def _take_in(self, length: int) -> None:
        tokens, count, favourite = self._tokens, self._count, self.favourite
        key, before = self._key, self._before
        for token in tokens[len(before) // (DEPTH + 1) : length]:
            ends = [ROOT]
            shorter = ROOT
            for parent in self._ends:
                node = self.child(parent, token)
                if node < 0:
                    node = len(key)
                    slot = _slot(parent << 32 | token)
                    key.append(parent << 32 | token)
                    self._older.append(self._head[slot])
                    self._head[slot] = node
                    self.link.append(shorter)
                    count.append(0)
                    favourite.append(-1)
                count[node] += 1
                known = favourite[parent]
                before.append(known)
                if known < 0 or count[node] >= count[known]:
                    favourite[parent] = node
                ends.append(node)
                shorter = node
            # near the beginning there are fewer contexts, but as many entries for each token
            before.extend([-1] * (DEPTH + 1 - len(self._ends)))
            self._ends = ends[: DEPTH + 1]

    def cut(self, length: int) -> None:
        """Forget all but the first ``length`` tokens; the owner drops them afterwards."""
        end = len(self._before) // (DEPTH + 1)
        if length < end // 2:
            self._clear()
            self._take_in(length)
            return
        while end > length:
            nodes = self._nodes(end)
            for depth in range(len(nodes) - 1, 0, -1):
                node = nodes[depth]
                self.favourite[self._key[node] >> 32] = self._before[depth - DEPTH - 2]
                self._count[node] -= 1
                if not self._count[node]:
                    self._forget_newest(node)
            del self._before[-DEPTH - 1 :]
            end -= 1
        self._ends = self._nodes(end)[: DEPTH + 1]

    def _forget_newest(self, node: int) -> None:
        """Drop the node that was made last."""
        self._head[_slot(self._key[node])] = self._older[node]
        for column in (self._key, self._older, self.link, self._count, self.favourite):
            column.pop()

    def _nodes(self, end: int) -> list[int]:
        """The nodes of the last 0 to ``DEPTH`` + 1 of the first ``end`` tokens."""
        node = ROOT
        for token in self._tokens[max(0, end - DEPTH - 1) : end]:
            node = self.child(node, token)
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self.link[node]
        return nodes[::-1]


def _slot(key: int) -> int:
    return (key * _FACTOR >> 40) & (_SLOTS - 1)
