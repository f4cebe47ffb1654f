"""What holds for every test: a private home, and nothing left running behind it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

# before anything imports Qt: no test needs a display
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil
import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, not of the code.
settings.register_profile(
    "patient", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples each time, so that a run that fails would fail again; HYPOTHESIS_PROFILE=patient looks on.
settings.register_profile(
    "repeatable", parent=settings.get_profile("patient"), derandomize=True, database=None
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

_GRACE = 20.0  # seconds for what is already ending, on a busy machine


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the person's own settings, chats, models and access token."""
    home = tmp_path / "slipstream-home"
    monkeypatch.setenv("SLIPSTREAM_HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "share"))  # where a desktop has its menu
    monkeypatch.setenv("HF_TOKEN_PATH", str(home / "hub-token"))
    return home


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread or a child process behind, and name it."""
    threads = set(threading.enumerate())
    children = set(psutil.Process().children(recursive=True))
    yield
    new_threads = [
        thread
        for thread in threading.enumerate()
        # a dummy stands for a thread of Qt's that once ran Python code; it ends with Qt's pool
        if thread not in threads and not isinstance(thread, threading._DummyThread)
    ]
    for thread in new_threads:
        thread.join(_GRACE)
    left = [thread.name for thread in new_threads if thread.is_alive()]
    new_children = [child for child in psutil.Process().children(recursive=True) if child not in children]
    _, alive = psutil.wait_procs(new_children, timeout=_GRACE)
    for child in alive:
        left.append(f"process {child.pid}: {_command(child)}")
        child.kill()
    psutil.wait_procs(alive, timeout=_GRACE)
    assert not left, f"left running by this test: {', '.join(left)}"


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return "unknown"
