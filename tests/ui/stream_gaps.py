"""How long the window's event loop is held up while an answer streams, and while a long chat opens.

    python -m tests.ui.stream_gaps [stream] [marked] [open]

Runs the real window over the fake engine, in a process of its own, without a screen. A gap is the time
between two ticks of a timer, less the timer's own interval: on the clock, and in processor time of the
window's thread, which tells the window's own part where other programs take the processor too.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app import paths
from app.chats.chat import Chat
from app.chats.conversation import Conversation
from app.chats.store import ChatStore
from app.protocol import Piece
from app.settings import Settings, SettingsFile
from app.worker.fake_model import cut
from app.worker.fake_script import FakeReply, FakeScript
from ui.main_window import MainWindow
from ui.theme import Theme

TOKENS = 5000
TOKENS_PER_SECOND = 300
MESSAGES = 2000
TICK_MS = 4

SECTION = """## A section about parsing

Some **bold** words and `code` in a sentence that is long enough to wrap at the end of its line, with a
[link](https://docs.example.org/page) and
the formula $x_{{1,2}} = \\frac{{-b \\pm \\sqrt{{b^2-4ac}}}}{{2a}}$ in it.

- one point, which is short
- [x] another one that is done
  1. nested, with more words than the others have

```python
def read_records_{number}(path: str, limit: int = 10) -> list[str]:
    \"\"\"Every line of the file, without its end.\"\"\"
    records = []
    with open(path, encoding="utf-8") as file:  # closed again at once
        for number, line in enumerate(file):
            if number >= limit:
                break
            records.append(line.rstrip("\\n"))
    return records
```

| Name | Value | What it is for |
|------|------:|----------------|
| limit | 10 | how many lines are read at most |
| path | - | the file, with all its folders |

"""


def answer(tokens: int) -> str:
    """Text of so many of the fake engine's tokens."""
    text = ""
    number = 0
    while len(cut(text)) < tokens:
        text += SECTION.format(number=number)
        number += 1
    return "".join(cut(text)[:tokens])


class Gaps(QObject):
    """Counts from ``start`` on."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.clock: list[float] = []
        self.processor: list[float] = []
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._last = (0.0, 0.0)

    def start(self) -> None:
        self._last = (time.perf_counter(), time.thread_time())
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        self._tick()

    def _tick(self) -> None:
        now = (time.perf_counter(), time.thread_time())
        self.clock.append(max(0.0, now[0] - self._last[0] - TICK_MS / 1000))
        self.processor.append(now[1] - self._last[1])
        self._last = now

    def report(self, name: str) -> None:
        memory = psutil.Process().memory_info().rss / 2**20
        print(
            f"{name}: clock p50 {_at(self.clock, 0.5)} p99 {_at(self.clock, 0.99)} most {_at(self.clock, 1)},"
            f" processor p50 {_at(self.processor, 0.5)} p99 {_at(self.processor, 0.99)}"
            f" most {_at(self.processor, 1)} (ms, {len(self.clock)} ticks), {memory:.0f} MiB"
        )


def _at(values: list[float], share: float) -> str:
    ordered = sorted(values)
    return f"{1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.1f}"


def _wait(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    loop = QEventLoop()
    timer = QTimer()
    timer.setInterval(50)
    timer.timeout.connect(lambda: loop.quit() if done() or time.monotonic() > end else None)
    timer.start()
    loop.exec()
    timer.stop()
    if not done():
        raise SystemExit("what was waited for did not happen")


def stream(window: MainWindow, marked: bool) -> None:
    window.chat.messages.show_drafts(marked)
    controller = window.session.controller
    _wait(lambda: controller.state.phase == "ready", 30)
    gaps = Gaps(window)
    controller.send("Explain it.")
    gaps.start()
    _wait(lambda: not controller.busy, 120)
    gaps.stop()
    gaps.report("stream, marked" if marked else "stream")


def store_chat() -> int:
    """A chat of 2,000 messages, most of them short, some of them very long; returns its id."""
    store = ChatStore(paths.data_dir() / "chats.db")
    chat = Chat()
    conversation = Conversation(started_at=chat.created_at)
    long_text = answer(3000)
    for number in range(MESSAGES // 2):
        conversation.add_user(f"Question {number}: how is it read?")
        text = long_text if number % 20 == 19 else SECTION.format(number=number)
        message = conversation.add_answer()
        for at, part in enumerate(cut(text)):
            message.append(Piece(part, "map-k" if at % 3 else None))
        message.state = "done"
    store.add(chat, conversation)
    store.last_open = None
    store.close()
    return chat.id


def open_chat(window: MainWindow, chat: int) -> None:
    settled = time.monotonic() + 3
    _wait(lambda: time.monotonic() > settled, 10)
    gaps = Gaps(window)
    gaps.start()
    end = time.monotonic() + 3
    QTimer.singleShot(20, window, lambda: window.session.controller.chats.open(chat))
    _wait(lambda: time.monotonic() > end, 5)
    gaps.stop()
    assert len(window.session.controller.conversation.messages) == MESSAGES
    gaps.report("open")


def main() -> None:
    wanted = set(sys.argv[1:]) or {"stream", "marked", "open"}
    with tempfile.TemporaryDirectory() as home:
        os.environ["SLIPSTREAM_HOME"] = home
        application = QApplication([])
        model = Path(home) / "toy.gguf"
        model.write_bytes(b"GGUF")
        script = Path(home) / "script.json"
        reply = FakeReply(
            text=answer(TOKENS), tokens_per_second=TOKENS_PER_SECOND, drafts=((3, 2), (4, 4), (0, 0), (2, 1))
        )
        script.write_bytes(msgspec.json.encode(FakeScript(replies=(reply,))))
        chat = store_chat()
        command = (sys.executable, "-m", "app.worker", "--fake", str(script))
        settings = Settings(model=str(model), theme="light", n_ctx=2 * TOKENS)
        window = MainWindow(Theme(application, "light"), SettingsFile(), settings, command)
        window.resize(1280, 800)
        window.show()
        window.start()
        gc.collect()
        gc.freeze()  # as the program does once its window stands
        for name, run in (
            ("stream", lambda: stream(window, False)),
            ("marked", lambda: stream(window, True)),
            ("open", lambda: open_chat(window, chat)),
        ):
            if name in wanted:
                run()
        window.close()


if __name__ == "__main__":
    main()
