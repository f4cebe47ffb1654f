"""The n-gram trie, held to counting by scanning the text."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafting import ngram_trie
from drafting.ngram_trie import DEPTH, ROOT, NgramTrie

texts = st.lists(st.integers(0, 2), max_size=40)
edits = st.lists(st.tuples(st.integers(0, 60), texts), max_size=6)


def followers(text: list[int]) -> dict[tuple[int, ...], list[int]]:
    """By context: what followed it, in order."""
    known: dict[tuple[int, ...], list[int]] = {}
    for end in range(len(text)):
        for n in range(1, min(DEPTH, end) + 1):
            known.setdefault(tuple(text[end - n : end]), []).append(text[end])
    return known


def check(trie: NgramTrie, text: list[int]) -> None:
    for context, tokens in followers(text).items():
        node = ROOT
        for token in context:
            node = trie.child(node, token)
        counts = Counter(tokens)
        most = max(counts.values())
        newest = next(token for token in reversed(tokens) if counts[token] == most)
        assert trie.token(trie.favourite[node]) == newest
        assert trie.count(trie.favourite[node]) == most
        assert trie.seen(node, len(context)) == len(tokens)
        assert {t: trie.followed(node, t) for t in range(3)} == {t: counts[t] for t in range(3)}
    assert trie.depth == min(DEPTH, len(text))


@given(edits)
def test_counts_are_those_of_a_scan_after_any_edits(edits: list[tuple[int, list[int]]]) -> None:
    text: list[int] = []
    trie = NgramTrie(text)
    for keep, new in edits:
        if keep < len(text):
            trie.cut(keep)
            del text[keep:]
        text.extend(new)
        trie.grow()
        check(trie, text)


@given(texts, texts, st.integers(0, 4))
def test_following_a_token_leads_to_the_longest_known_context(
    text: list[int], then: list[int], unknown: int
) -> None:
    trie = NgramTrie(list(text))
    node, depth = trie.context, trie.depth
    said = list(text)
    for token in [*then, unknown]:
        said.append(token)
        node, depth = trie.follow(node, depth, token)
        known = [
            n
            for n in range(min(DEPTH, len(said)) + 1)
            if any(text[i : i + n] == said[len(said) - n :] for i in range(len(text) - n + 1))
        ]
        assert depth == max(known)
        expected = ROOT
        for token in said[len(said) - depth :]:
            expected = trie.child(expected, token)
        assert node == expected


def test_what_shares_a_slot_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_trie, "_slot", lambda key: 0)
    text = [0, 1, 2, 0, 1, 1, 0, 1, 2, 2]
    trie = NgramTrie(text)
    check(trie, text)
    trie.cut(7)
    del text[7:]
    check(trie, text)
