"""A restless person in the window over the fake engine: ``python -m tests.ui.random_actions``.

Every step draws from a generator of its own, made of the seed and the step's number, so that a failure can
be cut down: ``--only 3,17,25`` does those steps alone, as they were. Fails on an exception, a warning of
Qt's, a step that keeps the processor for more than a second, or a file of chats that is not what was shown.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import re
import secrets
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import msgspec
import psutil
from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import (
    QEvent,
    QMessageLogContext,
    QMimeData,
    QObject,
    QPoint,
    QPointF,
    Qt,
    QTimer,
    QtMsgType,
    QUrl,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtGui import QDesktopServices, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QMenu

from app.settings import Settings
from app.worker.fake_script import FakeReply, FakeScript
from tests.ui.dragging import dropped
from tests.ui.kept_chats import Shown, as_shown, problems
from tests.ui.layout_items import known_items
from ui.main_window import CHATS, MODELS, SETTINGS, SPEED, MainWindow
from ui.shell.garbage import GarbageCollector

LONGEST_STEP_S = 1.0
_TURN_MS = 4
_SETTLE_S = 60.0
_IGNORED = re.compile(r"^This plugin does not support |systemTrayWindowChanged")
_TEXTS = (
    "hi",
    "Rename `rows` to `records`:\n```python\nrows = []\n```",
    "שלום, x = 1!",
    "👩‍💻漢字é",
    "<img src=x> & <b>bold</b>",
    "  ",
    "a\x00b",
    "word " * 400,
    "'; DROP TABLE chats;--",
)
_MODIFIERS = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier)
_KEYS = (
    Qt.Key.Key_Tab,
    Qt.Key.Key_Backtab,
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_Return,
    Qt.Key.Key_Space,
    Qt.Key.Key_Escape,
    Qt.Key.Key_F2,
    Qt.Key.Key_F6,
    Qt.Key.Key_Delete,
    Qt.Key.Key_A,
)
SCRIPT = FakeScript(
    replies=(
        FakeReply(text="You said: {prompt}", tokens_per_second=3000, drafts=((4, 3), (0, 0))),
        FakeReply(
            text="Some words.\n\n```python\ndef f(x):\n    return x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
        ),
        FakeReply(text="word " * 3000, tokens_per_second=800, drafts=((3, 3), (8, 1))),
        FakeReply(text="<think>\nI wonder.\n</think>\nThe answer is $x^2$.", tokens_per_second=900),
        FakeReply(text="- a list\n" * 200, tokens_per_second=5000, drafters=("suffix", "eagle3")),
        FakeReply(text="this fails", fail="the script says so", at=1),
        FakeReply(text="slow to begin", prefill_s=0.3),
        FakeReply(text="", tokens_per_second=100),
    ),
    load_s=0.05,
)


class Step(Struct, frozen=True):
    """``took_s`` is the main thread's time on a processor."""

    number: int
    name: str
    detail: str
    took_s: float


class Stranger(QObject):
    """Takes addresses that would be opened in other programs."""

    @Slot(QUrl)
    def take(self, url: QUrl) -> None:
        """They stay here."""


