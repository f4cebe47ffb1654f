"""What is asked of the store: answered in the GUI's thread, or dropped when nobody waits any more."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.local_store import open_store
from app.settings import Settings
from app.store_problem import StoreProblem
from model_store.fit import FreeMemory
from model_store.stop_signal import StopSignal
from model_store.store import Store, StoreError
from ui.models.store_bridge import StoreBridge

WAIT = 20_000
ROOT = Path(__file__).parents[2]


@pytest.fixture
def bridge(qtbot: QtBot) -> Iterator[StoreBridge]:
    bridge = StoreBridge(
        lambda on_event: open_store(Settings(), free=lambda: FreeMemory(8 << 30), on_event=on_event)
    )
    yield bridge
    bridge.close()


def test_answers_and_problems_come_to_the_thread_that_asked(bridge: StoreBridge, qtbot: QtBot) -> None:
    here = threading.current_thread()
    heard: list[object] = []

    def refuse(store: Store, stop: StopSignal) -> int:
        raise StoreError("not_found", "There is none.")

    def fail(store: Store, stop: StopSignal) -> int:
        raise ZeroDivisionError

    def hear(thing: object) -> None:
        assert threading.current_thread() is here
        heard.append(thing)

    bridge.ask(lambda store, stop: threading.current_thread() is here, hear)
    bridge.ask(refuse, hear, hear)
    qtbot.waitUntil(lambda: len(heard) == 2, timeout=WAIT)
    assert False in heard and StoreProblem("not_found", "There is none.") in heard
    bridge.ask(fail, hear, hear)
    qtbot.waitUntil(lambda: len(heard) == 3, timeout=WAIT)
    problem = heard[-1]
    assert isinstance(problem, StoreProblem)
    assert (problem.kind, "ZeroDivisionError" in problem.message) == ("internal", True)


def test_answer_that_nobody_waits_for_is_dropped(bridge: StoreBridge, qtbot: QtBot) -> None:
    heard: list[str] = []
    go = threading.Event()

    def wait(store: Store, stop: StopSignal) -> str:
        go.wait(20)
        return "old"

    old = bridge.ask(wait, heard.append)
    old.stop()
    go.set()
    bridge.ask(lambda store, stop: "new", heard.append)
    qtbot.waitUntil(lambda: heard == ["new"], timeout=WAIT)
    bridge.order(lambda store, stop: "last", heard.append)
    qtbot.waitUntil(lambda: len(heard) == 2, timeout=WAIT)
    assert heard == ["new", "last"]


def test_orders_are_carried_out_one_after_another(bridge: StoreBridge, qtbot: QtBot) -> None:
    done: list[int] = []
    for number in range(50):
        bridge.order(lambda store, stop, number=number: done.append(number))  # type: ignore[misc]
    qtbot.waitUntil(lambda: len(done) == 50, timeout=WAIT)
    assert done == list(range(50))


def test_closing_ends_what_runs_and_what_waits(qtbot: QtBot) -> None:
    heard: list[object] = []
    begun = threading.Event()
    bridge = StoreBridge(lambda on_event: open_store(Settings(), free=lambda: FreeMemory(1)))

    def run(store: Store, stop: StopSignal) -> None:
        begun.set()
        stop.wait(60)

    bridge.ask(run, heard.append, heard.append)
    for _ in range(9):
        bridge.order(lambda store, stop: stop.wait(60), heard.append, heard.append)
    assert begun.wait(20)
    bridge.close()
    bridge.ask(lambda store, stop: 1, heard.append)
    bridge.close()
    qtbot.wait(10)
    assert heard == []


def test_asking_never_waits_for_the_store_to_be_opened(qtbot: QtBot) -> None:
    opened, heard = threading.Event(), list[int]()

    def slow(on_event: object) -> Store:
        assert opened.wait(20), "the GUI's thread waits for this one"
        return open_store(Settings(), free=lambda: FreeMemory(1))

    bridge = StoreBridge(slow)
    for number in range(3):
        bridge.ask(lambda store, stop, number=number: number, heard.append)  # type: ignore[misc]
    opened.set()
    qtbot.waitUntil(lambda: len(heard) == 3, timeout=WAIT)
    bridge.close()


def test_window_starts_without_the_hubs_library() -> None:
    code = """
import sys
from PySide6.QtWidgets import QApplication
from app.settings import Settings, SettingsFile
from ui.main_window import MainWindow
from ui.theme import Theme
application = QApplication([])
window = MainWindow(Theme(application), SettingsFile(), Settings())
window.show()
application.processEvents()
heavy = [name for name in ("huggingface_hub", "httpx", "httpx2", "model_store.store") if name in sys.modules]
window.session.close()
sys.exit(f"imported at the start: {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
