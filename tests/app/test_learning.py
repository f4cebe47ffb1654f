"""What is learned from answers, and its file: kept whole whatever happens to it, and to us."""

from __future__ import annotations

import errno
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from app import answers_folder
from app.answers_folder import forget_answers
from app.worker import learning
from app.worker.answer_file import AnswerFileError, decode, encode
from app.worker.learning import MAX_TOKENS, Learning

A, B = "a" * 32, "b" * 32
FIRST, SECOND, THIRD = [1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15], [21, 22, 23, 24, 25, 26]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "answers"


def learn(folder: Path, *answers: Sequence[int], fingerprint: str = A) -> Learning:
    learning = Learning(folder, fingerprint)
    for answer in answers:
        learning.add(answer)
    while learning.settle():
        pass
    return learning


def kept(folder: Path, fingerprint: str = A) -> list[list[int]]:
    data = (folder / f"{fingerprint}.answers").read_bytes()
    return [answer.tolist() for answer in decode(data, fingerprint)]


def follows(learning: Learning, tail: Sequence[int]) -> list[int]:
    found = learning.past.matches(tail, 1, 2)
    return learning.past.following(found[0][0], 10) if found else []


# ---- learning


def test_an_answer_is_known_in_this_program_and_in_the_next(folder: Path) -> None:
    first = Learning(folder, A)
    first.add(FIRST)
    assert follows(first, FIRST[:3]) == []  # nothing is done while an answer may be waiting
    assert not folder.exists()
    assert first.settle()
    assert kept(folder) == [FIRST]
    assert first.settle()
    assert follows(first, FIRST[:3]) == FIRST[3:]
    assert not first.settle()
    assert follows(Learning(folder, A), FIRST[:3]) == FIRST[3:]


def test_without_a_file_nothing_is_made(folder: Path) -> None:
    learning = Learning(folder, A)
    learning.check()
    assert not learning.settle()
    learning.close()
    assert learning.news() == ()
    assert not folder.exists()


def test_what_is_too_short_to_learn_from_is_left(folder: Path) -> None:
    learn(folder, [1, 2, 3, 4], FIRST)
    assert kept(folder) == [FIRST]


def test_the_same_answer_again_counts_once_and_as_new(folder: Path) -> None:
    learn(folder, FIRST, SECOND, FIRST)
    assert kept(folder) == [SECOND, FIRST]


def test_closing_saves_what_is_due(folder: Path) -> None:
    learning = Learning(folder, A)
    learning.add(FIRST)
    learning.close()
    assert kept(folder) == [FIRST]


def test_the_oldest_answers_are_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MAX_TOKENS", 12)
    learn(folder, FIRST, SECOND, THIRD)
    assert kept(folder) == [SECOND, THIRD]
    learn(folder, list(range(50)))
    assert kept(folder) == [list(range(38, 50))]


def test_a_full_file_stays_within_its_bound(folder: Path) -> None:
    answers = np.random.default_rng(1).integers(0, 50_000, (MAX_TOKENS // 1000 + 5, 1000))
    learn(folder, *answers.tolist())
    assert sum(map(len, kept(folder))) == MAX_TOKENS // 1000 * 1000
    assert kept(folder)[-1] == answers[-1].tolist()
    assert (folder / f"{A}.answers").stat().st_size < 600_000


# ---- two programs


def test_two_programs_keep_both_their_answers(folder: Path) -> None:
    window, terminal = Learning(folder, A), Learning(folder, A)
    for program, answer in ((window, FIRST), (terminal, SECOND), (window, THIRD)):
        program.add(answer)
        while program.settle():
            pass
    assert kept(folder) == [FIRST, SECOND, THIRD]
    assert follows(window, SECOND[:3]) == SECOND[3:]


PROGRAM = """
import sys
from pathlib import Path
from app.worker.learning import Learning
mine = int(sys.argv[2])
learning = Learning(Path(sys.argv[1]), "a" * 32)
for n in range(20):
    learning.add([mine, n, 1, 2, 3, 4])
    while learning.settle():
        pass
learning.close()
assert learning.news() == (), learning.news()
"""


def test_programs_that_save_at_the_same_time_lose_nothing(folder: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), str(mine)]) for mine in range(100, 103)
    ]
    assert [program.wait(60) for program in running] == [0, 0, 0]
    assert sorted(kept(folder)) == [[mine, n, 1, 2, 3, 4] for mine in range(100, 103) for n in range(20)]


