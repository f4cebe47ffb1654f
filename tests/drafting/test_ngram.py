"""The n-gram drafters: what they propose, and that their past never shows where it should not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import ngram_mod
from drafting.drafter import IndexDrafter
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.ngram_trie import DEPTH
from drafting.suffix import Suffix
from tests.drafting.test_chain import no_draw

Make = Callable[[], IndexDrafter | NgramMod]


def small_mod(table: ModTable | None = None) -> NgramMod:
    return NgramMod(table or ModTable(n=3, bits=16), shortest=2, longest=20)


MAKERS: dict[str, Make] = {
    "cache": NgramCache,
    "simple": lambda: NgramSimple(n=3, m=20),
    "map-k": lambda: NgramMap(n=3, m=20),
    "map-k4v": lambda: NgramMapK4V(n=3, m=20),
    "mod": small_mod,
    "suffix": Suffix,
}
every_drafter = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
# with mod's table fresh, as it is shared on purpose
# map-k4v holds its tongue where continuations are even
DECIDING = [name for name in MAKERS if name != "map-k4v"]
deciding_drafters = pytest.mark.parametrize("make", [MAKERS[name] for name in DECIDING], ids=DECIDING)
HISTORY = [name for name in MAKERS if name != "mod"]
history_drafters = pytest.mark.parametrize("make", [MAKERS[name] for name in HISTORY], ids=HISTORY)


def proposal(drafter: IndexDrafter | NgramMod, limit: int = 8) -> list[int]:
    return drafter.propose(limit, no_draw).tokens


def after(make: Make, tokens: list[int], limit: int = 8) -> list[int]:
    drafter = make()
    drafter.begin(tokens)
    return proposal(drafter, limit)


# ---- all of them

REPEATED = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4]


@every_drafter
def test_what_followed_before_is_proposed(make: Make) -> None:
    assert after(make, REPEATED, 4) == [5, 6, 7, 8]


@every_drafter
def test_nothing_is_proposed_from_a_history_without_repetition(make: Make) -> None:
    assert after(make, list(range(50))) == []
    assert after(make, []) == []
    assert after(make, [1]) == []
    assert after(make, [1, 2]) == []


@deciding_drafters
@pytest.mark.parametrize("limit", [1, 2, 3, 8, 15])
def test_limit_is_respected(make: Make, limit: int) -> None:
    assert len(after(make, REPEATED * 3, limit)) == limit


@every_drafter
@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_a_repeating_text_goes_on_repeating(make: Make, period: int) -> None:
    unit = list(range(10, 10 + period))
    text = unit * 12
    expected = [unit[i % period] for i in range(12)]
    assert after(make, text, 12) == expected


@deciding_drafters
def test_newest_match_wins(make: Make) -> None:
    twice = [1, 2, 3, 4, 50, 51, 52, 1, 2, 3, 4, 60, 61, 62, 1, 2, 3, 4]
    assert after(make, twice, 2) == [60, 61]


@every_drafter
def test_committed_tokens_are_learned_one_by_one(make: Make) -> None:
    """All at once, or in pieces of any size: the same drafts."""
    drafter = make()
    drafter.begin(REPEATED[:2])
    for start in range(2, len(REPEATED), 3):
        drafter.commit(REPEATED[start : start + 3])
    assert proposal(drafter) == after(make, REPEATED)


@every_drafter
def test_proposing_changes_nothing(make: Make) -> None:
    drafter = make()
    drafter.begin(REPEATED)
    first = proposal(drafter)
    assert proposal(drafter, 3) == first[:3]
    assert proposal(drafter) == first


TEXT = st.lists(st.integers(0, 3), max_size=60)


@history_drafters
@given(before=TEXT, now=TEXT, more=TEXT)
def test_a_new_request_equals_a_fresh_drafter(
    make: Make, before: list[int], now: list[int], more: list[int]
) -> None:
    """A12: after a longer, a shorter or any other history."""
    used = make()
    used.begin(before)
    proposal(used)
    used.commit(more)
    used.begin(now)
    fresh = make()
    fresh.begin(now)
    assert proposal(used) == proposal(fresh)
    used.commit(more)
    fresh.commit(more)
    assert proposal(used) == proposal(fresh)


@history_drafters
@given(shared=TEXT, old=TEXT, new=TEXT)
def test_an_edited_or_extended_history_equals_a_fresh_drafter(
    make: Make, shared: list[int], old: list[int], new: list[int]
) -> None:
    used = make()
    used.begin(shared + old)
    for request in (shared + new, shared, shared + old, [], shared + new + old):
        used.begin(request)
        assert proposal(used) == after(make, request)


@given(chats=st.lists(TEXT, max_size=5), now=TEXT)
def test_mod_knows_of_other_chats_only_through_the_table(chats: list[list[int]], now: list[int]) -> None:
    """A12 for mod: its own state after many requests equals that of a fresh one."""
    used = small_mod()
    other_table = ModTable(n=3, bits=16)
    for chat in chats:
        used.begin(chat)
        NgramMod(other_table).begin(chat)
    used.begin(now)
    fresh = NgramMod(other_table, shortest=2, longest=20)
    fresh.begin(now)
    assert used.history == fresh.history
    assert used._key == fresh._key
    if not any(now == chat[: len(now)] or chat == now[: len(chat)] for chat in chats):
        assert proposal(used) == proposal(fresh)


# ---- cache


def test_cache_asks_less_proof_of_longer_contexts() -> None:
    # 9 -> 5 was seen once: too little for n = 1
    assert after(NgramCache, [9, 5, 1, 9]) == []
    # twice is enough, where it always came
    assert after(NgramCache, [9, 5, 1, 9, 5, 2, 9], 1) == [5]
    # three tokens of context need one sighting
    assert after(NgramCache, [1, 2, 3, 7, 8, 1, 2, 3], 1) == [7]


def test_cache_drafts_only_while_the_share_is_high_enough() -> None:
    # after 9 came 5, 6, 5, 6: half is too little for n = 1
    assert after(NgramCache, [9, 5, 1, 9, 6, 2, 9, 5, 3, 9, 6, 4, 9]) == []
    # 5, 5, 6, 5: three quarters are enough
    assert after(NgramCache, [9, 5, 1, 9, 5, 2, 9, 6, 3, 9, 5, 4, 9], 1) == [5]


@given(text=st.lists(st.integers(0, 2), max_size=80), limit=st.integers(1, 6))
def test_cache_equals_counting_from_scratch(text: list[int], limit: int) -> None:
    assert after(NgramCache, text, limit) == counted(text, limit)


def counted(text: list[int], limit: int) -> list[int]:
    """The method in its plainest form: count followers by scanning the whole history."""
    needed = {1: (2, 0.66), 2: (2, 0.5), 3: (1, 0.5), 4: (1, 0.5)}

    def favourite(tail: list[int]) -> int | None:
        for n in range(min(DEPTH, len(tail)), 0, -1):
            places = [i for i in range(n, len(text)) if text[i - n : i] == tail[-n:]]
            counts = Counter(text[i] for i in places)
            seen, share = needed[n]
            if not places:
                continue
            best = max(counts, key=lambda t: (counts[t], max(i for i in places if text[i] == t)))
            if len(places) >= seen and counts[best] >= share * len(places):
                return best
        return None

    draft: list[int] = []
    while len(draft) < limit and (token := favourite((text + draft)[-DEPTH:])) is not None:
        draft.append(token)
    return draft


# ---- map-k


@given(text=st.lists(st.integers(0, 2), max_size=60), n=st.integers(1, 4), hits=st.integers(1, 3))
def test_map_equals_scanning_for_the_newest_match(text: list[int], n: int, hits: int) -> None:
    matches = [i for i in range(n, len(text)) if text[i - n : i] == text[len(text) - n :]]
    expected: list[int] = []
    if len(text) >= n and len(matches) >= hits:
        follow = text[matches[-1] :]
        expected = [follow[i % len(follow)] for i in range(5)]
    assert after(lambda: NgramMap(n=n, m=5, min_hits=hits), text) == expected


def test_map_drafts_at_most_m() -> None:
    assert after(lambda: NgramMap(n=2, m=3), REPEATED) == [5, 6, 7]


def test_map_is_not_fooled_by_equal_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a factor of 1 the order of tokens does not matter to the hash: 1 2 3 and 3 2 1 collide."""
    monkeypatch.setattr("drafting.history._FACTOR", 1)
    assert after(lambda: NgramMap(n=3), [1, 2, 3, 7, 8, 9, 3, 2, 1]) == []
    assert after(lambda: NgramMap(n=3), [1, 2, 3, 7, 8, 9, 1, 2, 3], 2) == [7, 8]


