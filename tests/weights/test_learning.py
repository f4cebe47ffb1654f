"""Learning from answers on real weights: it makes later answers cheaper and never another text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from app.answers_folder import forget_answers
from app.protocol import DRAFTERS, ChatMessage, Done, ModelReport
from app.worker.answer_file import decode, encode
from model_store.check import check_model_file
from model_store.fingerprint import tokenizer_fingerprint
from tests.session import EXACT, Session, chat
from tests.tiny_gguf import Tiny, write_llama


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "answers"


def load(session: Session, model: Path, folder: Path | None, lookup_cache: Path | None = None) -> ModelReport:
    options = msgspec.structs.replace(
        EXACT,
        answers_folder=str(folder) if folder else None,
        lookup_cache=str(lookup_cache) if lookup_cache else None,
    )
    return session.load(model, options=options)


def eventually(session: Session, so: Callable[[Done], bool]) -> None:
    """Ask until it is so: what was learned is looked up once the worker had a moment for it."""
    for _ in range(50):
        if so(session.ask("tell me", links=["suffix"], max_tokens=80)):
            return
        time.sleep(0.02)
    raise AssertionError("it never was")


def file_of(folder: Path, model: Path) -> Path:
    return folder / f"{tokenizer_fingerprint(check_model_file(model, 'chat'))}.answers"


def kept(folder: Path, model: Path) -> list[tuple[int, ...]]:
    path = file_of(folder, model)
    return [tuple(answer.tolist()) for answer in decode(path.read_bytes(), path.stem)]


def test_a_second_session_drafts_from_the_answers_of_the_first(t0: Path, folder: Path) -> None:
    with Session() as session:
        load(session, t0, folder)
        first = session.ask("tell me", links=["suffix"], max_tokens=80)
    assert kept(folder, t0) == [first.token_ids]
    with Session() as session:
        load(session, t0, folder)
        again = session.ask("tell me", links=["suffix"], max_tokens=80)
    with Session() as session:
        load(session, t0, None)
        fresh = session.ask("tell me", links=["suffix"], max_tokens=80)
    assert again.token_ids == first.token_ids == fresh.token_ids
    assert again.stats.accepted > first.stats.accepted
    assert again.stats.target_passes < first.stats.target_passes == fresh.stats.target_passes
    assert kept(folder, t0) == [first.token_ids]  # said twice, kept once


def test_an_answer_helps_the_next_chat_of_the_same_session(t0: Path, folder: Path) -> None:
    with Session() as session:
        load(session, t0, folder)
        plain = session.ask("tell me", links=["suffix"], max_tokens=80)
        eventually(
            session,
            lambda done: done.stats.accepted > plain.stats.accepted and done.token_ids == plain.token_ids,
        )


@pytest.mark.parametrize("links", [("cache",), ("suffix",), DRAFTERS])
def test_chats_in_turn_are_as_in_fresh_sessions_though_all_is_learned(
    t0: Path, folder: Path, links: Sequence[str]
) -> None:
    """A12: long, short, back, edited; with answers kept by earlier sessions too."""
    long = "count and count again " * 60
    chats = [chat(long, "yes", "more"), chat("hi"), chat(long, "yes", "more"), chat(long, "no", "more")]
    runs = []
    for _ in range(2):
        with Session() as session:
            load(session, t0, folder)
            runs.append([session.ask(c, links=links, max_tokens=60).token_ids for c in chats])  # type: ignore[arg-type]
    with Session() as session:
        fresh = []
        for messages in chats:
            load(session, t0, None)
            fresh.append(session.ask(messages, max_tokens=60).token_ids)
    assert runs == [fresh, fresh]
    assert len(kept(folder, t0)) == len(set(fresh))


def test_with_nothing_learned_the_first_answer_is_made_as_in_a_fresh_process(t0: Path, folder: Path) -> None:
    """Not only the text: the very drafts."""
    counts = []
    for answers in (folder, None):
        with Session() as session:
            load(session, t0, answers)
            by_drafter = session.ask("hello", links=DRAFTERS, max_tokens=80).stats.by_drafter
            counts.append({name: (c.drafted_at, c.accepted_at) for name, c in by_drafter.items()})
    assert counts[0] == counts[1] != {}


@pytest.mark.parametrize(
    "data",
    [b"", b"rubbish" * 500, encode([np.arange(9, dtype=np.int32)], "a" * 32)],
    ids=["empty", "random", "other"],
)
def test_a_file_that_cannot_be_used_costs_a_line_and_no_answer(t0: Path, folder: Path, data: bytes) -> None:
    """A16, through the worker."""
    folder.mkdir()
    file_of(folder, t0).write_bytes(data)
    with Session() as session:
        report = load(session, t0, folder)
        assert [n for n in report.notices if "set aside" in n] == list(report.notices)[:1]
        done = session.ask("hello", links=DRAFTERS, max_tokens=20)
    assert kept(folder, t0) == [done.token_ids]
    assert [path.read_bytes() for path in folder.glob("*damaged*")] == [data]


def test_what_cannot_be_saved_is_said_with_the_next_answer(t0: Path, folder: Path) -> None:
    folder.write_text("in the way")
    with Session() as session:
        assert len(load(session, t0, folder).notices) == 1  # it cannot be read either

        def told() -> list[str]:
            notices = [n for event in session.seen for n in getattr(event, "notices", ())]
            return [n for n in notices if "cannot be saved" in n]

        eventually(session, lambda done: bool(told()))
        session.ask("hello", max_tokens=20)
        assert len(told()) == 1


def test_two_models_of_one_tokenizer_share_and_of_two_do_not(
    t0: Path, d0: Path, tmp_path: Path, folder: Path
) -> None:
    other = write_llama(tmp_path / "other.gguf", Tiny(swap=(300, 301)))
    answers = []
    with Session() as session:
        for model in (t0, d0, other):
            load(session, model, folder)
            answers.append(session.ask("hello", max_tokens=20).token_ids)
    assert kept(folder, t0) == kept(folder, d0) == answers[:2]
    assert kept(folder, other) == answers[2:]


def test_a_stopped_answer_is_not_learned(t0: Path, folder: Path) -> None:
    with Session() as session:
        load(session, t0, folder)
        request = session.client.generate([ChatMessage("user", "hello")])
        session.until(lambda event: getattr(event, "tokens", 0) > 0)
        session.client.cancel(request)
        done = session.terminal(request)
        assert isinstance(done, Done)
    if done.finish_reason == "cancelled":  # it may have ended just before
        assert not folder.exists()


def test_forgetting_takes_effect_with_the_next_answer(t0: Path, folder: Path) -> None:
    with Session() as session:
        load(session, t0, folder)
        plain = session.ask("tell me", links=["suffix"], max_tokens=80)
        eventually(session, lambda done: done.stats.target_passes < plain.stats.target_passes)
        assert forget_answers(folder) > 0
        forgotten = session.ask("tell me", links=["suffix"], max_tokens=80)
        assert forgotten.stats.target_passes == plain.stats.target_passes


def test_a_lookup_cache_that_cannot_be_used_costs_a_line_and_no_answer(
    session: Session, t0: Path, tmp_path: Path
) -> None:
    path = tmp_path / "static.lcs"
    for data, words in ((None, "no such file"), (b"rubbish!" * 9, "damaged"), (b"", "no contexts")):
        if data is not None:
            path.write_bytes(data)
        report = load(session, t0, None, path)
        (notice,) = [n for n in report.notices if "lookup cache" in n]
        assert path.name in notice and words in notice
        assert session.ask("hello", max_tokens=5).stats.completion_tokens > 0


def test_a_lookup_cache_drafts(session: Session, t0: Path, tmp_path: Path) -> None:
    load(session, t0, None)
    plain = session.ask("hello", max_tokens=40)
    words: list[int] = []
    for a, b, c in zip(plain.token_ids, plain.token_ids[1:], plain.token_ids[2:], strict=False):
        words += [a, b, -1, -1, 1, c, 5]
    path = tmp_path / "static.lcs"
    path.write_bytes(np.array(words, "<i4").tobytes())
    load(session, t0, None, path)
    drafted = session.ask("hello", links=["cache"], max_tokens=40)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.accepted > 0
