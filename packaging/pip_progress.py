"""Runs pip, keeps its whole output in a log, and shows how far it has come in one line."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TextIO

_STEP = re.compile(r"^\s*\[\s*(\d+)/(\d+)\] ")  # ninja
_PERCENT = re.compile(r"^\s*\[\s*(\d+)%\] ")  # make, where there is no ninja
_PACKAGE = re.compile(
    r"^\s*(Collecting|Downloading|Installing build dependencies|Preparing metadata)\b ?(\S*)"
)
_PLAIN_EVERY = 15.0  # seconds between lines where the line cannot be rewritten


class CommandFailed(Exception):
    """A command ended with a status other than 0."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"exit status {status}")


def stage_of(line: str) -> str | None:
    """What a line of pip's output says about its progress; None for the many lines that say nothing."""
    match = _STEP.match(line)
    if match:
        return f"building llama.cpp, step {match[1]} of {match[2]}"
    match = _PERCENT.match(line)
    if match:
        return f"building llama.cpp, {match[1]} %"
    match = _PACKAGE.match(line)
    if match:
        name = Path(match[2]).name if match[1] == "Downloading" else match[2]
        return (
            f"fetching packages: {name}" if match[1] in ("Collecting", "Downloading") else "fetching packages"
        )
    if "Building wheel for llama" in line:
        return "building llama.cpp: preparing"
    if line.startswith("Installing collected packages"):
        return "installing packages"
    return None


class ProgressLine:
    """One line that is rewritten on a terminal, and repeated now and then elsewhere."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._started = clock()
        self._rewrites = out.isatty()
        self._stage = "fetching packages"
        self._printed_at = float("-inf")
        self._printed_kind = ""

    def show(self, stage: str | None = None) -> None:
        """Show ``stage``, or the last one with the time that has passed since."""
        self._stage = stage or self._stage
        now = self._clock()
        minutes, seconds = divmod(int(now - self._started), 60)
        text = f"  {minutes}:{seconds:02}  {self._stage}"
        if self._rewrites:
            self._out.write(f"\r\033[K{text[:79]}")
            self._out.flush()
            return
        kind = self._stage.split(":")[0].split(",")[0]
        if kind != self._printed_kind or now - self._printed_at >= _PLAIN_EVERY:
            self._printed_at, self._printed_kind = now, kind
            self._out.write(text + "\n")
            self._out.flush()

    def finish(self) -> None:
        if self._rewrites:
            self._out.write("\r\033[K")
            self._out.flush()


def run_logged(
    command: list[str], environment: Mapping[str, str], log: IO[bytes], progress: ProgressLine
) -> None:
    """Run ``command`` with its output going to ``log``, and show its progress.

    Raises CommandFailed, and KeyboardInterrupt after the command and all that it started has ended.
    """
    log.write(f"\n$ {' '.join(command)}\n".encode())
    # A process group of its own: an interrupt must reach the compilers too, once, and through us.
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            _follow(process, log, progress)
        except BaseException:
            _end_group(process)
            raise
        finally:
            progress.finish()
    log.flush()
    if process.returncode:
        raise CommandFailed(process.returncode)


def _follow(process: subprocess.Popen[bytes], log: IO[bytes], progress: ProgressLine) -> None:
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=1.0):
                progress.show()
                continue
            data = os.read(pipe, 65536)
            if not data:
                return
            log.write(data)
            *lines, rest = (rest + data).split(b"\n")
            stages = [stage_of(line.decode(errors="replace")) for line in lines]
            said = [stage for stage in stages if stage is not None]
            progress.show(said[-1] if said else None)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started: first kindly, so that pip removes its temporary files."""
    for number, patience in ((signal.SIGINT, 15), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
