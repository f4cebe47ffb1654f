"""A server on this machine that answers like the Hugging Face Hub, and misbehaves as told."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.model_store.hub_content import (
    Fault,
    FaultKind,
    LocalFile,
    LocalRepository,
    Seen,
    Stage,
    local_file,
)
from tests.model_store.hub_handler import HubHandler

__all__ = ["Fault", "FaultKind", "LocalFile", "LocalHub", "LocalRepository", "Seen"]


class LocalHub:
    """Runs while it is entered; ``url`` is its endpoint. Knows one valid token."""

    token = "hf_valid"

    def __init__(self, certificate: Path | None = None) -> None:
        """``certificate``: a PEM file with its key, to speak HTTPS."""
        self._scheme = "https" if certificate else "http"
        self.repositories: dict[str, LocalRepository] = {}
        self.renamed: dict[str, str] = {}
        self.seen: list[Seen] = []
        self.api_faults: deque[Fault] = deque()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = HubServer(self, certificate)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="local hub")

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> LocalHub:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()

    def add(self, name: str, files: dict[str, bytes | Path], **options: object) -> LocalRepository:
        """A repository, or a new commit of one that is there."""
        made = {path: local_file(content) for path, content in files.items()}
        commits = self.repositories[name].commits if name in self.repositories else {}
        listing = json.dumps([len(commits), name, [(path, file.sha256) for path, file in made.items()]])
        commits[hashlib.sha1(listing.encode()).hexdigest()] = made
        repository = LocalRepository(name, commits, **options)  # type: ignore[arg-type]
        self.repositories[name] = repository
        return repository

    def file(self, repo: str, path: str) -> LocalFile:
        repository = self.repositories[repo]
        return repository.commits[repository.sha][path]

    def script(self, repo: str, path: str, *faults: Fault) -> None:
        """What goes wrong with this file, one fault a request, in this order."""
        self.file(repo, path).faults.extend(faults)

    def requests(self, part: str) -> list[Seen]:
        """Requests for paths that hold ``part``."""
        with self._lock:
            return [seen for seen in self.seen if part in seen.path]

    def sent(self, repo: str, path: str) -> int:
        """Bytes of this file that left the server, once all that was asked of it has been answered.

        A client can have the last byte before the thread that sent it has counted it.
        """
        asked = self.requests(self.file(repo, path).sha256)
        assert all(seen.answered.wait(60) for seen in asked), "a request for it is still being answered"
        return sum(seen.sent for seen in asked)

    def note(self, seen: Seen) -> None:
        with self._lock:
            self.seen.append(seen)

    def next_fault(self, faults: deque[Fault], stage: Stage) -> Fault | None:
        with self._lock:
            return faults.popleft() if faults and faults[0].stage == stage else None


class HubServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, hub: LocalHub, certificate: Path | None) -> None:
        self.hub = hub
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), HubHandler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # Hands are shaken in the connection's own thread.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the game."""
