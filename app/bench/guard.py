"""Runs a command and ends it when its own standard input ends: with its owner, however that ends.

    python -m app.bench.guard COMMAND [ARGUMENT ...]

A server that is only killed by its owner's cleanup outlives an owner that is killed itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def _kill_at_the_end_of_input(child: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    child.kill()


def main() -> int:
    # Ctrl+C reaches the whole group of the terminal; the owner decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    except OSError as error:
        print(error, file=sys.stderr)
        return 127
    threading.Thread(target=_kill_at_the_end_of_input, args=(child,), daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    # Not sys.exit: the thread holds stdin's lock, which a normal exit would wait for.
    code = main()
    sys.stderr.flush()
    os._exit(code & 0xFF)