def test_a_file_that_is_held_is_saved_with_the_next_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_folder, "_LOCK_S", 0.05)
    mine = learn(folder, FIRST)
    with FileLock(folder / ".lock"):
        mine.add(SECOND)
        while mine.settle():
            pass
        assert kept(folder) == [FIRST]
    assert follows(mine, SECOND[:3]) == SECOND[3:]
    mine.add(THIRD)
    mine.close()
    assert kept(folder) == [FIRST, SECOND, THIRD]
    assert mine.news() == ()


# ---- damage


def damaged(change: Callable[[bytearray], None]) -> bytes:
    data = bytearray(encode([np.array(FIRST, np.int32), np.array(SECOND, np.int32)], A))
    change(data)
    return bytes(data)


def set_byte(at: int, to: int) -> Callable[[bytearray], None]:
    return lambda data: data.__setitem__(at, to)


DAMAGED = {
    "empty": b"",
    "random": random.Random(1).randbytes(5000),
    "random after the magic": b"slipansw" + random.Random(1).randbytes(5000),
    "another version": damaged(set_byte(8, 2)),
    "one bit": damaged(lambda data: data.__setitem__(70, data[70] ^ 1)),
    "checksum": damaged(lambda data: data.__setitem__(-1, data[-1] ^ 1)),
    "cut": damaged(lambda data: data.__delitem__(slice(-10, None))),
    "longer": damaged(lambda data: data.extend(b"more")),
    "head alone": damaged(lambda data: data.__delitem__(slice(20, None))),
    "another tokenizer": encode([np.array(FIRST, np.int32)], B),
}
every_damage = pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())


@every_damage
def test_a_file_that_cannot_be_used_is_set_aside_and_said_once(folder: Path, data: bytes) -> None:
    """A16."""
    folder.mkdir()
    path = folder / f"{A}.answers"
    path.write_bytes(data)
    mine = Learning(folder, A)
    (line,) = mine.news()
    aside = folder / f"{A}.answers.damaged-1"
    assert str(aside) in line
    assert aside.read_bytes() == data
    assert not path.exists()
    assert mine.news() == ()
    mine.add(SECOND)
    while mine.settle():
        pass
    assert kept(folder) == [SECOND]
    assert aside.read_bytes() == data
    assert mine.news() == ()


def test_what_was_set_aside_is_never_overwritten(folder: Path) -> None:
    folder.mkdir()
    for data in (b"first", b"second"):
        (folder / f"{A}.answers").write_bytes(data)
        Learning(folder, A)
    aside = sorted(folder.glob("*damaged*"))
    assert [path.read_bytes() for path in aside] == [b"first", b"second"]


def test_damage_while_we_run_is_found_before_it_is_written_over(folder: Path) -> None:
    mine = learn(folder, FIRST)
    (folder / f"{A}.answers").write_bytes(b"rubbish")
    mine.add(SECOND)
    while mine.settle():
        pass
    assert len(mine.news()) == 1
    assert next(folder.glob("*damaged*")).read_bytes() == b"rubbish"
    assert kept(folder) == [FIRST, SECOND]


def test_answers_of_another_tokenizer_are_another_file(folder: Path) -> None:
    learn(folder, FIRST, fingerprint=A)
    other = learn(folder, SECOND, fingerprint=B)
    assert other.news() == ()
    assert follows(other, FIRST[:3]) == []
    assert (kept(folder, A), kept(folder, B)) == ([FIRST], [SECOND])


