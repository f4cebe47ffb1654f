"""Which slot a request takes, and what of it is kept."""

from __future__ import annotations

import pytest

from app.slots import Slots
from tests.drafting.toy import ToyTarget

HEAD = [1, 2, 3, 4]  # as all chats begin


@pytest.fixture
def slots() -> Slots:
    return Slots(ToyTarget(), 3)


def use(slots: Slots, tokens: list[int]) -> int:
    slot, _ = slots.take(tokens, False)
    slots._target.kv[slot] = list(tokens)  # type: ignore[attr-defined]  as the loop would fill it
    slots.give_back(slot, tokens)
    return slot


def test_a_conversation_goes_on_where_it_was(slots: Slots) -> None:
    long = HEAD + [9] * 50
    first = use(slots, long)
    others = {use(slots, [*HEAD, n, n]) for n in (5, 6)}
    assert first not in others
    slot, computed = slots.take([*long, 7, 8], False)
    assert (slot, computed) == (first, len(long))


def test_a_new_chat_takes_the_slot_that_was_used_longest_ago(slots: Slots) -> None:
    used = [use(slots, HEAD + [n] * 20) for n in (5, 6, 7)]
    assert sorted(used) == [0, 1, 2]
    assert use(slots, HEAD + [8] * 20) == used[0]
    assert use(slots, HEAD + [9] * 20) == used[1]


def test_an_edited_message_keeps_what_is_before_it(slots: Slots) -> None:
    long = HEAD + [9] * 50
    first = use(slots, long)
    slot, computed = slots.take([*long[:40], 8, 8], False)
    assert (slot, computed) == (first, 40)


def test_free_slots_are_counted_and_the_last_token_is_computed_again(slots: Slots) -> None:
    assert slots.n_free == 3
    slot, computed = slots.take(HEAD, False)
    assert (slots.n_free, computed) == (2, 0)
    slots.give_back(slot, [])
    assert slots.n_free == 3
    slot = use(slots, HEAD)
    assert slots.take(HEAD, False) == (slot, len(HEAD) - 1)
