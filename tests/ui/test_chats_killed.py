"""What a killed program has kept of an answer that was being written (K04)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil

from app.chats.store import ChatStore
from app.worker.fake_script import FakeReply, FakeScript

_SPEED = 100.0  # tokens per second, of about five characters
_SHOWN = 3500  # characters, after about seven seconds
_MAY_BE_LOST_S = 4.0  # two are the aim; a machine that is busy with other tests gets as much again


def test_all_but_the_last_two_seconds_of_an_answer_are_kept(tmp_path: Path) -> None:
    story = " ".join(f"w{i:03}" for i in range(5000))
    script = tmp_path / "script.json"
    reply = FakeReply(text=story, tokens_per_second=_SPEED)
    script.write_bytes(msgspec.json.encode(FakeScript(replies=(reply,))))
    path = tmp_path / "chats.db"
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.ui.chats_child", str(path), str(script)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    worker = None
    shown: list[tuple[float, int]] = []  # when, and how many characters
    for line in child.stdout:
        shown.append((time.monotonic(), int(line)))
        if worker is None:
            [worker] = psutil.Process(child.pid).children()
        if shown[-1][1] >= _SHOWN:
            break
    killed = time.monotonic()
    child.kill()
    child.wait()
    child.stdout.close()
    assert worker is not None
    psutil.wait_procs([worker], timeout=30)  # the end of its input ends it
    store = ChatStore(path)
    [chat] = store.chats()
    question, answer = store.conversation(chat).messages
    assert question.text == "tell me a long story" and chat.title == "tell me a long story"
    assert answer.state == "interrupted" and answer.incomplete
    assert story.startswith(answer.text)
    must_have = max((length for at, length in shown if at < killed - _MAY_BE_LOST_S), default=0)
    assert len(answer.text) >= must_have
    assert len(answer.text) > 0
    store.close()
