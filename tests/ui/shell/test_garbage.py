"""Garbage is collected on the GUI thread, and on no other."""

from __future__ import annotations

import gc
import platform
import threading
import weakref
from collections.abc import Iterator

import psutil
import pytest
from pytestqt.qtbot import QtBot

from ui.shell.garbage import GarbageCollector, give_back


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[GarbageCollector]:
    was_on = gc.isenabled()
    monkeypatch.setattr("ui.shell.garbage._INTERVAL_MS", 10)
    collector = GarbageCollector()
    collector.start()
    yield collector
    collector.stop()
    if not was_on:
        gc.disable()


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_circles_go_on_the_gui_thread(collector: GarbageCollector, qtbot: QtBot) -> None:
    gone_on: list[str] = []
    begin = threading.Event()

    def make() -> None:
        begin.wait(20)
        for _ in range(20_000):
            circle = Circle()
            weakref.finalize(circle, lambda: gone_on.append(threading.current_thread().name))

    thread = threading.Thread(target=make, name="maker")
    thread.start()
    begin.set()
    thread.join()
    assert gone_on == []
    qtbot.waitUntil(lambda: len(gone_on) == 20_000, timeout=20_000)
    assert set(gone_on) == {"MainThread"}


def test_afterwards_python_collects_itself_again(collector: GarbageCollector) -> None:
    assert not gc.isenabled()
    collector.stop()
    assert gc.isenabled()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is told to")
def test_memory_between_what_is_kept_goes_back() -> None:
    process = psutil.Process()
    blocks = [bytearray(20_000) for _ in range(4000)]
    kept = blocks[::8]
    del blocks
    before = process.memory_info().rss
    assert give_back()
    assert before - process.memory_info().rss > 30e6
    assert len(kept) == 500
