"""One window for one home folder, whoever starts when and whatever a crash left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from ui.shell.opening import Opening, chat_link, decode, encode, opening
from ui.shell.single_instance import SingleInstance

# Takes the lock and listens until it is killed; says so on standard output.
_HOLDER = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from ui.shell.single_instance import SingleInstance
application = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
assert instance.acquire()
instance.listen()
print("listening", flush=True)
application.exec()
"""
# Starts as the program does; says how it went, and goes on until its standard input ends.
_STARTER = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from ui.shell.opening import Opening
from ui.shell.single_instance import SingleInstance
application = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
sys.stdin.readline()
first = instance.first(Opening(), 30)
print(first, flush=True)
if first:
    instance.listen()
    import threading
    def wait():
        sys.stdin.readline()
        application.quit()
    threading.Thread(target=wait).start()
    application.exec()
"""


@pytest.fixture
def first(tmp_path: Path) -> Iterator[SingleInstance]:
    instance = SingleInstance(tmp_path)
    assert instance.first(Opening()) is True
    yield instance
    instance.close()


def second_start(
    folder: Path, wanted: Opening, patience_s: float = 20.0
) -> tuple[threading.Thread, list[object]]:
    """Another start in a thread: the first needs this one to run its event loop."""
    result: list[object] = []
    thread = threading.Thread(
        target=lambda: result.append(SingleInstance(folder).first(wanted, patience_s)), name="second-start"
    )
    thread.start()
    return thread, result


def test_a_second_start_hands_over_what_it_was_asked_to_open(
    first: SingleInstance, tmp_path: Path, qtbot: QtBot
) -> None:
    first.listen()
    heard: list[Opening] = []
    first.asked.connect(heard.append)
    for wanted in (Opening(model="/x/größe.gguf", token="t"), Opening(chat=7)):
        thread, result = second_start(tmp_path, wanted)
        qtbot.waitUntil(lambda result=result: bool(result), timeout=30_000)
        thread.join()
        assert result == [False]
    assert heard == [Opening(model="/x/größe.gguf", token="t"), Opening(chat=7)]


def test_a_start_before_the_first_listens_waits_for_it(
    first: SingleInstance, tmp_path: Path, qtbot: QtBot
) -> None:
    thread, result = second_start(tmp_path, Opening())
    qtbot.wait(150)
    assert not result
    first.listen()
    qtbot.waitUntil(lambda: bool(result), timeout=30_000)
    thread.join()
    assert result == [False]


def test_a_first_that_does_not_answer_is_told_apart(first: SingleInstance, tmp_path: Path) -> None:
    assert SingleInstance(tmp_path).first(Opening(), 0.1) is None


def test_when_the_first_has_ended_the_next_is_first(tmp_path: Path) -> None:
    instance = SingleInstance(tmp_path)
    assert instance.first(Opening())
    instance.listen()
    instance.close()
    after = SingleInstance(tmp_path)
    assert after.first(Opening()) is True
    after.close()


def test_other_home_folders_have_windows_of_their_own(first: SingleInstance, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = SingleInstance(tmp_path / "other")
    assert other.first(Opening()) is True
    assert other.name != first.name
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_a_kill_left_behind_is_in_nobodys_way(tmp_path: Path, qtbot: QtBot) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "listening\n"
    assert not SingleInstance(tmp_path).acquire()
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    instance = SingleInstance(tmp_path)
    assert instance.first(Opening()) is True
    instance.listen()
    heard: list[Opening] = []
    instance.asked.connect(heard.append)
    thread, result = second_start(tmp_path, Opening(chat=1))
    qtbot.waitUntil(lambda: bool(result), timeout=30_000)
    thread.join()
    instance.close()
    assert (result, heard) == ([False], [Opening(chat=1)])


def test_of_many_starts_at_once_one_is_first(tmp_path: Path) -> None:
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", _STARTER, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for start in starts:
        assert start.stdin is not None
        start.stdin.write("go\n")
        start.stdin.flush()
    said = [start.stdout.readline().strip() for start in starts if start.stdout is not None]
    for start in starts:
        start.communicate("end\n", timeout=60)
    assert sorted(said) == ["False", "False", "False", "True"]


def test_nonsense_on_the_socket_is_not_taken(first: SingleInstance, qtbot: QtBot) -> None:
    first.listen()
    heard: list[Opening] = []
    first.asked.connect(heard.append)
    for content in (b"x" * 40_000, b"no json\n", b'{"chat": "x"}\n', b"\xff\n"):
        socket = QLocalSocket()
        socket.connectToServer(first.name)
        socket.write(content)
        qtbot.waitUntil(
            lambda socket=socket: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState,
            timeout=20_000,
        )
    assert heard == []


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], Opening()),
        (["/m/a b.GGUF"], Opening(model="/m/a b.GGUF")),
        (["file:///m/a%20b.gguf"], Opening(model="/m/a b.gguf")),
        ([chat_link(12)], Opening(chat=12)),
        (["slipstream://chat/12/"], Opening(chat=12)),
        (["slipstream:chat/x"], Opening()),
        (["slipstream:chat/1?x=.gguf"], Opening(model=str(Path("slipstream:chat/1?x=.gguf").absolute()))),
        (["--what", "readme.txt"], Opening()),
    ],
)
def test_what_a_start_is_asked_to_open(arguments: list[str], wanted: Opening) -> None:
    assert opening(arguments, {}) == wanted


def test_an_opening_survives_the_way() -> None:
    for one in (Opening(), Opening(model="/é\n.gguf"), Opening(chat=2**62, token="a")):
        assert decode(encode(one)) == one
        assert b"\n" not in encode(one)


def test_the_command_line_opens_one_thing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "open", "a.gguf", "b.gguf"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "slipstream" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_command_line_hands_a_chat_to_the_window_that_is_open(private_home: Path, qtbot: QtBot) -> None:
    folder = private_home / "data"
    folder.mkdir(parents=True)
    instance = SingleInstance(folder)
    assert instance.first(Opening()) is True
    instance.listen()
    heard: list[Opening] = []
    instance.asked.connect(heard.append)
    second = subprocess.Popen([sys.executable, "-m", "app", "open", "slipstream:chat/12"])
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=60_000)
    instance.close()
    assert second.returncode == 0
    assert [one.chat for one in heard] == [12]