class Person:
    """Does one random thing after another. ``steps`` is what was done."""

    def __init__(
        self,
        window: MainWindow,
        seed: int,
        files: Path,
        about_to: Callable[[int, str], None] = lambda *_: None,
    ) -> None:
        self.window = window
        self.seed = seed
        self.steps: list[Step] = []
        self._about_to = about_to
        self.files = _some_files(files)
        self._chance = random.Random()
        self._stranger = Stranger()
        for scheme in ("file", "http", "https", "mailto"):
            QDesktopServices.setUrlHandler(scheme, self._stranger, "take")
        # Menus and dialogs run loops of their own: a step is not over before they are left.
        self._leave = QTimer()
        self._leave.setInterval(15)
        self._leave.timeout.connect(self._leave_popup)
        self._leave.start()
        self._actions: tuple[tuple[int, Callable[[], str]], ...] = (
            (14, self._type),
            (14, self._send),
            (5, self._stop),
            (6, self._new_chat),
            (9, self._switch_chat),
            (3, self._delete_chat),
            (3, self._undo),
            (4, self._change_chat),
            (12, self._message),
            (6, self._switch_version),
            (8, self._settings),
            (7, self._page),
            (4, self._resize),
            (4, self._palette),
            (4, self._find),
            (1, self._kill_worker),
            (2, self._restart),
            (3, self._drop),
            (16, self._click),
            (12, self._key),
            (6, self._wheel),
            (6, self._wait),
        )

    def close(self) -> None:
        self._leave.stop()
        for scheme in ("file", "http", "https", "mailto"):
            QDesktopServices.unsetUrlHandler(scheme)

    def run(self, numbers: Iterable[int]) -> None:
        """Do the steps with these numbers. Raises AssertionError for one that takes too long."""
        weights = [weight for weight, _ in self._actions]
        for number in numbers:
            self._chance = random.Random(f"{self.seed}/{number}")
            action = self._chance.choices(self._actions, weights)[0][1]
            self._about_to(number, action.__name__)
            began = time.thread_time()
            detail = action()
            QTest.qWait(self._chance.choice((0, 0, _TURN_MS)))
            took = time.thread_time() - began
            self.steps.append(Step(number, action.__name__.strip("_"), detail, took))
            assert took < LONGEST_STEP_S, f"step {number} took {took:.2f} s"

    def end(self) -> tuple[Shown, int | None]:
        """Let everything come to rest and close the window; returns what was shown last, and where."""
        self.close_others()
        controller = self.window.session.controller
        controller.stop()
        end = time.monotonic() + _SETTLE_S
        while controller.busy_chats:
            assert time.monotonic() < end, "an answer never ends"
            QTest.qWait(20)
        shown = as_shown(controller.conversation.messages)
        on_screen = as_shown([view.message for view in self.window.chat.messages.views()])
        assert on_screen == shown[len(shown) - len(on_screen) :], (
            "the page shows other messages than the chat has"
        )
        assert not known_items(), f"Python knows items of layouts: {known_items()}"
        chat = controller.chat.id if self.window.session.store.get(controller.chat.id) else None
        self.window.quit()
        return shown, chat

    # ---- what may be done

    def _type(self) -> str:
        text = self._chance.choice(_TEXTS)
        edit = self.window.chat.composer.edit
        edit.insertPlainText(text)
        return repr(text[:20])

    def _send(self) -> str:
        if not self.window.chat.composer.text().strip():
            self._type()
        QTest.keyClick(self.window.chat.composer.edit, Qt.Key.Key_Return)
        return ""

    def _stop(self) -> str:
        self.window.actions_["stop"].trigger()
        return ""

    def _new_chat(self) -> str:
        self.window.actions_["new_chat"].trigger()
        return ""

    def _some_chat(self) -> int | None:
        chats = self.window.session.store.chats()
        return self._chance.choice(chats).id if chats else None

    def _switch_chat(self) -> str:
        if (chat := self._some_chat()) is not None:
            self.window.chat.sidebar.list.opened.emit(chat)
        return str(chat)

    def _delete_chat(self) -> str:
        if (chat := self._some_chat()) is not None:
            self.window.chat.sidebar.list.deleted.emit(chat)
        return str(chat)

    def _undo(self) -> str:
        self.window.chat.sidebar.undo_asked.emit()
        return ""

    def _change_chat(self) -> str:
        chat = self._some_chat()
        if chat is None:
            return ""
        rows = self.window.chat.sidebar.list
        what = self._chance.choice(("rename", "pin", "move", "duplicate"))
        if what == "rename":
            rows.renamed.emit(chat, self._chance.choice(_TEXTS))
        elif what == "pin":
            rows.pinned.emit(chat, self._chance.random() < 0.5)
        elif what == "move":
            rows.moved.emit(chat, self._chance.choice(("", "Work", "שלום", "../x")))
        else:
            rows.duplicated.emit(chat)
        return f"{what} {chat}"

    def _message(self) -> str:
        messages = self.window.session.controller.conversation.messages
        if not messages:
            return ""
        message = self._chance.choice(messages)
        what = self._chance.choice(("regenerate", "edit", "edit", "continue", "delete", "speed"))
        self.window.chat.messages.message_acted.emit(message, what)
        if what == "edit" and self._chance.random() < 0.8:
            self._type()
            QTest.keyClick(self.window.chat.composer.edit, Qt.Key.Key_Return)
        return f"{what} {message.id}"

    def _switch_version(self) -> str:
        controller = self.window.session.controller
        several = [m for m in controller.conversation.messages if controller.versions(m)[1] > 1]
        if not several:
            return ""
        message = self._chance.choice(several)
        self.window.chat.messages.switched.emit(message, self._chance.choice((-1, 1)))
        return str(message.id)

    def _settings(self) -> str:
        name, values = self._chance.choice(
            (
                ("theme", ("light", "dark", "system")),
                ("zoom", (75, 100, 130, 200)),
                ("density", ("comfortable", "compact")),
                ("drafting", (True, False)),
                ("draft_mode", ("auto", "manual")),
                ("show_drafts", (True, False)),
                ("max_draft", (1, 16, 64)),
                ("temperature", (0.0, 0.8)),
                ("n_ctx", (2048, 4096, 8192)),
                ("system_prompt", ("", "Be brief.")),
                ("shortcuts", ({}, {"new_chat": "Ctrl+Shift+N"})),
                ("max_tokens", (0, 5)),
            )
        )
        value = self._chance.choice(values)
        session = self.window.session
        session.apply(replace(session.settings, **{name: value}))
        return f"{name}={value!r}"

    def _page(self) -> str:
        page = self._chance.choice((CHATS, CHATS, MODELS, SPEED, SETTINGS))
        self.window.show_page(page)
        return page

    def _resize(self) -> str:
        width, height = self._chance.randint(360, 1900), self._chance.randint(360, 1100)
        self.window.resize(width, height)
        return f"{width} x {height}"

    def _palette(self) -> str:
        palette = self.window.shell.palette
        self.window.actions_["palette"].trigger()
        if palette.isVisible():
            QTest.keyClicks(palette.edit, self._chance.choice(("", "new", "s", "zz", "chat")))
            for _ in range(self._chance.randint(0, 4)):
                QTest.keyClick(palette.edit, Qt.Key.Key_Down)
            quits = palette.list.currentIndex().data() == "Quit"
            QTest.keyClick(palette.edit, Qt.Key.Key_Escape if quits else Qt.Key.Key_Return)
        return ""

    def _find(self) -> str:
        chat = self.window.chat
        self.window.show_page(CHATS)
        self.window.actions_["find"].trigger()
        text = self._chance.choice(("", "a", "e ", "the", "|", "zz"))
        if chat.finding.bar is not None and chat.finding.shown:
            chat.finding.bar.field.setText(text)
        for _ in range(self._chance.randint(0, 4)):
            self.window.actions_[self._chance.choice(("find_next", "find_previous"))].trigger()
        if self._chance.random() < 0.5:
            chat.finding.close()
        return repr(text)

    def _kill_worker(self) -> str:
        pid = self.window.session.bridge.client.pid
        if pid is not None:
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        return str(pid)

    def _restart(self) -> str:
        if self.window.session.controller.state.phase != "lost":
            return ""
        self.window.session.restart(plain=self._chance.random() < 0.2)
        return "restarted"

    def _drop(self) -> str:
        files = self._chance.sample(self.files, self._chance.randint(1, 2))
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
        place = self._chance.choice((self.window, self.window.chat, self.window.chat.composer.edit))
        dropped(place, data, QPoint(10, 10))
        return ", ".join(file.name for file in files)

    def _click(self) -> str:
        buttons = [
            button
            for button in self.window.findChildren(QAbstractButton)
            if button.isVisible() and button.isEnabled() and not button.visibleRegion().isEmpty()
        ]
        button = self._chance.choice(buttons)
        name = button.accessibleName() or button.text() or type(button).__name__
        QTest.mouseClick(
            button, Qt.MouseButton.LeftButton, pos=button.visibleRegion().boundingRect().center()
        )
        return name

    def _key(self) -> str:
        key = self._chance.choice(_KEYS)
        QTest.keyClick(self.window.focusWidget() or self.window, key, self._chance.choice(_MODIFIERS))
        return key.name

    def _wheel(self) -> str:
        view = self.window.chat.messages.viewport()
        turn = QPoint(0, self._chance.choice((-480, -120, 120, 480)))
        middle = QPointF(view.rect().center())
        event = QWheelEvent(
            middle,
            QPointF(view.mapToGlobal(middle)),
            QPoint(),
            turn,
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(view, event)
        return str(turn.y())

    def _wait(self) -> str:
        QTest.qWait(self._chance.randint(1, 60))
        return ""

    # ---- what opens beside the window

    def close_others(self) -> None:
        """Leave every menu and dialog."""
        if (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, QDialog) and widget.isVisible():
                widget.reject()

    def _leave_popup(self) -> None:
        popup = QApplication.activePopupWidget()
        if popup is not None:
            if isinstance(popup, QMenu) and self._chance.random() < 0.6:
                QTest.keyClick(popup, Qt.Key.Key_Down)
                QTest.keyClick(popup, Qt.Key.Key_Return)
            if popup.isVisible():
                popup.close()
            return
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, QDialog) and widget.isVisible():
                self._leave_dialog(widget)
                return

    def _leave_dialog(self, dialog: QDialog) -> None:
        if not dialog.isModal() and self._chance.random() < 0.9:
            return  # it is in nobody's way
        dialog.reject()


