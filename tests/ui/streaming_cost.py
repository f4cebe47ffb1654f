"""What the window costs the engine: ``python -m tests.ui.streaming_cost``.

The same answer of the starter model, in turns, streamed into the window and into the client that the command
line uses, each with a worker that stays; the decode speed is the worker's own, so that only what disturbs it
counts. Run it on a machine with nothing else to do: single runs differ by more than what is looked for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from app.settings import Settings
from model_store.starter import starter_path
from tests.session import Session

LEAST_RATIO = 0.98
PROMPT = "Write a long story about a lighthouse keeper, with a table of the ships that came by and some code."


class Child:
    """A process that answers once for each line on its standard input; ``kind`` is window or client."""

    def __init__(self, kind: str, tokens: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.streaming_cost", "--child", kind, "--tokens", str(tokens)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> float:
        """Tokens per second of one answer. Raises RuntimeError when the process is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with exit status {self._process.wait()}")
        return float(line)

    def close(self) -> None:
        self._process.communicate(timeout=60)


def _settings(tokens: int) -> Settings:
    return Settings(drafting=False, temperature=0.0, max_tokens=tokens, learn=False, theme="light")


def _client(tokens: int) -> int:
    settings = _settings(tokens)
    starter = starter_path()
    assert starter is not None
    with Session() as session:
        session.load(starter, options=settings.engine_options(str(starter)))
        for _ in sys.stdin:
            done = session.ask(PROMPT, max_tokens=tokens, timeout=600)
            print(done.stats.tokens_per_second, flush=True)
    return 0


def _window(tokens: int) -> int:
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    from app.settings import SettingsFile
    from ui.main_window import MainWindow
    from ui.theme import Theme

    application = QApplication([])
    window = MainWindow(Theme(application, "light"), SettingsFile(), _settings(tokens))
    window.resize(1280, 800)
    window.show()
    window.start()
    controller = window.session.controller
    loop, look = QEventLoop(), QTimer()
    waiting: list[Callable[[], bool]] = []
    look.timeout.connect(lambda: loop.quit() if waiting[0]() else None)
    look.start(500)  # as seldom as may be: whoever looks takes time as well

    def until(true: Callable[[], bool]) -> None:
        waiting[:] = [true]
        loop.exec()

    until(lambda: controller.state.phase == "ready")
    for _ in sys.stdin:
        controller.new_chat()
        controller.send(PROMPT)
        until(lambda: not controller.busy)
        answer = controller.conversation.messages[-1]
        assert answer.stats is not None, answer.problem
        print(answer.stats.tokens_per_second, flush=True)
    window.quit()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.streaming_cost", description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--child", choices=("window", "client"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if options.child:
        return _window(options.tokens) if options.child == "window" else _client(options.tokens)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SLIPSTREAM_HOME"] = str(Path(folder) / "home")
        window, client = Child("window", options.tokens), Child("client", options.tokens)
        for child in (window, client):
            child.answer()  # to warm up
        pairs: list[tuple[float, float]] = []
        for number in range(options.runs):
            if number % 2:  # in turns, so that a busy moment meets both
                plain, streamed = client.answer(), window.answer()
            else:
                streamed, plain = window.answer(), client.answer()
            pairs.append((streamed, plain))
            print(f"window {streamed:.1f} tok/s, client {plain:.1f} tok/s, {streamed / plain:.3f}")
        window.close()
        client.close()
    ratio = statistics.median(streamed / plain for streamed, plain in pairs)
    print(f"median of the ratios {ratio:.3f} (at least {LEAST_RATIO})")
    return 0 if ratio >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
