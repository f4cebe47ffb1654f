"""Progress of a build: what is read from pip's output, how it is shown, and how it is interrupted."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.packaging.scripts import load

pip_progress: Any = load("pip_progress")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("  [42/193] /usr/bin/c++ -DGGML_BUILD -o x.o", "building llama.cpp, step 42 of 193"),
        ("  [ 42%] Building CXX object x.o", "building llama.cpp, 42 %"),
        ("Collecting numpy<3,>=1.26", "fetching packages: numpy<3,>=1.26"),
        ("  Downloading some/where/numpy-2.whl (16 MB)", "fetching packages: numpy-2.whl"),
        ("Building wheel for llama-cpp-python (pyproject.toml): started", "building llama.cpp: preparing"),
        ("Installing collected packages: a, b", "installing packages"),
        ("  -- Performing Test HAVE_X", None),
        ("warning: array[3/4] is odd", None),
    ],
)
def test_stage_is_read_from_a_line(line: str, stage: str | None) -> None:
    assert pip_progress.stage_of(line) == stage


def test_terminal_line_is_rewritten_with_the_time_passed() -> None:
    out, clock = Terminal(), Clock()
    line = pip_progress.ProgressLine(out, clock)
    line.show("building llama.cpp, step 1 of 9")
    clock.now += 61
    line.show()
    assert out.getvalue().split("\r\033[K")[1:] == [
        "  0:00  building llama.cpp, step 1 of 9",
        "  1:01  building llama.cpp, step 1 of 9",
    ]


def test_plain_output_gets_a_line_now_and_then() -> None:
    out, clock = io.StringIO(), Clock()
    line = pip_progress.ProgressLine(out, clock)
    for step in range(1, 61):
        line.show(f"building llama.cpp, step {step} of 60")
        clock.now += 1
    line.show("installing packages")
    assert out.getvalue().splitlines() == [
        "  0:00  building llama.cpp, step 1 of 60",
        "  0:15  building llama.cpp, step 16 of 60",
        "  0:30  building llama.cpp, step 31 of 60",
        "  0:45  building llama.cpp, step 46 of 60",
        "  1:00  installing packages",
    ]


def test_whole_output_is_logged_and_a_failure_is_raised(tmp_path: Path) -> None:
    code = "import sys; print('[1/2] one'); print('oh no', file=sys.stderr); sys.exit(3)"
    out = io.StringIO()
    with (tmp_path / "log").open("wb") as log, pytest.raises(pip_progress.CommandFailed) as caught:
        pip_progress.run_logged([sys.executable, "-c", code], os.environ, log, pip_progress.ProgressLine(out))
    assert caught.value.status == 3
    logged = (tmp_path / "log").read_text()
    assert "[1/2] one" in logged
    assert "oh no" in logged
    assert "step 1 of 2" in out.getvalue()


def test_interrupt_ends_the_command_and_what_it_started(tmp_path: Path) -> None:
    # a child that ignores the interrupt, as a compiler may that was started in the background
    stubborn = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "print('[1/2] up', flush=True); time.sleep(60)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {stubborn!r}])"
    before = set(psutil.Process().children(recursive=True))

    class Interrupting(io.StringIO):
        def write(self, text: str) -> int:
            if "step 1 of 2" in text:
                signal.raise_signal(signal.SIGINT)
            return super().write(text)

    assert threading.current_thread() is threading.main_thread()
    with (tmp_path / "log").open("wb") as log, pytest.raises(KeyboardInterrupt):
        progress = pip_progress.ProgressLine(Interrupting())
        pip_progress.run_logged([sys.executable, "-c", code], os.environ, log, progress)
    left = [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert left == []
