"""What is missing is named before anything is built: all of it, in one message with one apt line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.scripts import FOLDER, load

preflight: Any = load("preflight")


def machine(
    *, without: Collection[str] = (), environment: dict[str, str] | None = None, free: int = 10**11
) -> Any:
    """A machine that has everything but the programs, modules and libraries in ``without``."""
    return preflight.Machine(
        environment=environment or {},
        is_linux=True,
        which=lambda name: None if name in without else f"/usr/bin/{name}",
        has_module=lambda name: name not in without,
        can_load=lambda name: name not in without,
        can_compile=lambda command, suffix, source: command[0] not in without,
        free_bytes=lambda path: free,
    )


def test_complete_machine_lacks_nothing(tmp_path: Path) -> None:
    assert preflight.missing_for_building(machine(), tmp_path) == []
    assert preflight.missing_for_qt(machine(environment={"DISPLAY": ":0"}), window=True) == []


def test_everything_missing_is_one_message_with_one_apt_line(tmp_path: Path) -> None:
    bare = machine(
        without={"cc", "gcc", "clang", "c++", "g++", "clang++", "cmake", "ensurepip", "libEGL.so.1",
                 "libxcb-cursor.so.0", "libglib-2.0.so.0", "libgthread-2.0.so.0"},
        environment={"DISPLAY": ":0"},
    )  # fmt: skip
    missing = preflight.missing_for_building(bare, tmp_path) + preflight.missing_for_qt(bare, window=True)
    text = preflight.explain(missing)
    apt = [line.strip() for line in text.splitlines() if "apt" in line]
    assert apt == ["sudo apt install python3-venv build-essential cmake libegl1 libglib2.0-0 libxcb-cursor0"]
    for word in ("a C compiler", "a C++ compiler", "cmake", "venv", "libEGL.so.1", "libxcb-cursor.so.0"):
        assert f"- {word}" in text or word in text


def test_compiler_without_headers_counts_as_missing(tmp_path: Path) -> None:
    [item] = preflight.missing_for_building(
        machine(without={"my-g++"}, environment={"CXX": "my-g++ -m64"}), tmp_path
    )
    assert item.package == "build-essential"
    assert "my-g++ -m64" in item.what


def test_full_disk_is_named_without_an_apt_line(tmp_path: Path) -> None:
    missing = preflight.missing_for_building(machine(free=10**9), tmp_path)
    text = preflight.explain(missing)
    assert "1.0 GB are free" in text
    assert "apt" not in text


def test_only_a_window_needs_the_libraries_that_show_one() -> None:
    shown = set(preflight.XCB_LIBRARIES) | set(preflight.WAYLAND_LIBRARIES)
    bare = machine(without=shown)
    assert preflight.missing_for_qt(bare, window=False) == []
    for environment, libraries in (
        ({"DISPLAY": ":0"}, preflight.XCB_LIBRARIES),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, preflight.XCB_LIBRARIES),
        ({"WAYLAND_DISPLAY": "w"}, preflight.WAYLAND_LIBRARIES),
        ({"QT_QPA_PLATFORM": "offscreen"}, {}),
    ):
        missing = preflight.missing_for_qt(machine(without=shown, environment=environment), window=True)
        assert {item.what for item in missing} == set(libraries)


def test_no_display_names_the_terminal_command() -> None:
    assert not preflight.has_display(machine())
    assert preflight.has_display(machine(environment={"WAYLAND_DISPLAY": "w"}))
    text = preflight.explain_no_display("make run", is_set_up=False)
    assert "slipstream chat" in text
    assert "make setup" in text
    assert "make setup" not in preflight.explain_no_display("make run", is_set_up=True)


def test_real_probes_tell_there_from_not_there(tmp_path: Path) -> None:
    assert preflight.can_load("libc.so.6")
    assert not preflight.can_load("libno-such-thing.so.1")
    compiler = shutil.which("cc")
    assert compiler is not None
    assert preflight.can_compile([compiler], ".c", "int main(void) { return 0; }\n")
    assert not preflight.can_compile([compiler], ".c", "#include <no_such_header.h>\n")
    assert not preflight.can_compile([str(tmp_path / "absent")], ".c", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
def test_lists_cover_what_qt_links_to() -> None:
    import PySide6

    folder = Path(PySide6.__file__).parent
    plugins = folder / "Qt" / "plugins" / "platforms"
    # what each C++ program has, and what comes with the libraries that are listed
    implied = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2"}
    listed = set(preflight.QT_LIBRARIES) | implied
    for files, libraries in (
        ([folder / "QtWidgets.abi3.so", plugins / "libqoffscreen.so"], listed),
        ([plugins / "libqxcb.so"], listed | set(preflight.XCB_LIBRARIES)),
        ([plugins / "libqwayland.so"], listed | set(preflight.WAYLAND_LIBRARIES)),
    ):
        needed = {name for name in needed_outside(folder, files) if not name.startswith("ld-linux")}
        assert needed <= libraries


def needed_outside(folder: Path, files: list[Path]) -> set[str]:
    """Sonames that ``files`` and the libraries bundled in ``folder`` name, and that are not bundled."""
    bundled = {path.name: path for path in (folder / "Qt" / "lib").iterdir()}
    bundled |= {path.name: path for path in [*folder.glob("*.so*"), *folder.parent.glob("shiboken6/*.so*")]}
    seen: set[str] = set()
    outside: set[str] = set()
    pending = list(files)
    while pending:
        path = pending.pop()
        output = subprocess.run(
            ["readelf", "--dynamic", "--wide", str(path)], capture_output=True, text=True, check=True,
            env={**os.environ, "LC_ALL": "C"},
        ).stdout  # fmt: skip
        for line in output.splitlines():
            if "(NEEDED)" not in line:
                continue
            name = line.split("[")[1].split("]")[0]
            if name in seen:
                continue
            seen.add(name)
            if name in bundled:
                pending.append(bundled[name])
            else:
                outside.add(name)
    return outside


def test_scripts_run_on_a_python_without_packages() -> None:
    script = str(FOLDER / "setup_env.py")
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy, sys; sys.path.insert(0, {str(FOLDER)!r});"
         f"sys.argv = ['x', 'test', '--list-missing']; runpy.run_path({script!r}, run_name='__main__')"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