class Watch:
    """Collects what must not happen: exceptions that nobody caught, and warnings of Python's and Qt's."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __enter__(self) -> Watch:
        self._hook = sys.excepthook
        sys.excepthook = self._exception
        self._handler = qInstallMessageHandler(self._message)
        self._show, warnings.showwarning = warnings.showwarning, self._warning
        warnings.simplefilter("always")
        return self

    def __exit__(self, *_: object) -> None:
        sys.excepthook = self._hook
        qInstallMessageHandler(self._handler)
        warnings.showwarning = self._show
        warnings.resetwarnings()

    def _warning(self, message: Warning | str, kind: type[Warning], file: str, line: int, *_: object) -> None:
        self.found.append(f"{file}:{line}: {kind.__name__}: {message}")

    def _exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self.found.append("".join(traceback.format_exception(kind, error, trace)))

    def _message(self, kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if kind not in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg) and not _IGNORED.search(text):
            self.found.append(f"Qt: {text}")


def _some_files(folder: Path) -> list[Path]:
    contents = {
        "toy.gguf": b"GGUF",
        "other.gguf": b"",
        "notes.txt": b"some words\n" * 50,
        "chats.json": b'{"format": "none"}',
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(200),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.random_actions", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--trace", action="store_true", help="print each step before it is done")
    parser.add_argument("--only", type=lambda text: [int(n) for n in text.split(",")], metavar="N,N,…")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    faulthandler.enable()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["HF_HUB_OFFLINE"] = "1"
    numbers = options.only or range(options.steps)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["SLIPSTREAM_HOME"] = str(home / "home")
        os.environ["XDG_DATA_HOME"] = str(home / "share")  # the desktop's menu is not to be changed
        with Watch() as watch:
            found = _run(home, seed, numbers, watch, options.trace)
    return 1 if found else 0


def _run(folder: Path, seed: int, numbers: Iterable[int], watch: Watch, trace: bool) -> bool:
    from app.settings import SettingsFile
    from ui.theme import Theme

    application = QApplication([])
    garbage = GarbageCollector(application)
    garbage.start()
    script = folder / "script.json"
    script.write_bytes(msgspec.json.encode(SCRIPT))
    model = folder / "files" / "toy.gguf"
    settings = Settings(model=str(model), offline=True)
    command = (sys.executable, "-m", "app.worker", "--fake", str(script))
    theme = Theme(application, settings.theme)
    _some_files(folder / "files")
    window = MainWindow(theme, SettingsFile(), settings, command)
    window.show()
    window.start()

    def about_to(number: int, name: str) -> None:
        if trace:
            print(f"  {number:6} {name}", flush=True)

    person = Person(window, seed, folder / "files", about_to)
    wrong: list[str] = []
    try:
        for number in numbers:
            person.run([number])
            if watch.found:
                break
            if number % 500 == 499:
                print(f"{number + 1} steps", flush=True)
        if not watch.found:
            shown, chat = person.end()
            wrong += problems(folder / "home" / "data" / "chats.db", shown, chat)
    except AssertionError as error:
        wrong.append(str(error))
    finally:
        person.close()
        window.quit()
        window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        garbage.stop()
    wrong += watch.found
    if wrong:
        for step in person.steps[-60:]:
            print(f"  {step.number:6} {step.name:14} {step.detail}")
        print(*wrong, sep="\n")
        print(f"failed after {len(person.steps)} steps: --seed {seed} --steps {len(person.steps)}")
        return True
    print(f"memory at the end {psutil.Process().memory_info().rss / 1e6:.0f} MB")
    slowest = max(person.steps, key=lambda step: step.took_s)
    print(f"{len(person.steps)} steps, none wrong; the slowest, {slowest.name}, took {slowest.took_s:.3f} s")
    print(
        *(f"{name} {count}" for name, count in Counter(step.name for step in person.steps).items()), sep=", "
    )
    return False


if __name__ == "__main__":
    sys.exit(main())
