"""Slipstream in the menu of a Linux desktop, for one person: an entry and its icon, put there or taken away.

The format is freedesktop.org's Desktop Entry Specification.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from app import paths
from model_store.files import write_atomically

EntryState = Literal["none", "ours", "other"]  # "other": it starts a Slipstream in another place
_QUOTED = '"`$\\'
_UPDATE_S = 20.0


def has_menu() -> bool:
    """Whether this system has such entries."""
    return sys.platform not in ("win32", "darwin")


def entry_path() -> Path:
    return _data_home() / "applications" / "slipstream.desktop"


def icon_path() -> Path:
    return _data_home() / "icons" / "hicolor" / "scalable" / "apps" / "slipstream.svg"


def entry_state() -> EntryState:
    """What is in the menu now. Raises OSError where that cannot be read."""
    try:
        there = entry_path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return "none"
    return "ours" if there == _entry() else "other"


def install_entry() -> None:
    """Put the entry there, or renew it. Raises OSError."""
    content = _entry()
    for path in (icon_path(), entry_path()):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(icon_path(), (paths.assets_dir() / "slipstream.svg").read_bytes())
    write_atomically(entry_path(), content.encode())
    for path in (icon_path(), entry_path()):
        path.chmod(0o644)  # other programs of the desktop read them
    _tell_desktop()


def remove_entry() -> bool:
    """Take it away; whether there was one. Raises OSError."""
    was = entry_path().exists()
    for path in (entry_path(), icon_path()):
        path.unlink(missing_ok=True)
    if was:
        _tell_desktop()
    return was


def exec_word(word: str) -> str:
    """One argument for the key Exec, quoted where the specification wants it: in double quotes, then as a
    string of the file."""
    if any(character in word for character in " \t\n\"'\\><~|&;$*?#()`"):
        escaped = "".join("\\" + character if character in _QUOTED else character for character in word)
        word = f'"{escaped}"'
    return word.replace("\\", "\\\\").replace("%", "%%")


def _entry() -> str:
    """The entry that comes with the program, for the program where it is now."""
    program = _program()
    words = " ".join(exec_word(word) for word in (*program, "open"))
    lines: list[str] = []
    packaged = paths.assets_dir().parent / "packaging" / "slipstream.desktop"
    for line in packaged.read_text(encoding="utf-8").splitlines():
        if line.startswith("Exec="):
            tried = program[0].replace("\\", "\\\\")
            lines += [f"TryExec={tried}", f"Exec={words} %u"]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _program() -> tuple[str, ...]:
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    # Beside the interpreter, which in a virtual environment is a link: not where that leads to.
    script = Path(sys.executable).with_name("slipstream")
    return (str(script),) if script.exists() else (sys.executable, "-m", "app")


def _data_home() -> Path:
    home = os.environ.get("XDG_DATA_HOME", "")
    # A relative path is to be ignored.
    return Path(home) if home.startswith("/") else Path.home() / ".local" / "share"


def _tell_desktop() -> None:
    """Links of ours lead here once the list of who opens what is made anew. Not every desktop has one."""
    update = shutil.which("update-desktop-database")
    if update is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [update, "-q", str(entry_path().parent)], timeout=_UPDATE_S, check=False, capture_output=True
            )
