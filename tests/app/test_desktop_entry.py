"""The entry in a desktop's menu: what is written, that a desktop reads it, and that it goes again."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app import desktop_entry
from app.cli import main
from app.desktop_entry import entry_path, entry_state, exec_word, icon_path, install_entry, remove_entry

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
pytestmark = pytest.mark.skipif(not desktop_entry.has_menu(), reason="no menu entries here")


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path / "share"


def fields() -> dict[str, str]:
    lines = entry_path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == "[Desktop Entry]"
    return dict(line.split("=", 1) for line in lines[1:])


def test_it_is_put_there_with_its_icon_and_taken_away(data_home: Path) -> None:
    assert entry_state() == "none" and not remove_entry()
    install_entry()
    assert entry_state() == "ours"
    found = sorted(str(path.relative_to(data_home)) for path in data_home.rglob("slipstream*"))
    assert found == ["applications/slipstream.desktop", "icons/hicolor/scalable/apps/slipstream.svg"]
    assert icon_path().read_bytes().lstrip().startswith(b"<svg")
    for path in (entry_path(), icon_path()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert remove_entry()
    assert not list(data_home.rglob("slipstream*")) and entry_state() == "none"


def test_what_it_starts_is_this_program() -> None:
    install_entry()
    entry = fields()
    program, command, field = shlex.split(entry["Exec"])
    assert (command, field) == ("open", "%u") and entry["TryExec"] == program
    assert Path(program).parent == Path(sys.executable).parent
    helped = subprocess.run([program, "open", "--help"], capture_output=True, text=True, timeout=120)
    assert helped.returncode == 0 and "slipstream:chat/" in helped.stdout
    # A menu has nothing to open in it, and no terminal to complain on.
    bare = {name: value for name, value in os.environ.items() if name not in _DISPLAYS}
    alone = subprocess.run([program, command], capture_output=True, text=True, timeout=120, env=bare)
    assert "there is no display" in alone.stderr and alone.returncode == 1
    assert entry["Icon"] == icon_path().stem


def test_one_of_another_place_is_told_apart_and_renewed() -> None:
    install_entry()
    text = entry_path().read_text(encoding="utf-8").replace("Exec=/", "Exec=/gone/")
    entry_path().write_text(text, encoding="utf-8")
    assert entry_state() == "other"
    install_entry()
    assert entry_state() == "ours"


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/usr/bin/slipstream", "/usr/bin/slipstream"),
        ("/home/Jo Ann/bin", '"/home/Jo Ann/bin"'),
        ("/a$b/100%", '"/a\\\\$b/100%%"'),
        ('/with"quote', '"/with\\\\"quote"'),
        ("/back\\slash", '"/back\\\\\\\\slash"'),
        ("/Žofie/模型", "/Žofie/模型"),
    ],
)
def test_paths_are_quoted_as_the_specification_says(word: str, written: str) -> None:
    assert exec_word(word) == written


def test_a_relative_data_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "share")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert entry_path() == tmp_path / ".local" / "share" / "applications" / "slipstream.desktop"


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*options: str) -> tuple[int, str]:
        status = main(["desktop-entry", *options])
        return status, capsys.readouterr().out

    assert said() == (0, "Slipstream is not in the menu; --install puts it there.\n")
    assert said("--install") == (0, f"Slipstream is in the menu: {entry_path()}\n")
    assert said() == (0, f"Slipstream is in the menu: {entry_path()}\n")
    assert said("--remove") == (0, "Slipstream is not in the menu any more.\n")
    assert not entry_path().exists()
    entry_path().parent.parent.mkdir(exist_ok=True)
    entry_path().parent.rmdir()
    entry_path().parent.write_text("in the way")
    assert main(["desktop-entry", "--install"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
