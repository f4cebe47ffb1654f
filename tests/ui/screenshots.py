"""Pictures of every page, both themes, two sizes: ``python -m tests.ui.screenshots [FOLDER]``.

What is seen is scripted (tests.ui.showcase), so that the pictures change only when the window does. The
four of the README are written as well, unless ``--only-folder`` says no.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import psutil
from PySide6.QtCore import QEvent
from PySide6.QtGui import QCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.chats.chat import Chat
from app.settings import Settings, SettingsFile
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui import showcase
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED, MainWindow
from ui.models.models_page import ModelsPage
from ui.speed.speed_page import SpeedPage
from ui.theme import Choice, Theme

SIZES = ((1280, 800), (1920, 1080))
SCENES = ("chat", "palette", "speed", "models", "settings", "drafting", "empty")
THEMES: tuple[Choice, ...] = ("light", "dark")
README = {
    "chat": ("chat", "light"),
    "drafting": ("drafting", "dark"),
    "models": ("models", "light"),
    "speed": ("speed", "dark"),
}
_PAGES = {"speed": SPEED, "models": MODELS, "settings": SETTINGS}
_WAIT_S = 60.0
_FOLDER = Path(__file__).parents[2]


class Photographer:
    """One window for one theme, walked through from page to page."""

    def __init__(self, application: QApplication, home: Path, target: Path, choice: Choice) -> None:
        script = home / "script.json"
        # The answer that is begun for the Speed panel never comes: its passes are put in by hand.
        replies = (FakeReply(prefill_s=100_000.0),)
        script.write_bytes(msgspec.json.encode(FakeScript(replies=replies)))
        settings = Settings(
            model=str(target),
            draft_model=str(target.with_name(f"{showcase.DRAFT}.gguf")),
            theme=choice,
            offline=True,
            show_drafts=True,
        )
        self._theme = Theme(application, choice)
        self._theme.apply(settings)
        command = (sys.executable, "-m", "app.worker", "--fake", str(script))
        self.window = MainWindow(self._theme, SettingsFile(home / "settings.json"), settings, command)
        self.window.resize(*SIZES[0])
        self.window.show()
        self.window.start()
        controller = self.window.session.controller
        self.until(lambda: controller.state.phase == "ready")

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for it. Raises TimeoutError."""
        end = time.monotonic() + _WAIT_S
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError("the window never came to rest")
            QTest.qWait(20)

    def settle(self) -> None:
        """Until what is built in turns of its own is there."""
        QTest.qWait(700)

    def show(self, scene: str) -> None:
        """Bring the window to where it shows ``scene``, from wherever it was."""
        window = self.window
        window.show_page(_PAGES.get(scene, CHATS))
        if scene in ("chat", "palette"):
            self._open(0)
        match scene:
            case "palette":
                window.shell.palette.open()
                QTest.keyClicks(window.shell.palette.edit, "re")
            case "speed":
                self._figures_are_there()
            case "models":
                self._models_without_the_hub()
            case "drafting":
                self._begin_an_answer()
                window.chat.speed.open_panel()
            case "empty":
                window.session.controller.new_chat()

    def leave(self, scene: str) -> None:
        """Close what was opened for ``scene``."""
        if scene == "palette":
            self.window.shell.palette.close_palette()
        elif scene == "drafting":
            self.window.session.controller.stop()
            self.until(lambda: not self.window.session.controller.busy)
            self.window.chat.speed.close_panel()

    def _models_without_the_hub(self) -> None:
        """What the catalogue alone knows; that nobody was asked need not be said in a picture."""
        page = self.window.page(MODELS)
        assert isinstance(page, ModelsPage)
        self.until(lambda: page.suggested.offline)
        page.suggested.group.say("")

    def _figures_are_there(self) -> None:
        page = self.window.page(SPEED)
        assert isinstance(page, SpeedPage)
        self.until(lambda: page.table.topLevelItemCount() > 0)

    def _open(self, number: int) -> Chat:
        session = self.window.session
        title = showcase.TITLES[number][0]
        chat = next(chat for chat in session.store.chats() if chat.title == title)
        session.controller.chats.open(chat.id)
        return chat

    def _begin_an_answer(self) -> None:
        session = self.window.session
        chat = self._open(2)
        session.controller.send(showcase.QUESTION)
        flight = session.controller._answering.of(chat)
        assert flight is not None
        self.until(lambda: flight.request_id is not None)
        self.until(lambda: flight.answer.state == "reading")
        passes = list(showcase.passes(showcase.ANSWER, 7, request_id=flight.request_id or 0))
        session._take(list(passes[: len(passes) * 4 // 5]))

    def close(self) -> None:
        self.window.quit()
        self.window.deleteLater()
        self._theme.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def take(folder: Path, homes: Path, names: Sequence[str] | None = None) -> list[Path]:
    """All pictures, or those of these scenes. A QApplication is there; SLIPSTREAM_HOME is moved into
    ``homes``."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.setCursorFlashTime(0)
    QCursor.setPos(5000, 5000)  # over nothing
    taken: list[Path] = []
    for choice in THEMES:
        home = homes / choice
        os.environ["SLIPSTREAM_HOME"] = str(home)
        photographer = Photographer(application, home, showcase.make_home(home), choice)
        try:
            for name in SCENES if names is None else names:
                photographer.show(name)
                for width, height in SIZES:
                    photographer.window.resize(width, height)
                    photographer.settle()
                    path = folder / f"{name}-{choice}-{width}x{height}.png"
                    photographer.window.grab().save(str(path))
                    taken.append(path)
                photographer.leave(name)
        finally:
            photographer.close()
    return taken


def _one_machine() -> None:
    """What fits depends on the machine's memory and disk: in the pictures it is always the same one."""
    memory = SimpleNamespace(total=16 * 2**30, available=11 * 2**30, percent=31.0)
    psutil.virtual_memory = lambda: memory
    disk = SimpleNamespace(total=500_000_000_000, used=280_000_000_000, free=220_000_000_000)
    shutil.disk_usage = lambda path: disk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=_FOLDER / "build" / "screenshots")
    parser.add_argument("--only", action="append", choices=SCENES, help="may be repeated")
    parser.add_argument("--only-folder", action="store_true", help="leave the pictures of the README alone")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["HF_HUB_OFFLINE"] = "1"
    _one_machine()
    with tempfile.TemporaryDirectory() as homes:
        application = QApplication(sys.argv[:1])
        taken = take(options.folder, Path(homes), options.only)
        del application
    if options.only is None and not options.only_folder:
        for name, (scene, choice) in README.items():
            picture = options.folder / f"{scene}-{choice}-{SIZES[0][0]}x{SIZES[0][1]}.png"
            (_FOLDER / "assets" / "screenshots" / f"{name}.png").write_bytes(picture.read_bytes())
    print(f"{len(taken)} pictures in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
