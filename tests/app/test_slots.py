"""Which slot a request takes, and what of it is kept."""

from __future__ import annotations

import pytest

from app.worker.prompt_cache import PromptCache
from app.worker.slots import Slots
from tests.drafting.toy import ToyTarget

HEAD = [1, 2, 3, 4]  # as all chats begin


@pytest.fixture
def slots() -> Slots:
    return Slots(ToyTarget(), 3, PromptCache(0, lambda: 0))


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


# ---- with a prompt cache

BYTES = 2000  # a token of the toy's takes one


def cached(count: int, most: int = BYTES, free: int = 2 * BYTES) -> tuple[Slots, PromptCache]:
    cache = PromptCache(most, lambda: free)
    return Slots(ToyTarget(), count, cache), cache


def conversation(n: int, length: int = 300) -> list[int]:
    return HEAD + [n] * length


def held(slots: Slots) -> dict[int, list[int]]:
    target = slots._target
    assert isinstance(target, ToyTarget)
    return target.kv


@pytest.mark.parametrize("count", [1, 2, 4])
def test_more_conversations_than_slots_take_turns(count: int) -> None:
    slots, cache = cached(count)
    chats = [conversation(n) for n in range(5, 11)]
    for chat in chats:
        use(slots, chat)
    for _ in range(2):
        for chat in chats:
            chat += [1, 2, 3]
            slot, computed = slots.take(chat, False)
            assert computed == len(chat) - 3
            assert held(slots)[slot] == chat[:computed]
            held(slots)[slot] = list(chat)
            slots.give_back(slot, chat)
    assert cache.n_bytes <= BYTES


def test_what_is_left_longest_goes_when_there_are_too_many() -> None:
    slots, cache = cached(1, most=700)
    chats = [conversation(n) for n in (5, 6, 7, 8)]
    for chat in chats:
        use(slots, chat)
    assert cache.n_bytes <= 700
    assert slots.take([*chats[0], 1], False)[1] == len(HEAD), "6 and 7 are kept, and 8 is in the slot"


def test_a_conversation_with_others_is_alone_in_memory() -> None:
    """Attention runs over what all slots hold: no more of the others stays than it begins with itself."""
    slots, _ = cached(3)
    used = [use(slots, conversation(n)) for n in (5, 6)]
    assert len(set(used)) == 2
    slot, computed = slots.take([*HEAD, 9], False)
    assert computed == len(HEAD)
    assert [held(slots)[other] for other in used if other != slot] == [HEAD] * (2 - (slot in used))
    held(slots)[slot] = [*HEAD, 9]
    slots.give_back(slot, [*HEAD, 9])
    assert slots.take([8, 8], False)[1] == 0
    assert HEAD in [held(slots)[other] for other in used]  # too little to be worth a copy


def test_exact_mode_relies_on_no_more_of_a_cut_slot_than_is_left() -> None:
    slots, _ = cached(2)
    chat = conversation(5)
    slot, _ = slots.take(chat, True)
    held(slots)[slot] = list(chat)
    slots.give_back(slot, chat, read=len(chat))
    other = use(slots, conversation(6))
    assert other != slot and held(slots)[slot] == HEAD
    assert slots._read == {slot: len(HEAD)}


def test_what_cannot_be_saved_whole_stays_where_it_is() -> None:
    slots, cache = cached(2)
    slots._target.saves_all = False  # type: ignore[misc]
    first = use(slots, conversation(5))
    use(slots, conversation(6))
    assert held(slots)[first] == conversation(5) and len(cache) == 0


def test_what_cannot_be_cut_comes_back_only_where_it_need_not_be() -> None:
    slots, _ = cached(1)
    slots._target.saves_all = False  # type: ignore[misc]
    chat = conversation(5)
    use(slots, chat)
    use(slots, conversation(6))
    slot, computed = slots.take([*chat[:250], 1, 2], False)
    assert computed == len(HEAD)
    slots.give_back(slot, HEAD)
    assert slots.take([*chat, 1, 2], False)[1] == len(chat)


def test_a_slot_in_use_is_left_alone() -> None:
    slots, _ = cached(2)
    busy, _ = slots.take(conversation(5), False)
    held(slots)[busy] = conversation(5)
    other = use(slots, conversation(6))
    assert other != busy and use(slots, conversation(7)) == other
    assert held(slots)[busy] == conversation(5)


def test_a_common_beginning_is_taken_from_the_cache_and_stays_there() -> None:
    """Agents begin alike, with long instructions."""
    slots, _ = cached(1)
    instructions = conversation(5)
    use(slots, instructions + [6] * 200)
    use(slots, conversation(9))
    slot, computed = slots.take(instructions + [7] * 200, False)
    assert computed == len(instructions)
    held(slots)[slot] = instructions + [7] * 200
    slots.give_back(slot, instructions + [7] * 200)
    assert slots.take([*instructions, *[6] * 200, 1], False)[1] == len(instructions) + 200


@pytest.mark.parametrize(("most", "free"), [(0, 2 * BYTES), (BYTES, 0), (100, 2 * BYTES)])
def test_without_room_nothing_is_kept(most: int, free: int) -> None:
    slots, cache = cached(1, most, free)
    use(slots, conversation(5))
    use(slots, conversation(6))
    assert len(cache) == 0
    assert slots.take([*conversation(5), 1], False)[1] == len(HEAD)


def test_few_tokens_are_sooner_read_again() -> None:
    slots, cache = cached(1)
    use(slots, conversation(5, 20))
    use(slots, conversation(6, 20))
    assert len(cache) == 0


def test_an_answer_that_is_given_again_is_not_kept_with_its_long_chat() -> None:
    slots, cache = cached(1)
    chat = conversation(5, 900)
    use(slots, chat + [6] * 40)
    use(slots, chat + [7] * 40)
    assert len(cache) == 0
    use(slots, chat[:400] + [8] * 40)
    assert len(cache) == 1, "half of the chat is more"


def test_agents_with_the_same_instructions_keep_their_own_words() -> None:
    slots, _ = cached(2)
    instructions = conversation(5)
    agents = [[*instructions, *[n] * 60] for n in (6, 7)]
    for agent in agents:
        use(slots, agent)
    for _ in range(3):
        for agent in agents:
            agent += [1] * 10
            slot, computed = slots.take(agent, False)
            assert computed == len(agent) - 10
            held(slots)[slot] = list(agent)
            slots.give_back(slot, agent)


def test_a_conversation_that_went_on_is_kept_once() -> None:
    slots, cache = cached(1)
    chat = conversation(5)
    for _ in range(4):
        use(slots, chat)
        use(slots, conversation(9))
        chat = [*chat, *[1] * 150]
    assert len(cache) == 1, "the other one is in the slot"
    assert cache.n_bytes == len(chat) - 150


def test_exact_mode_takes_from_the_cache_what_it_has_read_itself() -> None:
    slots, _ = cached(1)
    chat = conversation(5)
    slots.take(chat, True)
    held(slots)[0] = list(chat)
    slots.give_back(0, chat, 200)
    use(slots, conversation(9))
    block = slots._target.n_batch
    assert slots.take([*chat, 1, 2], True)[1] == 200 // block * block
