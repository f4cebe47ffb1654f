"""llama.cpp's own server as a peer: the same prompts, token by token, through another program."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from app.bench.player import GREEDY, BenchError
from app.protocol import EngineOptions, SamplingParams
from model_store.check import ModelFileError, read_model_file
from model_store.drafting_kind import DraftKind, drafting_kind, heads_inside

PLAIN = "none"

_SPEC_TYPES = re.compile(r"--spec-type\s+\[?([a-z0-9-]+(?:[,|][a-z0-9-]+)+)")
# What it calls each way of drafting; versions differ in the first.
_DRAFT_TYPES: dict[DraftKind | None, tuple[str, ...]] = {
    "draft": ("draft-simple", "draft"),
    "eagle3": ("draft-eagle3",),
    "mtp": ("draft-mtp",),
    "dflash": ("draft-dflash",),
    "dspark": ("draft-dspark",),
}

_START_S = 300.0  # a large model on a slow disk
_ANSWER_S = 3600.0
_POLL_S = 0.02
_END_S = 10.0


class _Timings(Struct):
    predicted_n: int
    predicted_per_second: float
    draft_n: int = 0
    draft_n_accepted: int = 0


class Completion(Struct):
    """One answer of the server; it leaves the first token out of its speed, as we do."""

    timings: _Timings
    tokens: list[int] = []


@dataclass(frozen=True)
class Peer:
    """A llama-server binary. Every ``play`` starts a server of its own, so that no pool is warm.

    ``settings`` are further arguments of it; ``log`` is where its last log is kept, if anywhere.
    """

    binary: Path
    settings: tuple[str, ...] = ()
    log: Path | None = None

    def spec_types(self, models: Sequence[Path], draft_model: Path | None) -> tuple[str, ...]:
        """What its ``--spec-type`` offers that can work with all of them, ``none`` first.

        Raises BenchError.
        """
        try:
            done = subprocess.run(
                [str(self.binary), "--help"], capture_output=True, text=True, errors="replace", timeout=60
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BenchError(f"the peer cannot be run: {error}") from error
        found = _SPEC_TYPES.search(done.stdout + done.stderr)
        if found is None:
            raise BenchError(f"{self.binary} --help offers no --spec-type")
        offered = re.split(r"[,|]", found[1])
        wanted = _draft_types(draft_model) if draft_model else _types_inside(models)
        draft = [name for name in wanted if name in offered][:1]
        return (PLAIN, *(name for name in offered if name.startswith("ngram")), *draft)

    def play(
        self,
        model: Path,
        draft_model: Path | None,
        spec_type: str,
        prompts: Sequence[Sequence[int]],
        options: EngineOptions,
        max_tokens: int,
        sampling: SamplingParams = GREEDY,
        seed: int = 0,
    ) -> list[Completion]:
        """One answer for each prompt (a list of token ids), in order. Raises BenchError."""
        port = _free_port()
        command = [str(self.binary), *_arguments(model, options, port), "--spec-type", spec_type]
        if spec_type.startswith("draft") and draft_model is not None:
            command += ["--model-draft", str(draft_model)]
        command += self.settings
        with (
            self.log.open("w+b") if self.log is not None else tempfile.TemporaryFile() as log,
            _guarded(command, log) as server,
        ):
            _wait_until_ready(server, port, log)
            how = _sampling(sampling) | {"n_predict": max_tokens, "seed": seed}
            return [_complete(server, port, {"prompt": list(prompt), **how}, log) for prompt in prompts]


def _draft_types(draft_model: Path) -> tuple[str, ...]:
    try:
        kind = drafting_kind(read_model_file(draft_model))
    except ModelFileError as error:
        raise BenchError(str(error), "bad_model") from error
    return _DRAFT_TYPES.get(kind, ())


def _types_inside(models: Sequence[Path]) -> tuple[str, ...]:
    """What works without a file of its own. One that cannot be read is refused when it is loaded."""
    try:
        return _DRAFT_TYPES["mtp"] if all(heads_inside(read_model_file(path)) for path in models) else ()
    except ModelFileError:
        return ()


def _arguments(model: Path, options: EngineOptions, port: int) -> list[str]:
    """The same sizes, threads and types as ours; one slot, so that it gets the whole context."""
    values = {
        "--model": model,
        "--host": "127.0.0.1",
        "--port": port,
        "--ctx-size": options.n_ctx,
        "--batch-size": options.n_batch,
        "--ubatch-size": options.n_batch,
        "--threads": options.n_threads,
        "--threads-batch": options.n_threads,
        "--n-gpu-layers": options.n_gpu_layers,
        "--flash-attn": options.flash_attention,
        "--cache-type-k": options.kv_type,
        "--cache-type-v": options.kv_type,
        "--parallel": 1,
    }
    return [str(word) for pair in values.items() for word in pair] + ["--no-webui"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _guarded(command: Sequence[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The command behind a guard that ends it with us, and with this block."""
    guard = [sys.executable, "-m", "app.bench.guard", *command]
    with subprocess.Popen(guard, stdin=subprocess.PIPE, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if server.poll() is not None:
            raise _died(server, log)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_END_S)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                return
        except (OSError, http.client.HTTPException):
            pass  # it does not listen yet
        finally:
            connection.close()
        time.sleep(_POLL_S)
    raise BenchError(f"the peer was not ready after {_START_S:.0f} s")


def _sampling(sampling: SamplingParams) -> dict[str, object]:
    """The same for the server, which would put further samplers into its chain."""
    return {
        "samplers": ["penalties", "top_k", "top_p", "min_p", "temperature"],
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_last_n": sampling.penalty_last_n,
        "repeat_penalty": sampling.repeat_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
    }


def _complete(
    server: subprocess.Popen[bytes], port: int, request: dict[str, object], log: IO[bytes]
) -> Completion:
    request = request | {"cache_prompt": False, "return_tokens": True}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/completion", msgspec.json.encode(request), headers)
        response = connection.getresponse()
        status, body = response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_END_S)
        if server.poll() is not None:
            raise _died(server, log) from error
        raise BenchError(f"the peer does not answer: {error}") from error
    finally:
        connection.close()
    if status != http.client.OK:
        raise BenchError(f"the peer refuses the prompt ({status}): {_last_line(body)}")
    try:
        return msgspec.json.decode(body, type=Completion)
    except msgspec.DecodeError as error:
        raise BenchError(f"the peer's answer cannot be read: {error}") from error


def _died(server: subprocess.Popen[bytes], log: IO[bytes]) -> BenchError:
    log.seek(0)
    words = _last_line(log.read())
    return BenchError(f"the peer ended with status {server.returncode}" + (f": {words}" if words else ""))


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
