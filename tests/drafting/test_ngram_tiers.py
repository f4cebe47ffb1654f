"""The cache drafter's three tiers, held to llama.cpp's rules written out over plain counters."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting.follower_counts import FollowerCounts
from drafting.lookup_file import LookupFileError, read_lookup_file
from drafting.ngram_cache import NgramCache
from drafting.parameters import CacheParameters
from tests.drafting.past import held
from tests.drafting.test_chain import no_draw

Gram = tuple[int, ...]
Counts = Mapping[Gram, Counter[int]]

LAX = {1: (2, 66), 2: (2, 50), 3: (1, 50), 4: (1, 50)}
STRICT = {1: (4, 75), 2: (3, 66), 3: (2, 66), 4: (2, 66)}


def counted(texts: Sequence[Sequence[int]], sizes: Sequence[int]) -> dict[Gram, Counter[int]]:
    counts: dict[Gram, Counter[int]] = {}
    for text in texts:
        for n in sizes:
            for end in range(n, len(text)):
                counts.setdefault(tuple(text[end - n : end]), Counter())[text[end]] += 1
    return counts


def written(counts: Counts) -> bytes:
    """The file that llama.cpp would write."""
    data = b""
    for gram, followers in counts.items():
        data += struct.pack("<4i", *gram, *[-1] * (4 - len(gram))) + struct.pack("<i", len(followers))
        data += b"".join(struct.pack("<2i", *pair) for pair in followers.items())
    return data


def static_of(texts: Sequence[Sequence[int]]) -> FollowerCounts:
    return read_lookup_file(written(counted(texts, [2])), 1000)


def outcomes(
    counts: Counts, tail: Sequence[int], n: int, proof: Mapping[int, tuple[int, int]], static: Counter[int]
) -> set[int | None]:
    """What may be drafted from the n-gram or a shorter one: more than one token where several weigh
    the same, None where nothing is sure enough."""
    if n == 0:
        return {None}
    followers = counts.get(tuple(tail[-n:]), Counter()) if len(tail) >= n else Counter[int]()
    shorter = outcomes(counts, tail, n - 1, proof, static)
    if not followers:
        return shorter
    weight = {t: c * (100 * static[t] or 1) for t, c in followers.items()}
    seen, (least, percent) = followers.total(), proof[n]
    found: set[int | None] = set()
    for token in (t for t, w in weight.items() if w == max(weight.values())):
        sure = seen >= least and 100 * followers[token] >= percent * seen
        found |= {token} if sure else shorter
    return found


token = st.integers(0, 4)
repeated = st.tuples(st.lists(token, min_size=2, max_size=8), st.integers(1, 5)).map(lambda x: [x[0]] * x[1])
texts = st.lists(repeated, max_size=3).map(lambda groups: [text for group in groups for text in group])


@settings(max_examples=300)
@given(st.lists(token, min_size=2, max_size=12), texts, texts, st.booleans())
def test_tiers_speak_in_llama_cpps_order_and_with_its_proof(
    text: list[int], answers: list[list[int]], corpus: list[list[int]], has_static: bool
) -> None:
    context, learned = counted([text], range(1, 5)), counted(answers, range(1, 5))
    static = counted(corpus, [2]) if has_static else {}
    drafter = NgramCache(past=held(answers), static=static_of(corpus) if static else None)
    drafter.configure(CacheParameters(p_min=0.0))  # unlikely drafts are counted as well
    drafter.begin(text)
    drafted = drafter.propose(6, no_draw)
    said = list(text)
    for got in [*drafted.tokens, None][:6]:
        weights = static.get(tuple(said[-2:]), Counter[int]())
        allowed = outcomes(context, said, 4, LAX, weights)
        if None in allowed:
            allowed = allowed - {None} | outcomes(learned, said, 4, STRICT, weights)
        if None in allowed:
            allowed = allowed - {None} | outcomes({tuple(said[-2:]): weights}, said, 2, LAX, Counter())
        assert got in allowed
        if got is not None:
            said.append(got)
    assert all(0 < c < 1 for c in drafted.confidence or ())


def proposal(drafter: NgramCache, text: list[int]) -> list[int]:
    drafter.configure(CacheParameters(p_min=0.0))
    drafter.begin(text)
    return drafter.propose(8, no_draw).tokens


ANSWER = [30, 31, 32, 33, 34, 35]


def test_earlier_answers_help_where_this_chat_says_nothing() -> None:
    assert proposal(NgramCache(), [1, 30, 31, 32, 33]) == []
    # once is no proof, twice is
    assert proposal(NgramCache(past=held([ANSWER])), [1, 30, 31, 32, 33]) == []
    assert proposal(NgramCache(past=held([ANSWER, ANSWER])), [1, 30, 31, 32, 33]) == [34, 35]


def test_this_chat_comes_before_earlier_answers() -> None:
    text = [30, 31, 32, 33, 99, 1, 30, 31, 32, 33]
    assert proposal(NgramCache(past=held([ANSWER] * 3)), text)[:1] == [99]


def test_earlier_answers_come_before_the_static_table() -> None:
    static = static_of([[32, 33, 70], [32, 33, 70]])
    drafter = NgramCache(past=held([ANSWER, ANSWER]), static=static)
    assert proposal(drafter, [1, 30, 31, 32, 33])[:1] == [34]
    assert proposal(drafter, [1, 32, 33])[:1] == [70]


def test_without_answers_and_table_nothing_changes() -> None:
    text = [1, 2, 3, 4, 5, 1, 2, 3]
    plain, empty = NgramCache(), NgramCache(past=held([]))
    plain.begin(text)
    empty.begin(text)
    assert empty.propose(8, no_draw) == plain.propose(8, no_draw)


def test_a_static_table_drafts_last_and_has_a_say_before() -> None:
    static = static_of([[5, 6, 7], [5, 6, 7]])
    assert proposal(NgramCache(static=static), [5, 6]) == [7]
    # 8 and 7 followed in this chat, both as often: the table decides
    text = [5, 6, 7, 1, 5, 6, 8, 2, 5, 6]
    assert proposal(NgramCache(), text)[:1] == [8]
    assert proposal(NgramCache(static=static), text)[:1] == [7]


def test_a_table_that_says_otherwise_silences_a_favourite() -> None:
    """Then nobody is sure enough, and the table itself drafts."""
    text = [5, 6, 7, 1, 5, 6, 7, 2, 5, 6, 8, 3, 5, 6]
    for of_7, of_8, expected in ((2, 3, 7), (1, 3, 8), (0, 3, 8), (3, 0, 7)):
        static = static_of([[5, 6, 7]] * of_7 + [[5, 6, 8]] * of_8)
        assert proposal(NgramCache(static=static), text)[:1] == [expected]
    answers = [[32, 33, 34]] * 3 + [[32, 33, 35]]
    for of_34, of_35, expected in ((1, 2, 34), (1, 9, 35)):
        static = static_of([[32, 33, 34]] * of_34 + [[32, 33, 35]] * of_35)
        assert proposal(NgramCache(past=held(answers), static=static), [1, 32, 33])[:1] == [expected]


GOOD = written({(5, 6): Counter({7: 2, 8: 1}), (6, 7): Counter({9: 4})})


def test_a_lookup_file_is_read_as_it_was_written() -> None:
    static = read_lookup_file(GOOD + written({(5,): Counter({6: 1}), (1, 2, 3): Counter({4: 1})}), 100)
    assert len(static) == 2
    assert proposal(NgramCache(static=static), [5, 6]) == [7, 9]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no contexts"),
        (written({(5,): Counter({6: 1})}), "no contexts"),
        (GOOD[:-2], "middle"),
        (GOOD[:-4], "damaged or ends too early"),
        (GOOD[:12], "too early"),
        (GOOD + struct.pack("<5i", 1, 2, -1, -1, 0), "damaged"),
        (GOOD + struct.pack("<5i", 1, 2, -1, -1, -3), "damaged"),
        (GOOD + struct.pack("<5i", 1, 2, -1, -1, 2**31 - 1), "damaged"),
        (written({(5, 6): Counter({7: 0})}), "damaged"),
        (written({(5, 6): Counter({-7: 1})}), "damaged"),
        (written({(5, 6): Counter({100: 1})}), "another vocabulary"),
        (written({(5, 100): Counter({6: 1})}), "another vocabulary"),
        (bytes(range(256)) * 4, "damaged"),
    ],
)
def test_a_lookup_file_that_is_none_is_refused_with_a_reason(data: bytes, words: str) -> None:
    with pytest.raises(LookupFileError, match=words):
        read_lookup_file(data, 100)
