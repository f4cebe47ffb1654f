"""How soon the window is there, and what it takes when nothing happens: ``python -m tests.ui.startup``.

Each start is the program itself with the starter model and 1,000 stored chats. The clock runs from before
the process is made until its first paint has reached an exposed window; the first start warms the disk's
cache and is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from msgspec import Struct

from tests.ui.stored_chats import store_chats

N_CHATS = 1000
MOST_START_S = 1.0
MOST_IDLE_CPU = 0.01
MOST_RSS = 250e6
_BEGAN = "SLIPSTREAM_TEST_BEGAN"
_SETTLE_S = 8.0


class Started(Struct, frozen=True):
    """``shown_s`` is by the wall, ``cpu_s`` the window's own time on a processor until then; ``idle`` is the
    share of one processor it takes, ``rss`` its memory in bytes."""

    shown_s: float
    cpu_s: float
    idle: float
    rss: int


def prepare(home: Path, chats: int = N_CHATS) -> None:
    """A home folder as one that has been used for a year."""
    (home / "data").mkdir(parents=True)
    store_chats(home / "data" / "chats.db", chats, time.time())


def start(home: Path, idle_s: float) -> Started:
    """Start the program once, watch it while it does nothing for ``idle_s`` seconds, and end it."""
    environment = {
        "QT_QPA_PLATFORM": "offscreen",
        **os.environ,
        "SLIPSTREAM_HOME": str(home),
        _BEGAN: str(time.monotonic()),
    }
    program = psutil.Popen(
        [sys.executable, "-m", "tests.ui.startup", "--child"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = program.stdout.readline()
        if not line:
            raise RuntimeError(f"the window did not appear: exit status {program.wait()}")
        shown = json.loads(line)
        idle = 0.0
        if idle_s:
            time.sleep(_SETTLE_S)  # the model is loaded meanwhile, chats are looked after
            before = sum(program.cpu_times()[:2])
            time.sleep(idle_s)
            idle = (sum(program.cpu_times()[:2]) - before) / idle_s
        rss = program.memory_info().rss
        return Started(shown["shown_s"], shown["cpu_s"], idle, rss)
    finally:
        program.terminate()
        program.communicate(timeout=60)


def _child() -> int:
    """The program, with a window that says when it was first seen."""
    import ui.main
    from app.cli import main as command_line  # first, as in a real start
    from ui.main_window import MainWindow

    class Watched(MainWindow):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.seen.connect(self.say)

        def say(self) -> None:
            handle = self.windowHandle()
            if handle is None or not handle.isExposed():
                raise RuntimeError("it was painted, but nobody can see it")
            shown = time.monotonic() - float(os.environ[_BEGAN])
            print(json.dumps({"shown_s": shown, "cpu_s": time.process_time()}), flush=True)

    ui.main.MainWindow = Watched  # type: ignore[misc]
    sys.argv = ["slipstream"]
    return command_line([])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return _child()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        prepare(home)
        start(home, 0)
        runs = [start(home, options.idle if number == 0 else 0) for number in range(options.runs)]
    for run in runs:
        print(f"window after {run.shown_s:.3f} s ({run.cpu_s:.3f} s of CPU), {run.rss / 1e6:.0f} MB")
    median = statistics.median(run.shown_s for run in runs)
    idle, rss = runs[0].idle, max(run.rss for run in runs)
    print(f"median {median:.3f} s (limit {MOST_START_S})")
    print(f"idle {idle:.2%} of a CPU (limit {MOST_IDLE_CPU:.0%})")
    print(f"memory {rss / 1e6:.0f} MB (limit {MOST_RSS / 1e6:.0f})")
    return 0 if median < MOST_START_S and idle < MOST_IDLE_CPU and rss < MOST_RSS else 1


if __name__ == "__main__":
    sys.exit(main())
