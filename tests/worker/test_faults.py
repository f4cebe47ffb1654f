"""The worker process and its client when things go wrong: crashes, kills, noise, cancels, orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.engine_client import WorkerLost
from app.protocol import ChatMessage, Chunk, Done, Failed, Generate, Hello, Load, Loaded, Started
from app.worker.fake_script import Crash, FakeReply, FakeScript
from tests.session import Session, fake_command

LONG = FakeReply(text="word " * 2000, tokens_per_second=400.0)


def _session(script: FakeScript, folder: Path) -> Session:
    return Session(fake_command(script, folder), folder / "worker.log")


def _start_answer(session: Session, tokens: int = 5) -> int:
    """A running answer of which ``tokens`` chunks were seen."""
    request = session.client.generate([ChatMessage("user", "go")])
    for _ in range(tokens):
        session.until(lambda e: isinstance(e, Chunk) and e.request_id == request)
    return request


@pytest.mark.parametrize("how", ["abort", "kill", "exit137", "segfault"])
def test_a_crash_in_mid_answer_fails_it_with_a_reason_and_the_next_is_answered(
    tmp_path: Path, how: Crash
) -> None:
    # Slow enough that no text waits to be sent together with what follows it.
    reply = FakeReply(text="one two three four", tokens_per_second=20.0, crash=how, at=3)
    script = FakeScript(replies=(reply,))
    with _session(script, tmp_path) as session:
        session.load("m.gguf")
        request = _start_answer(session, 3)
        failed = session.terminal(request)
        assert isinstance(failed, Failed) and failed.kind == "worker_lost"
        lost = session.until(lambda e: isinstance(e, WorkerLost))
        assert isinstance(lost, WorkerLost) and lost.restarted and lost.reloading
        assert ("memory ran out" in lost.message) == (how in ("kill", "exit137"))
        loaded = session.until(lambda e: isinstance(e, Loaded))
        assert isinstance(loaded, Loaded) and loaded.model.name == "m"
        assert sum(isinstance(e, Failed | Done) for e in session.seen) == 1


def test_three_deaths_stop_the_restarts_until_asked(tmp_path: Path) -> None:
    script = FakeScript(replies=(FakeReply(text="a b c", crash="abort", at=1),))
    with _session(script, tmp_path) as session:
        session.load("m.gguf")
        for death in range(3):
            request = session.client.generate([ChatMessage("user", "go")])
            assert isinstance(session.terminal(request), Failed)
            lost = session.until(lambda e: isinstance(e, WorkerLost))
            assert isinstance(lost, WorkerLost)
            assert lost.restarted == (death < 2)
            if lost.restarted:
                session.until(lambda e: isinstance(e, Loaded))
        assert session.client.pid is None
        refused = session.terminal(session.client.generate([ChatMessage("user", "go")]))
        assert isinstance(refused, Failed) and refused.kind == "worker_lost"
        session.client.restart()
        assert isinstance(session.until(lambda e: isinstance(e, Loaded)), Loaded)


def test_a_model_that_kills_the_worker_while_loading_is_not_loaded_again(tmp_path: Path) -> None:
    with _session(FakeScript(load_crash="abort"), tmp_path) as session:
        failed = session.terminal(session.client.load("m.gguf"))
        assert isinstance(failed, Failed) and failed.kind == "worker_lost"
        lost = session.until(lambda e: isinstance(e, WorkerLost))
        assert isinstance(lost, WorkerLost) and lost.restarted and not lost.reloading
        session.until(lambda e: isinstance(e, Hello))
        refused = session.terminal(session.client.generate([ChatMessage("user", "go")]))
        assert isinstance(refused, Failed) and refused.kind == "no_model"


def test_kill_from_outside_while_idle(tmp_path: Path) -> None:
    with _session(FakeScript(), tmp_path) as session:
        session.load("m.gguf")
        assert session.client.pid is not None
        os.kill(session.client.pid, signal.SIGKILL)
        session.until(lambda e: isinstance(e, WorkerLost))
        session.until(lambda e: isinstance(e, Loaded))
        assert session.ask("hello").text == "You said: hello"


def test_ten_megabytes_of_noise_do_not_block_or_corrupt_anything(tmp_path: Path) -> None:
    with _session(FakeScript(noise_bytes=10_000_000), tmp_path) as session:
        session.load("m.gguf")
        assert session.ask("hello").text == "You said: hello"
    assert sum(f.stat().st_size for f in tmp_path.glob("worker.log*")) < 4_000_000


def test_an_engine_error_fails_one_request_only(tmp_path: Path) -> None:
    script = FakeScript(replies=(FakeReply(text="a b c d", fail="no luck", at=2), FakeReply()))
    with _session(script, tmp_path) as session:
        session.load("m.gguf")
        failed = session.terminal(session.client.generate([ChatMessage("user", "go")]))
        assert isinstance(failed, Failed) and failed.kind == "internal" and "no luck" in failed.message
        assert session.ask("hello").text == "You said: hello"


def test_requests_are_answered_in_order_and_never_mixed(tmp_path: Path) -> None:
    with _session(FakeScript(replies=(FakeReply(tokens_per_second=2000.0),)), tmp_path) as session:
        session.load("m.gguf")
        words = [f"marker{i}" for i in range(8)]
        ids = [session.client.generate([ChatMessage("user", w)]) for w in words]
        done = [session.terminal(i) for i in ids]
        assert [d.text for d in done if isinstance(d, Done)] == [f"You said: {w}" for w in words]
        started = [e.request_id for e in session.seen if isinstance(e, Started)]
        assert started == ids


def test_cancel_of_the_running_and_of_a_waiting_request(tmp_path: Path) -> None:
    with _session(FakeScript(replies=(LONG,)), tmp_path) as session:
        session.load("m.gguf")
        running = _start_answer(session)
        waiting = session.client.generate([ChatMessage("user", "later")])
        session.client.cancel(waiting)
        session.client.cancel(running)
        session.client.cancel(running)
        ends = [session.terminal(running), session.terminal(waiting)]
        for end in ends:
            assert isinstance(end, Done) and end.finish_reason == "cancelled"
        assert isinstance(ends[0], Done) and LONG.text.startswith(ends[0].text) and ends[0].text
        assert isinstance(ends[1], Done) and not ends[1].text


def test_stop_is_quick_in_a_pass_that_takes_for_ever(tmp_path: Path) -> None:
    slow = FakeReply(text="x", prefill_s=120.0)
    with _session(FakeScript(replies=(slow,)), tmp_path) as session:
        session.load("m.gguf")
        request = session.client.generate([ChatMessage("user", "go")])
        session.until(lambda e: isinstance(e, Started))
        began = time.monotonic()
        session.client.cancel(request)
        assert isinstance(session.terminal(request), Done)
        assert time.monotonic() - began < 20.0


_OWNER = """
import sys, threading
from app.engine_client import EngineClient
from app.protocol import ChatMessage, Chunk, Loaded
client = EngineClient(lambda e: isinstance(e, {until}) and print(client.pid, flush=True),
                      command=sys.argv[1:])
