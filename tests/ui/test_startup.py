"""The window comes up without what only later needs: see tests.ui.startup for the times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.ui import startup

# Slow to import, and needed by one page, one kind of answer or one download only.
LATER = (
    "asyncio",
    "httpx",
    "huggingface_hub",
    "jinja2",
    "llama_cpp",
    "numpy",
    "pyqtgraph",
    "PySide6.QtNetwork",
)

_LOADED = """
import sys
from PySide6.QtWidgets import QApplication
application = QApplication([])
import ui.main
from app.settings import Settings, SettingsFile
from ui.theme import Theme
window = ui.main.MainWindow(Theme(application), SettingsFile(), Settings())
window.show()
print(*(name for name in {names} if name in sys.modules))
window.close()
"""


def test_nothing_slow_is_imported_before_the_window_is_there() -> None:
    code = _LOADED.format(names=LATER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_start_with_stored_chats(tmp_path: Path) -> None:
    home = tmp_path / "home"
    startup.prepare(home, chats=50)
    started = startup.start(home, 0)
    assert started.shown_s > 0
    assert started.cpu_s < 5 * startup.MOST_START_S  # of any machine
    assert started.rss < startup.MOST_RSS
