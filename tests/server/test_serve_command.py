"""``slipstream serve`` as a program: it serves, says what it lacks, and ends when it is asked to."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.cli import main
from tests.tiny_gguf import write_llama

WAIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def program(*arguments: str) -> Iterator[psutil.Popen]:
    process = psutil.Popen(
        [sys.executable, "-m", "app", "serve", *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until_up(url: str, process: psutil.Popen) -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("it does not serve")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_answers_until_it_is_told_to_end(tmp_path: Path, private_home: Path) -> None:
    """And what was asked of it is written down nowhere."""
    model, port = write_llama(tmp_path / "tiny.gguf"), free_port()
    url = f"http://127.0.0.1:{port}"
    with program("-m", str(model), "--port", str(port), "--no-learn", "--ctx", "512") as process:
        until_up(url, process)
        body = {"model": "tiny", "messages": [{"role": "user", "content": "secret words"}], "stream": True}
        lines: list[str] = []
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=WAIT_S) as answer:
            assert answer.status_code == 200
            for line in answer.iter_lines():
                lines.append(line)
                if len(lines) == 6:
                    children = process.children()
                    process.send_signal(signal.SIGTERM)
        text = "\n".join(lines)
        # It may have said its last word before the signal came; else it was cut, and says so.
        assert ("being stopped" in text) is not ("[DONE]" in text)
        _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0 and b"Traceback" not in errors
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert gone and not alive
    kept = [errors, *(file.read_bytes() for file in private_home.rglob("*") if file.is_file())]
    for written in kept:
        assert b"secret words" not in written and str(tmp_path).encode() not in written


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_keys_that_end_a_program_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    """J08 beside: a second one does not get the port, and says so."""
    port = free_port()
    with program("--port", str(port)) as process:
        until_up(f"http://127.0.0.1:{port}", process)
        assert main(["serve", "--port", str(port)]) == 1
        assert f"Port {port} is in use by another program" in capsys.readouterr().err
        for _ in range(2):  # somebody without patience
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0 and b"Traceback" not in errors


def test_other_machines_need_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """J02."""
    monkeypatch.delenv("SLIPSTREAM_API_KEY", raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", ""):
        assert main(["serve", "--host", "127.0.0.1", "--host", host]) == 2
        assert "API key" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "-m", "nothing-of-the-kind"]) == 2
    assert "nothing-of-the-kind" in capsys.readouterr().err
