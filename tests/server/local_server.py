"""A server in this process, over a worker of its own, on a port that is free."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import openai
from msgspec.structs import replace

from app.engine_client import WORKER_COMMAND, EngineClient, Event
from app.protocol import Done, ModelReport
from app.server.application import application
from app.server.host import Address, Host, listen
from app.server.port import EnginePort
from app.server.service import Service
from app.server.shelf import Shelf
from app.settings import Settings
from app.worker.fake_script import FakeScript
from tests.session import fake_command


def toy_server(folder: Path, script: FakeScript) -> LocalServer:
    """Of a model that says what ``script`` says."""
    model = folder / "toy.gguf"
    model.write_bytes(b"GGUF")
    return LocalServer(model, fake_command(script, folder))


class LocalServer:
    """Serves one model, or those of a folder. ``done`` holds the answers that ended by themselves."""

    def __init__(
        self,
        model: Path,
        command: Sequence[str] = WORKER_COMMAND,
        *,
        settings: Settings = Settings(learn=False),
        parallel: int = 1,
        queue: int = 64,
        key: str | None = None,
        idle_s: float | None = None,
        origins: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.done: list[tuple[ModelReport, Done]] = []
        self.heard: Callable[[Event], None] = lambda event: None  # each event, on the reader's thread
        self.client = EngineClient(self._take, command=command, clock=clock)
        self.port = EnginePort(self.client, lambda model, done: self.done.append((model, done)))
        self.model = model.stem
        settings = replace(settings, server=True, server_parallel=parallel)
        if model.is_dir():
            settings = replace(settings, models_folder=str(model))
        self.service = Service(
            self.port,
            Shelf(lambda: settings, only=None if model.is_dir() else model),
            lambda: settings,
            queue=queue,
            idle_s=idle_s,
        )
        [self._socket] = listen(Address(port=0, bind=("127.0.0.1",)))
        self.address = Address(self._socket.getsockname()[1], bind=("127.0.0.1",), origins=origins)
        self.key = key
        self._clients: list[openai.OpenAI] = []
        self._host = Host(application(self.service, self.address, key))
        self._thread = threading.Thread(
            target=self._host.run, args=([self._socket], self.port.stop), name="local server"
        )

    def _take(self, event: Event) -> None:
        self.heard(event)
        self.port.receive(event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.address.port}"

    def openai(self, **options: object) -> openai.OpenAI:
        """OpenAI's own client, which tries nothing twice unless told to."""
        given = {"max_retries": 0, "timeout": 60.0, "api_key": self.key or "none", **options}
        client = openai.OpenAI(base_url=f"{self.url}/v1", **given)  # type: ignore[arg-type]
        self._clients.append(client)
        return client

    def __enter__(self) -> Self:
        self.client.start()
        self._thread.start()
        return self

    def stop(self) -> None:
        """As its owner would; answers under way end with an error."""
        self._host.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()
        self.stop()
        self.client.close()
