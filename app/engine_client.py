"""The program's side of the worker: one process, a reader thread, callbacks. Knows no Qt.

The worker's death is a normal event: requests in flight fail with a reason, a new worker starts and
the model is loaded again. Only three deaths within five minutes stop that, so that a crash loop
does not spin for ever; ``restart`` begins anew, and so does a request (``ask``) five minutes later.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import logging.handlers
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from app import paths, protocol
from app.frames import FrameError, FrameWriter, StreamClosed, read_frame
from app.process_exit import ProcessExit
from app.protocol import (
    Begun,
    Cancel,
    ChatMessage,
    Done,
    DraftingParams,
    Embed,
    Embedded,
    EngineOptions,
    Failed,
    FromWorker,
    Generate,
    Grammar,
    Hello,
    Load,
    Loaded,
    SamplingParams,
    Shutdown,
    ToWorker,
    Unload,
    Unloaded,
)
from native.huge_pages import with_huge_pages

log = logging.getLogger(__name__)

WORKER_COMMAND = (sys.executable, "-m", "app.worker")
CRASH_LIMIT = 3
CRASH_WINDOW_S = 300.0
_LONGEST_LOG_LINE = 8192


class WorkerLost(Struct, frozen=True):
    """The worker ended without being asked to. ``reloading``: a new one is loading the model."""

    exit: ProcessExit
    message: str
    restarted: bool
    reloading: bool


Event = FromWorker | WorkerLost


class EngineClient:
    """Starts the worker, sends it requests and hands every event to ``on_event``.

    ``on_event`` is called from the reader thread (or, for a request that cannot even be sent, from
    the caller's): it must be quick and must not raise. Methods may be called from any thread.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        *,
        command: Sequence[str] = WORKER_COMMAND,
        log_path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_event = on_event
        self._command = tuple(command)
        self._log_path = log_path or paths.log_dir() / "worker.log"
        self._clock = clock
        self._ids = itertools.count(1)
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: FrameWriter | None = None
        self._reader: threading.Thread | None = None
        self._pending: dict[int, ToWorker] = {}
        self._loaded: Load | None = None  # what a new worker should load
        self._deaths: list[float] = []
        self._closing = False

    # ---- life

    def start(self) -> None:
        """Start the worker unless it runs. Raises OSError when it cannot be started at all."""
        with self._lock:
            if self._process is None and not self._closing:
                self._spawn()

    def restart(self) -> None:
        """After a crash loop: forget the deaths, start a worker and load the model again."""
        with self._lock:
            self._deaths.clear()
            if self._process is None and not self._closing:
                self._spawn()
                self._reload()

    def close(self, timeout: float = 3.0) -> None:
        """End the worker, by force when it has not ended after ``timeout`` seconds."""
        with self._lock:
            self._closing = True
            process, reader, writer = self._process, self._reader, self._writer
        if process is None:
            return
        if writer is not None:
            # It may already be gone, which is what we want.
            with contextlib.suppress(StreamClosed):
                writer.write(protocol.encode(Shutdown()))
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
        if reader is not None and reader is not threading.current_thread():
            reader.join(timeout)

    @property
    def pid(self) -> int | None:
        """The worker's process id, None while there is no worker."""
        with self._lock:
            return self._process.pid if self._process else None

    # ---- requests: each returns the request id that its events carry

    def load(
        self,
        model_path: str,
        draft_model_path: str | None = None,
        options: EngineOptions = EngineOptions(),
    ) -> int:
        return self._request(
            Load(
                request_id=next(self._ids),
                model_path=model_path,
                draft_model_path=draft_model_path,
                options=options,
            )
        )

    def unload(self) -> int:
        return self._request(Unload(next(self._ids)))

    def generate(
        self,
        messages: Sequence[ChatMessage],
        *,
        sampling: SamplingParams = SamplingParams(),
        drafting: DraftingParams = DraftingParams(),
        max_tokens: int | None = None,
        seed: int | None = None,
        reproducible: bool = False,
        exact: bool = False,
        stop: Sequence[str] = (),
        grammar: Grammar | None = None,
        begun: Begun | None = None,
        started_at: float | None = None,
    ) -> int:
        return self._request(
            Generate(
                request_id=next(self._ids),
                messages=tuple(messages),
                sampling=sampling,
                drafting=drafting,
                max_tokens=max_tokens,
                seed=seed,
                reproducible=reproducible,
                exact=exact,
                stop=tuple(stop),
                grammar=grammar,
                begun=begun,
                started_at=started_at,
            )
        )

    def ask(self, request: Generate | Embed, model: Load | None = None) -> int:
        """Send a request that is made already, but for its id. ``model`` is loaded before it, unless it
        is what will be in memory by then, whoever asked for it."""
        with self._lock:
            self._try_again()
            if model is not None and self._model_by_then() != model.model_path:
                self._request(msgspec.structs.replace(model, request_id=next(self._ids)))
            return self._request(msgspec.structs.replace(request, request_id=next(self._ids)))

    def cancel(self, request_id: int) -> None:
        """Ask for an early end; the request still gets its one terminal message."""
        with self._lock:
            if request_id in self._pending:
                self._send(Cancel(request_id))

    # ---- inside

    def _try_again(self) -> None:
        """Start a worker where the last of them died long ago; the caller holds the lock."""
        if self._process is not None or self._closing or not self._deaths:
            return
        if self._clock() - self._deaths[-1] >= CRASH_WINDOW_S:
            try:
                self.restart()
            except OSError as error:
                log.error("a new worker cannot be started: %s", error)

    def _model_by_then(self) -> str | None:
        """The file that the next request will find in memory; the caller holds the lock."""
        for request in reversed(self._pending.values()):
            if isinstance(request, Load):
                return request.model_path
            if isinstance(request, Unload):
                return None
        return self._loaded.model_path if self._loaded is not None else None

    def _request(self, message: Load | Unload | Generate | Embed) -> int:
        with self._lock:
            alive = self._process is not None
            if alive:
                self._pending[message.request_id] = message
                self._send(message)
        if not alive:
            self._on_event(Failed(message.request_id, "worker_lost", "The engine is not running."))
        return message.request_id

    def _send(self, message: ToWorker) -> None:
        assert self._writer is not None
        try:
            self._writer.write(protocol.encode(message))
        except StreamClosed as error:
            # The reader sees the end of the stream and fails what is pending.
            log.info("the worker does not take messages any more: %s", error)

    def _spawn(self) -> None:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=with_huge_pages(os.environ),
        )
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._writer = FrameWriter(process.stdin)
        self._reader = threading.Thread(target=self._read, args=(process,), name="engine-reader", daemon=True)
        drain = threading.Thread(
            target=_drain, args=(process.stderr, self._log_path), name="worker-log", daemon=True
        )
        drain.start()
        self._reader.start()

    def _reload(self) -> bool:
        """Send the last load that worked once more, as a request of its own."""
        if self._loaded is None:
            return False
        message = msgspec.structs.replace(self._loaded, request_id=next(self._ids))
        self._pending[message.request_id] = message
        self._send(message)
        return True

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stdin is not None
        try:
            while (payload := read_frame(process.stdout)) is not None:
                self._dispatch(protocol.decode_from_worker(payload))
        except (FrameError, msgspec.DecodeError, OSError, ValueError) as error:
            if process.poll() is None:
                log.error("the worker's messages cannot be read: %s", error)
                process.kill()
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):  # what was still buffered for it has no reader
            process.stdin.close()
        self._ended(process, ProcessExit(code))

    def _dispatch(self, event: FromWorker) -> None:
        if isinstance(event, Hello) and event.protocol != protocol.PROTOCOL_VERSION:
            raise FrameError(f"the worker speaks protocol {event.protocol}")
        if isinstance(event, Loaded | Unloaded | Done | Embedded | Failed):
            with self._lock:
                request = self._pending.pop(event.request_id, None)
                if isinstance(event, Loaded) and isinstance(request, Load):
                    self._loaded = request
                elif isinstance(event, Unloaded) or isinstance(request, Load):
                    self._loaded = None  # a failed load leaves no model
        self._on_event(event)

    def _ended(self, process: subprocess.Popen[bytes], exit: ProcessExit) -> None:
        with self._lock:
            self._process = self._writer = None
            lost, self._pending = self._pending, {}
            closing = self._closing
            now = self._clock()
            self._deaths = [t for t in self._deaths if now - t < CRASH_WINDOW_S] + [now]
            # A model that was being loaded when the worker died is not tried again by itself.
            if any(isinstance(request, Load) for request in lost.values()):
                self._loaded = None
            restarted = reloading = False
            if not closing and len(self._deaths) < CRASH_LIMIT:
                try:
                    self._spawn()
                    restarted = True
                    reloading = self._reload()
                except OSError as error:
                    log.error("a new worker cannot be started: %s", error)
        if closing and exit.clean and not lost:
            return
        message = f"The engine process stopped: {exit.describe()}."
        if exit.out_of_memory:
            message += " A smaller model or a smaller context needs less memory."
        for request_id in lost:
            self._on_event(Failed(request_id, "worker_lost", message))
        if not closing:
            self._on_event(WorkerLost(exit, message, restarted, reloading))


def _drain(stream: IO[bytes], path: Path) -> None:
    """Keep the worker's stderr flowing into a rotating file, so that it can never block on it."""
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=1_000_000, backupCount=2, encoding="utf-8", errors="replace", delay=True
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    with stream:
        # A bound on the line: what is no text at all may hold none of its ends.
        while line := stream.readline(_LONGEST_LOG_LINE):
            text = line.decode("utf-8", "replace").rstrip()
            handler.emit(logging.LogRecord("worker", logging.INFO, "", 0, text, None, None))
    handler.close()