def test_map_waits_for_as_many_hits_as_it_was_told() -> None:
    once = [1, 2, 3, 7, 8, 9, 1, 2, 3]
    assert after(lambda: NgramMap(n=3, min_hits=2), once) == []
    assert after(lambda: NgramMap(n=3, min_hits=2), [*once, 7, 5, 1, 2, 3], 2) == [7, 5]
    assert after(lambda: NgramSimple(n=3), once, 2) == [7, 8]


def test_map_k4v_drafts_when_one_continuation_dominates() -> None:
    """It must be more than twice as frequent as the other three together."""

    def seen(*nexts: int) -> list[int]:
        return [token for n in nexts for token in (1, 2, 3, n, 90)] + [1, 2, 3]

    def drafted(*nexts: int) -> list[int]:
        return after(lambda: NgramMapK4V(n=3), seen(*nexts), 1)

    assert drafted(7) == [7]
    assert drafted(7, 7, 8) == []
    assert drafted(7, 7, 7, 8) == [7]
    assert drafted(*[8] * 20, 4, 5, 6, 7) == []  # the newest four count, a fifth does not
    assert drafted(8, *[7] * 5, 8) == [7]


def test_suffix_follows_the_longest_match_and_says_how_sure_it_is() -> None:
    """The newest match of one token is beaten by an older one of five."""
    text = [1, 2, 3, 4, 5, 60, 61, 8, 5, 70, 71, 9, 1, 2, 3, 4, 5]
    draft = Suffix()
    draft.begin(text)
    got = draft.propose(2, no_draw)
    assert got.tokens == [60, 61]
    assert got.confidence is not None and 0.5 < got.confidence[0] <= got.confidence[1] < 1