@pytest.mark.parametrize("lengths", [[3, 4], [2**31, 2**31 + 11]])
def test_lengths_that_do_not_add_up_are_damage(lengths: list[int]) -> None:
    """A checksum says that nothing was changed, not that it was right."""
    import hashlib

    body = encode([np.array(FIRST, np.int32), np.array(SECOND, np.int32)], A)[:-32]
    head = len(body) - 4 * (2 + 11)
    body = body[:head] + np.array(lengths, "<u4").tobytes() + body[head + 8 :]
    with pytest.raises(AnswerFileError, match="damaged"):
        decode(body + hashlib.sha256(body).digest(), A)


# ---- a disk that does not play along


def test_a_full_disk_leaves_the_old_file_and_is_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = learn(folder, FIRST)
    before = (folder / f"{A}.answers").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for answer in (SECOND, THIRD):
            mine.add(answer)
            while mine.settle():
                pass
    assert mine.news() == ("What drafting learns from answers cannot be saved: no space left on device.",)
    assert (folder / f"{A}.answers").read_bytes() == before
    assert follows(mine, SECOND[:3]) == SECOND[3:]  # good for this session
    assert sorted(path.name for path in folder.iterdir() if path.suffix) == [f"{A}.answers"]
    mine.close()
    assert kept(folder) == [FIRST]
    mine.add([31, 32, 33, 34, 35])
    mine.close()
    assert kept(folder) == [FIRST, SECOND, THIRD, [31, 32, 33, 34, 35]]


def test_a_folder_that_cannot_be_used_is_said_once(tmp_path: Path) -> None:
    """A file where the folder should be: no permission stops the superuser, this does."""
    folder = tmp_path / "answers"
    folder.write_text("in the way")
    mine = learn(folder, FIRST)
    mine.add(SECOND)
    mine.close()
    assert len(mine.news()) == 2  # cannot be read, cannot be saved
    assert folder.read_text() == "in the way"
    assert follows(mine, FIRST[:3]) == FIRST[3:]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_leaves_the_old_file(folder: Path) -> None:
    learn(folder, FIRST)
    folder.chmod(0o500)
    try:
        mine = learn(folder, SECOND)
        assert len(mine.news()) == 1
        assert kept(folder) == [FIRST]
    finally:
        folder.chmod(0o700)


def test_a_file_that_cannot_be_read_is_left_alone(folder: Path) -> None:
    (folder / f"{A}.answers").mkdir(parents=True)
    mine = learn(folder, FIRST)
    assert len(mine.news()) == 2  # cannot be read, cannot be saved
    assert follows(mine, FIRST[:3]) == FIRST[3:]


# ---- privacy


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
def test_nobody_else_may_read_it(folder: Path) -> None:
    learn(folder, FIRST)
    assert stat.S_IMODE((folder / f"{A}.answers").stat().st_mode) == 0o600


def test_forgetting_deletes_everything_and_programs_notice(folder: Path) -> None:
    mine = learn(folder, FIRST)
    learn(folder, SECOND, fingerprint=B)
    (folder / f"{A}.answers.damaged-1").write_bytes(b"ids")
    (folder / f".{A}.answers.x7k2").write_bytes(b"left by a crash")
    assert forget_answers(folder) == 4
    assert [path.name for path in folder.iterdir() if path.name != ".lock"] == []
    mine.check()
    assert follows(mine, FIRST[:3]) == []
    mine.add(THIRD)
    mine.close()
    assert kept(folder) == [THIRD]


def test_what_was_forgotten_while_an_answer_came_is_not_saved_again(folder: Path) -> None:
    mine = learn(folder, FIRST)
    mine.add(SECOND)
    forget_answers(folder)
    while mine.settle():
        pass
    assert not (folder / f"{A}.answers").exists()
    assert follows(mine, FIRST[:3]) == []


def test_there_may_be_nothing_to_forget(folder: Path) -> None:
    assert forget_answers(folder) == 0
    assert not folder.exists()
