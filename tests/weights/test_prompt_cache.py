"""Chats that take turns in one slot, or in two: what is put back says the same as what is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from app.protocol import ChatMessage, Done, DrafterName, SamplingParams
from tests.models.eagle3 import write_eagle3
from tests.session import EXACT, Session, chat
from tests.tiny_gguf import Tiny, write_llama
from tests.weights.test_memories import KINDS, NGRAMS, PROMPT

CACHED = msgspec.structs.replace(EXACT, prompt_cache_mb=64)
# No bytes that are no characters: an answer with some comes back as other tokens.
TEXT = SamplingParams(temperature=0, logit_bias=dict.fromkeys(range(4 + 128, 4 + 256), -100.0))
OTHERS = ("red bird, blue bird. " * 6, "old car, new car. " * 6)


def take_turns(session: Session, links: Sequence[DrafterName] = (), n: int = 40) -> list[Done]:
    """Three chats of three turns, one turn of each at a time."""
    chats = [chat(begin) for begin in (PROMPT, *OTHERS)]
    answers: list[Done] = []
    for turn in range(3):
        for messages in chats:
            done = session.ask(messages, links=links, sampling=TEXT, max_draft=16, max_tokens=n)
            assert done.text and "\ufffd" not in done.text
            answers.append(done)
            messages += [ChatMessage("assistant", done.text), ChatMessage("user", f"and {turn}?")]
    return answers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_parallel", [1, 2])
def test_chats_that_take_turns_are_not_read_again(
    session: Session, tmp_path: Path, kind: str, n_parallel: int
) -> None:
    path = KINDS[kind](tmp_path / "tiny.gguf")
    session.load(path, options=EXACT)
    read = take_turns(session)
    session.load(path, options=msgspec.structs.replace(CACHED, n_parallel=n_parallel))
    for links in ((), NGRAMS):
        put_back = take_turns(session, links)
        assert [done.token_ids for done in put_back] == [done.token_ids for done in read]
        for before, after in zip(put_back, put_back[3:], strict=False):
            known = before.stats.prompt_tokens + len(before.token_ids)
            # A wrong draft at the very end may have taken some tokens back.
            assert after.stats.reused_tokens >= known - 18
    assert sum(done.stats.drafted for done in put_back) > 0


def test_a_chat_is_edited_after_another_came_between(session: Session, tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    edited = chat(PROMPT, "one fish", "again, but otherwise")
    session.load(path, options=EXACT)
    fresh = session.ask(edited)
    session.load(path, options=CACHED)
    first = session.ask(PROMPT)
    session.ask(OTHERS[0])
    again = session.ask(edited)
    assert again.token_ids == fresh.token_ids
    assert again.stats.reused_tokens >= first.stats.prompt_tokens - 1


def test_hidden_states_come_back_with_their_chat(session: Session, tmp_path: Path) -> None:
    """Without them an EAGLE-3 head would draft from the last few positions alone."""
    tiny = Tiny(n_layer=4)
    target = write_llama(tmp_path / "target.gguf", tiny)
    head = write_eagle3(tmp_path / "head.gguf", tiny)
    session.load(target, head, EXACT)
    alone = session.ask(PROMPT, links=("eagle3",), max_tokens=60)
    longer = chat(PROMPT, alone.text, "more")
    follows = session.ask(longer, links=("eagle3",), max_tokens=60)
    session.load(target, head, CACHED)
    assert session.ask(PROMPT, links=("eagle3",), max_tokens=60).token_ids == alone.token_ids
    session.ask(OTHERS[0], links=("eagle3",))
    again = session.ask(longer, links=("eagle3",), max_tokens=60)
    assert again.stats.reused_tokens >= follows.stats.reused_tokens > alone.stats.prompt_tokens
    assert again.token_ids == follows.token_ids
    assert again.stats.drafted == follows.stats.drafted, "it knew as much"