client.start()
client.load("m.gguf")
client.generate([ChatMessage("user", "go")])
threading.Event().wait()
"""


@pytest.mark.parametrize("until", ["Loaded", "Chunk"])
def test_no_worker_is_left_when_the_program_is_killed(tmp_path: Path, until: str) -> None:
    command = fake_command(FakeScript(replies=(LONG,)), tmp_path)
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER.format(until=until), *command], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    with owner:
        worker = psutil.Process(int(owner.stdout.readline()))
        assert worker.is_running()
        owner.kill()
        owner.wait()
        worker.wait(timeout=60)


def test_closing_ends_the_worker_also_in_mid_answer(tmp_path: Path) -> None:
    session = _session(FakeScript(replies=(LONG,)), tmp_path)
    with session:
        session.load("m.gguf")
        _start_answer(session)
        assert session.client.pid is not None
        worker = psutil.Process(session.client.pid)
    worker.wait(timeout=60)
    assert session.client.pid is None
    assert not any(isinstance(e, WorkerLost) for e in session.seen)


def test_a_request_that_cannot_be_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    with _session(FakeScript(), tmp_path) as session:
        session.load("m.gguf")
        request = session.client.generate([ChatMessage("user", "go")], seed=-1)
        refused = session.terminal(request)
        assert isinstance(refused, Failed) and refused.kind == "bad_input" and "seed" in refused.message
        assert session.ask("hello").text == "You said: hello"


def test_a_request_brings_its_model_along_whoever_loaded_another(tmp_path: Path) -> None:
    """Two clients share an engine: what one of them asked for last is not what the other wants."""
    script = FakeScript(replies=(FakeReply(text="{prompt}"),))
    with Session(fake_command(script, tmp_path)) as session:
        session.load(tmp_path / "a.gguf")
        session.client.load(str(tmp_path / "b.gguf"))  # on its way
        ask = Generate(request_id=0, messages=(ChatMessage("user", "x"),))
        for name, loads in (("b", 1), ("b", 0), ("a", 1)):
            session.seen.clear()
            load = Load(request_id=0, model_path=str(tmp_path / f"{name}.gguf"))
            session.terminal(session.client.ask(ask, load))
            loaded = [event.model.name for event in session.seen if isinstance(event, Loaded)]
            assert loaded == [name] * loads
