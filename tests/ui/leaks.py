"""What stays behind when things are opened and closed again: ``python -m tests.ui.leaks``.

After a first round, which makes what is made once, the same is done many times over; then threads,
processes, timers, widgets and file descriptors must be as many as before, and memory near enough.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.settings import Settings, SettingsFile
from app.worker.fake_script import FakeScript
from tests.ui.stored_chats import store_chats
from ui.chat.message_view import MessageView
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED, MainWindow
from ui.shell.garbage import GarbageCollector
from ui.theme import Theme

MOST_GROWTH = 25e6  # bytes of memory
_SPARE_DESCRIPTORS = 2
_SETTLE_S = 60.0


class Held(Struct, frozen=True):
    """What a process has at one moment. ``rss`` is in bytes."""

    threads: int
    processes: int
    timers: int
    widgets: Counter[str]
    descriptors: int
    rss: int


def held() -> Held:
    """After everything that waits to be deleted is gone: some of it goes in turns of its own."""
    end = time.monotonic() + _SETTLE_S
    still, widgets = 0, -1
    while still < 5 and time.monotonic() < end:
        QTest.qWait(60)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        before, widgets = widgets, len(QApplication.allWidgets())
        still = still + 1 if widgets == before else 0
    process = psutil.Process()
    tops: list[QObject] = [QApplication.instance() or QObject(), *QApplication.topLevelWidgets()]
    return Held(
        threads=threading.active_count(),
        processes=len(process.children(recursive=True)),
        timers=sum(timer.isActive() for top in tops for timer in top.findChildren(QTimer)),
        widgets=Counter(type(widget).__name__ for widget in QApplication.allWidgets()),
        descriptors=process.num_fds() if hasattr(process, "num_fds") else 0,
        rss=process.memory_info().rss,
    )


def grown(before: Held, after: Held) -> list[str]:
    """What there is more of, in words."""
    found: list[str] = []
    for name in ("threads", "processes", "timers"):
        if getattr(after, name) > getattr(before, name):
            found.append(f"{name}: {getattr(before, name)}, then {getattr(after, name)}")
    if after.descriptors > before.descriptors + _SPARE_DESCRIPTORS:
        found.append(f"file descriptors: {before.descriptors}, then {after.descriptors}")
    more = after.widgets - before.widgets
    if more:
        found.append(f"widgets: {dict(more)}")
    if after.rss > before.rss + MOST_GROWTH:
        found.append(f"memory: {before.rss / 1e6:.0f} MB, then {after.rss / 1e6:.0f}")
    return found


def put_away(window: MainWindow) -> None:
    """Until the messages of the chats that are not shown any more are gone: they go one by one."""
    end = time.monotonic() + _SETTLE_S
    while len(window.chat.messages.findChildren(MessageView)) > len(window.chat.messages.views()):
        QTest.qWait(1)
        if time.monotonic() > end:
            raise TimeoutError("messages that nobody sees never go away")


def use(window: MainWindow, chats: list[int], number: int) -> None:
    """Open and close what a window has, once."""
    window.show_page((MODELS, SPEED, SETTINGS)[number % 3])
    QTest.qWait(1)
    window.show_page(CHATS)
    window.open_chat(chats[number % len(chats)])
    QTest.qWait(1)
    window.session.controller.new_chat()
    put_away(window)
    window.open_chat(chats[(number + 1) % len(chats)])
    window.shell.palette.open()
    window.shell.palette.close_palette()
    window.chat.speed.open_panel()
    QTest.qWait(1)
    window.chat.speed.close_panel()
    window.chat.finding.open()
    window.chat.finding.bar.field.setText("a")  # type: ignore[union-attr]
    window.chat.finding.next()
    window.chat.finding.close()
    window.chat.search_chats()
    window.chat.sidebar.close_search()
    if number % 10 == 0:
        window.shell.show_about()
        window.shell.show_logs()
        QTest.qWait(1)
        for widget in QApplication.topLevelWidgets():
            if widget is not window and widget.isVisible():
                widget.close()
    session = window.session
    session.apply(msgspec.structs.replace(session.settings, theme=("light", "dark")[number % 2]))


def check(folder: Path, rounds: int, windows: int) -> list[str]:
    """Go through it in ``rounds`` and with ``windows`` made anew; returns what stayed behind.
    SLIPSTREAM_HOME is ``folder``/home, and a QApplication is there."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    path = folder / "home" / "data" / "chats.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    chats = store_chats(path, 20, time.time())
    script = folder / "script.json"
    script.write_bytes(msgspec.json.encode(FakeScript()))
    model = folder / "toy.gguf"
    model.write_bytes(b"GGUF")
    command = (sys.executable, "-m", "app.worker", "--fake", str(script))
    theme = Theme(application, "light")

    def make() -> MainWindow:
        window = MainWindow(theme, SettingsFile(), Settings(model=str(model), offline=True), command)
        window.show()
        window.start()
        return window

    def close(window: MainWindow) -> None:
        window.quit()
        window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    found: list[str] = []
    window = make()
    for number in range(max(10, rounds // 5)):
        use(window, chats, number)
    window.session.controller.new_chat()  # of a chat, so much is built as there was time for
    before = held()
    for number in range(rounds):
        use(window, chats, number)
    window.session.controller.new_chat()
    found += [f"in one window, {text}" for text in grown(before, held())]
    close(window)
    for number in range(2 * windows):
        if number == windows:
            before = held()
        window = make()
        use(window, chats, 0)
        close(window)
    found += [f"after {windows} windows, {text}" for text in grown(before, held())]
    theme.deleteLater()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.leaks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--windows", type=int, default=10)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SLIPSTREAM_HOME"] = str(Path(folder) / "home")
        application = QApplication([])
        garbage = GarbageCollector(application)
        garbage.start()
        found = check(Path(folder), options.rounds, options.windows)
        now = held()
        garbage.stop()
    print(*found or ["nothing stayed behind"], sep="\n")
    print(f"{now.threads} threads, {now.descriptors} descriptors, {now.rss / 1e6:.0f} MB")
    del application
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