def test_suffix_is_surer_where_matches_agree_than_where_one_contradicts() -> None:
    def confidence(*nexts: int) -> float:
        drafter = Suffix()
        drafter.begin([token for n in nexts for token in (1, 2, 3, n, 90 + n)] + [1, 2, 3])
        draft = drafter.propose(1, no_draw)
        assert draft.confidence is not None
        return draft.confidence[0]

    assert confidence(7, 7, 7) > confidence(7) > confidence(8, 7)


@every_drafter
@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 20))
def test_a_draft_has_a_confidence_for_each_token_or_for_none(make: Make, text: list[int], limit: int) -> None:
    drafter = make()
    drafter.begin(text)
    draft = drafter.propose(limit, no_draw)
    assert len(draft) <= limit
    assert draft.confidence is None or len(draft.confidence) == len(draft)
    assert all(0 < c < 1 for c in draft.confidence or ())


# ---- mod


def test_mod_needs_a_long_enough_walk() -> None:
    table = ModTable(n=4, bits=16)
    NgramMod(table).begin([1, 2, 3, 4, 5, 6, 7])
    for shortest, expected in ((3, [5, 6, 7]), (4, [])):
        drafter = NgramMod(table, shortest=shortest, longest=8)
        drafter.begin([1, 2, 3, 4])
        assert proposal(drafter) == expected


def test_mod_walk_ends_at_its_longest() -> None:
    """Also where it goes round in its own draft, past the n tokens it began with."""
    text = [*range(40), *range(10)]
    drafter = NgramMod(ModTable(n=4, bits=16), shortest=30, longest=64)
    drafter.begin(text)
    assert proposal(drafter, 100) == [*range(10, 40), *range(34)]


def test_mod_limit_is_not_its_shortest_walk() -> None:
    """The walk must be long to be trusted; how much of it fits into the pass is another matter."""
    text = list(range(60)) * 2
    assert after(lambda: NgramMod(ModTable(n=24, bits=16)), text, 8) == list(range(8))


def test_mod_learns_from_other_chats() -> None:
    table = ModTable(n=3, bits=16)
    first, second = small_mod(table), small_mod(table)
    first.begin(list(range(20)))
    second.begin([5, 6, 7])
    assert proposal(second, 4) == [8, 9, 10, 11]
    assert second.history == [5, 6, 7]


def test_mod_collisions_only_suggest(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys in one slot: it drafts nonsense, within its bounds, and goes on."""
    monkeypatch.setattr(ModTable, "_slot", lambda self, key: 0)
    drafter = small_mod()
    drafter.begin(list(range(30)))
    assert proposal(drafter, 5) == [29] * 5
    drafter.commit([1, 2, 3])
    assert proposal(drafter, 5) == [3] * 5


@given(st.lists(st.integers(0, 2**31 - 1), max_size=30), st.integers(1, 6))
def test_mod_key_depends_on_the_last_n_tokens_alone(tokens: list[int], n: int) -> None:
    drafter = NgramMod(ModTable(n=n, bits=4))
    drafter.begin(tokens)
    fresh = NgramMod(ModTable(n=n, bits=4))
    fresh.begin(tokens[-n:])
    assert drafter._key == fresh._key


def test_mod_table_starts_anew_at_a_quarter_full() -> None:
    table = ModTable(n=2, bits=6)  # 64 slots
    slots = {table._slot(key): key for key in range(1000)}
    keys = list(slots.values())[:17]
    for key in keys[:16]:
        table.put(key, 7)
    assert [table.get(key) for key in keys[:16]] == [7] * 16
    table.put(keys[0], 8)  # a known slot takes no room
    assert table.get(keys[1]) == 7
    table.put(keys[16], 9)
    assert [table.get(key) for key in keys] == [None] * 16 + [9]


def test_mod_table_starts_anew_after_five_poor_drafts() -> None:
    table = ModTable(n=2, bits=8)
    drafter = small_mod(table)
    table.put(1, 7)
    for _ in range(ngram_mod._POOR_LIMIT - 1):
        drafter.judged(8, 3)
    drafter.judged(8, 4)  # half is good enough: the count starts over
    for _ in range(ngram_mod._POOR_LIMIT - 1):
        drafter.judged(8, 0)
    assert table.get(1) == 7
    drafter.judged(8, 3)
    assert table.get(1) is None
    table.put(1, 7)
    drafter.judged(8, 0)
    assert table.get(1) == 7


def test_mod_goes_on_after_its_table_was_emptied() -> None:
    drafter = small_mod()
    drafter.begin(REPEATED)
    drafter._table.clear()
    assert proposal(drafter) == []
    drafter.commit(REPEATED * 2)
    assert proposal(drafter, 3) == [5, 6, 7]
