"""The worker process: reads requests from stdin, computes, writes events to stdout.

Started as ``python -m app.worker`` by the engine client. ``--fake FILE`` plays a script instead of
running a model.
"""

from __future__ import annotations

import argparse
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

import msgspec

from app import protocol
from app.frames import FrameError, FrameWriter, StreamClosed, read_frame
from app.protocol import (
    Cancel,
    Chunk,
    Embed,
    Failed,
    FromWorker,
    Generate,
    Hello,
    Load,
    Loaded,
    LoadProgress,
    Shutdown,
    Unload,
    Unloaded,
)
from app.worker.engine import Engine
from app.worker.loaded_model import EngineError

log = logging.getLogger(__name__)

# Chunks that follow each other faster than this go out together. A person sees no difference, but
# on a machine whose cores all compute, waking the program for each token costs several percent.
GATHER_S = 0.05

# How long a native call may take to notice that the program is gone before it is ended by force.
GRACE_S = 2.0

Request = Load | Unload | Generate | Embed


class Worker:
    """One engine, a queue of requests served in order, and a thread that reads them."""

    def __init__(self, engine: Engine, requests: IO[bytes], events: IO[bytes]) -> None:
        self._engine = engine
        self._requests = requests
        self._writer = FrameWriter(events)
        self._inbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._waiting: deque[Request] = deque()
        self._gathered: list[bytes] = []  # encoded events that wait to be sent
        self._sent_at = 0.0

    def run(self) -> None:
        """Serve until the program says goodbye or is gone."""
        engine = self._engine
        self._send(Hello(protocol.PROTOCOL_VERSION, engine.name, os.getpid(), engine.devices))
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        try:
            while self._collect():
                while self._waiting and self._ready_for(self._waiting[0]):
                    self._serve(self._waiting.popleft())
                if self._engine.busy:
                    self._emit(self._engine.step())
        except StreamClosed as error:
            log.info("nobody listens any more: %s", error)
        finally:
            self._engine.close()

    def _read(self) -> None:
        """The reader thread: a cancel takes effect at once, in the middle of a pass."""
        try:
            while (payload := read_frame(self._requests)) is not None:
                try:
                    message = protocol.decode_to_worker(payload)
                except msgspec.ValidationError as error:
                    self._refuse(payload, error)
                    continue
                if isinstance(message, Shutdown):
                    break
                if isinstance(message, Cancel):
                    self._engine.cancel(message.request_id)
                else:
                    self._inbox.put(message)
        except (FrameError, StreamClosed, msgspec.DecodeError, OSError, ValueError) as error:
            log.error("requests cannot be read: %s", error)
        self._inbox.put(None)
        # The main thread may sit in a native call that knows nothing of us.
        threading.Event().wait(GRACE_S)
        os._exit(0)

    def _refuse(self, payload: bytes, error: msgspec.ValidationError) -> None:
        """A well-formed message that asks for what cannot be: its sender hears of it."""
        raw = msgspec.msgpack.decode(payload)
        request_id = raw.get("request_id") if isinstance(raw, dict) else None
        if not isinstance(request_id, int):
            raise error
        self._writer.write(protocol.encode(Failed(request_id, "bad_input", f"Bad request: {error}")))

    def _collect(self) -> bool:
        """Take in what has arrived, waiting only when there is nothing to do. False at the end."""
        idle = not self._engine.busy and not self._waiting
        while idle and self._inbox.empty() and self._engine.settle():
            pass  # one piece at a time: a request that arrives meanwhile comes first
        while idle or not self._inbox.empty():
            message = self._inbox.get()  # nobody else takes from it, so this waits only when idle
            if message is None:
                return False
            self._waiting.append(message)
            idle = False
        return True

    def _ready_for(self, request: Request) -> bool:
        if isinstance(request, Generate):
            return self._engine.has_room
        return not self._engine.busy

    def _serve(self, request: Request) -> None:
        try:
            if isinstance(request, Load):
                self._load(request)
            elif isinstance(request, Unload):
                self._engine.unload()
                self._send(Unloaded(request.request_id))
            elif isinstance(request, Embed):
                self._send(self._engine.embed(request))
            else:
                self._send(self._engine.given_up(request) or self._engine.start(request))
        except EngineError as error:
            self._send(Failed(request.request_id, error.kind, str(error), about=error.about))
        except MemoryError:
            self._send(Failed(request.request_id, "out_of_memory", "There is not enough memory."))
        except StreamClosed:
            raise
        except Exception as error:
            log.exception("a request failed")
            message = f"The engine failed: {type(error).__name__}: {error}"
            self._send(Failed(request.request_id, "internal", message))

    def _load(self, request: Load) -> None:
        shown = -1

        def progress(fraction: float) -> None:
            nonlocal shown
            percent = int(fraction * 100)
            if percent > shown:  # llama.cpp reports every tensor
                shown = percent
                self._send(LoadProgress(request.request_id, fraction))

        report = self._engine.load(request, progress)
        self._send(Loaded(request.request_id, report))

    def _emit(self, events: list[FromWorker]) -> None:
        """Send what a step brought, text a little later when more is about to follow."""
        self._gathered += map(protocol.encode, events)
        now = time.monotonic()
        only_text = all(isinstance(event, Chunk) for event in events)
        if only_text and self._engine.busy and now - self._sent_at < GATHER_S:
            return
        self._sent_at = now
        payloads, self._gathered = self._gathered, []
        self._writer.write(*payloads)

    def _send(self, event: FromWorker) -> None:
        """Send one event now, behind whatever was gathered before it."""
        payloads, self._gathered = [*self._gathered, protocol.encode(event)], []
        self._writer.write(*payloads)


def _protocol_stream() -> IO[bytes]:
    """Keep the real stdout for the protocol and send fd 1 to stderr: C code prints where it likes."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stream


def _engine(script: Path | None) -> Engine:
    """Imports happen inside: the fake engine must not load llama.cpp."""
    if script is not None:
        from app.worker.fake_model import fake_engine

        return fake_engine(script)
    from app.worker.gpu_layers import known_devices
    from app.worker.model_loader import load_model
    from native.model import build_info

    return Engine(load_model, build_info(), known_devices())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.worker")
    parser.add_argument("--fake", type=Path, help="play this script instead of running a model")
    arguments = parser.parse_args()
    events = _protocol_stream()
    # Ctrl+C in a terminal reaches the whole group; the program that owns us decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    Worker(_engine(arguments.fake), sys.stdin.buffer, events).run()
    return 0


if __name__ == "__main__":
    # Not sys.exit: a daemon thread may hold stdin's lock, which a normal exit would wait for.
    code = main()
    logging.shutdown()
    os._exit(code)
