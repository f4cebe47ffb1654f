"""Finds what the machine lacks before anything is built, and names it in one message with one apt line."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIN_FREE_BYTES = (
    3 * 10**9
)  # the virtual environment takes 1.2 GB, building llama.cpp as much again for a while

# What `ldd` names outside PySide6's own folder for QtCore, QtGui, QtWidgets and the offscreen
# platform, and the Debian package that brings it.
QT_LIBRARIES = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libX11.so.6": "libx11-6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
# The same for the platforms that show a window: libqxcb.so and libqwayland.so.
XCB_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libX11-xcb.so.1": "libx11-xcb1",
}
WAYLAND_LIBRARIES = {
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
}


def can_load(library: str) -> bool:
    """Whether the dynamic loader finds ``library`` and all that it needs itself."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def can_compile(compiler: list[str], suffix: str, source: str) -> bool:
    """Whether ``compiler`` makes a program: a compiler without its C library's headers is of no use."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"probe{suffix}"
        file.write_text(source)
        try:
            command = [*compiler, str(file), "-o", str(file.with_suffix(".out"))]
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


@dataclass
class Machine:
    """The machine as the checks see it; tests put another in its place."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    is_linux: bool = sys.platform == "linux"
    which: Callable[[str], str | None] = shutil.which
    has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None
    can_load: Callable[[str], bool] = can_load
    can_compile: Callable[[list[str], str, str], bool] = can_compile
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


@dataclass(frozen=True)
class Missing:
    """One thing that is not there. ``package`` is the Debian package that brings it, if one does."""

    what: str
    package: str | None


def missing_for_building(machine: Machine, folder: Path) -> list[Missing]:
    """What stands in the way of making the virtual environment in ``folder``."""
    missing: list[Missing] = []
    if not (machine.has_module("venv") and machine.has_module("ensurepip")):
        missing.append(Missing("Python's venv and ensurepip modules", "python3-venv"))
    for language, variable, names, suffix, source in (
        ("C", "CC", ("cc", "gcc", "clang"), ".c", "#include <stdio.h>\nint main(void) { return 0; }\n"),
        ("C++", "CXX", ("c++", "g++", "clang++"), ".cc", "#include <vector>\nint main() { return 0; }\n"),
    ):
        named = machine.environment.get(variable, "").split()
        compiler = named or [name for name in names if machine.which(name)][:1]
        if not compiler:
            missing.append(Missing(f"a {language} compiler", "build-essential"))
        elif not machine.can_compile(compiler, suffix, source):
            what = f"a {language} compiler that works ({' '.join(compiler)} cannot build an empty program)"
            missing.append(Missing(what, "build-essential"))
    if machine.which("cmake") is None:
        missing.append(Missing("cmake", "cmake"))
    free = machine.free_bytes(folder)
    if free < MIN_FREE_BYTES:
        what = (
            f"disk space: {free / 1e9:.1f} GB are free in {folder}, {MIN_FREE_BYTES / 1e9:.0f} GB are needed"
        )
        missing.append(Missing(what, None))
    return missing


def missing_for_qt(machine: Machine, *, window: bool) -> list[Missing]:
    """System libraries that Qt lacks to run unseen, or to show a window."""
    if not machine.is_linux:
        return []
    libraries = dict(QT_LIBRARIES)
    if window and not machine.environment.get("QT_QPA_PLATFORM"):
        if machine.environment.get("DISPLAY"):
            libraries |= XCB_LIBRARIES
        else:
            libraries |= WAYLAND_LIBRARIES
    return [
        Missing(library, package) for library, package in libraries.items() if not machine.can_load(library)
    ]


def has_display(machine: Machine) -> bool:
    """Whether a window could be shown. A named Qt platform is taken at its word."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not machine.is_linux or any(machine.environment.get(name) for name in names)


def packages(missing: Iterable[Missing]) -> list[str]:
    """The Debian packages to install, each once, in order."""
    return list(dict.fromkeys(item.package for item in missing if item.package is not None))


def explain(missing: list[Missing]) -> str:
    """One message for all that is missing, with one command to install it."""
    lines = ["Slipstream cannot be set up or started yet. Missing on this machine:"]
    lines += [f"  - {item.what}" for item in missing]
    if packages(missing):
        lines += [
            "On Debian or Ubuntu, install it with:",
            f"  sudo apt install {' '.join(packages(missing))}",
        ]
    return "\n".join(lines)


def explain_no_display(command: str, *, is_set_up: bool) -> str:
    """What to do where no window can be shown."""
    lines = [
        f"There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so `{command}` cannot open",
        "its window. Slipstream also works in a terminal, with `slipstream chat`:",
        '  .venv/bin/slipstream chat "Why is the sky blue?"',
    ]
    if not is_set_up:
        lines.insert(2, "  make setup")
    return "\n".join(lines)
