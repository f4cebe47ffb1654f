"""The worker with all its threads, however busy the machine is.

Fewer would round a sum in another way than the judge of rounding does, who always has all of them.
"""

from __future__ import annotations

import runpy
import sys

from drafting.thread_count import ThreadCount

COMMAND = (sys.executable, "-m", "tests.golden.steady_worker")


def _keep(threads: ThreadCount, slowdown: float, now: float) -> None:
    """In the place of ``ThreadCount.passed``: no pass is too slow."""


if __name__ == "__main__":
    ThreadCount.passed = _keep  # type: ignore[method-assign]
    runpy.run_module("app.worker", run_name="__main__")
