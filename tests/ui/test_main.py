"""The program itself: it ends when it is asked to, and never leaves a worker behind (case I01)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

WAIT = 60.0


@pytest.fixture
def program() -> Iterator[psutil.Popen]:
    process = psutil.Popen(
        [sys.executable, "-m", "ui"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def worker_of(program: psutil.Popen) -> psutil.Process:
    end = time.monotonic() + WAIT
    while time.monotonic() < end and program.poll() is None:
        for child in program.children():
            if "app.worker" in child.cmdline():
                return child
        time.sleep(0.02)  # between two looks at the process table
    raise AssertionError("no worker was started")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_the_window_and_the_worker(program: psutil.Popen, number: signal.Signals) -> None:
    worker = worker_of(program)
    program.send_signal(number)
    _, errors = program.communicate(timeout=WAIT)
    assert (program.returncode, errors) == (0, b"")
    psutil.wait_procs([worker], timeout=WAIT)
    assert not worker.is_running()


def test_kill_of_the_window_leaves_no_worker(program: psutil.Popen) -> None:
    worker = worker_of(program)
    program.kill()
    psutil.wait_procs([worker], timeout=WAIT)
    assert not worker.is_running()
