"""Answers one connection of the local Hub: its API, its files, and the content network behind it."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections import deque
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.model_store.hub_content import Fault, LocalFile, LocalRepository, Seen, Stage

if TYPE_CHECKING:
    from tests.model_store.local_hub import HubServer, LocalHub

_PIECE = 1 << 16  # bytes sent at once
_RESOLVE = re.compile(r"/(?:api/resolve-cache/models/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class HubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer
    seen: Seen

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    @property
    def hub(self) -> LocalHub:
        return self.server.hub

    def _answer(self) -> None:
        self.seen = Seen(self.command, self.path, self.headers.get("Range"), self._token())
        self.hub.note(self.seen)
        path = unquote(urlsplit(self.path).path)
        try:
            if path == "/loop":
                self._redirect(302, "/loop")
            elif path == "/api/models":
                self._search()
            elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/(.+))?", path):
                self._about(match[1], match[2], match[3] or "main")
            elif match := re.fullmatch(
                r"/(?:api/resolve-cache/models/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path
            ):
                self._resolve(match[1], match[2], match[3])
            elif match := re.fullmatch(r"/content/([^/]+/[^/]+)/([0-9a-f]{40})/[0-9a-f]{64}/(.+)", path):
                self._content(match[1], match[2], match[3])
            else:
                self._say(404, {"error": "Sorry, we can't find the page you are looking for."})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        finally:
            self.seen.answered.set()

    def _token(self) -> str | None:
        header = self.headers.get("Authorization")
        return header.removeprefix("Bearer ") if header else None

    # The API

    def _search(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if self._faulty(self.hub.api_faults, "resolve"):
            return
        text = query.get("search", [""])[0].casefold()
        found = [
            repository
            for repository in self.hub.repositories.values()
            if text in repository.name.casefold() and not repository.private
        ]
        found.sort(key=lambda repository: -repository.downloads)
        limit = int(query.get("limit", ["1000"])[0])
        self._say(
            200,
            [
                {
                    "_id": "0",
                    "id": repository.name,
                    "modelId": repository.name,
                    "downloads": repository.downloads,
                    "likes": repository.likes,
                    "lastModified": "2026-10-01T12:00:00.000Z",
                    "gated": "manual" if repository.gated is not None else False,
                }
                for repository in found[:limit]
            ],
        )

    def _about(self, name: str, what: str | None, revision: str) -> None:
        if self._faulty(self.hub.api_faults, "resolve"):
            return
        if name in self.hub.renamed:
            self._redirect(307, self.path.replace(name, self.hub.renamed[name]))
            return
        repository = self._visible(name)
        if repository is None:
            return
        sha = repository.at(revision)
        if sha is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif what == "tree":
            self._say(
                200,
                [
                    {"type": "file", "oid": file.git_id, "size": file.size, "path": path}
                    | ({"lfs": _lfs(file, "oid")} if file.lfs else {})
                    for path, file in repository.commits[sha].items()
                ],
            )
        else:
            blobs = "blobs" in parse_qs(urlsplit(self.path).query)
            self._say(
                200,
                {
                    "_id": "0",
                    "id": name,
                    "modelId": name,
                    "author": name.partition("/")[0],
                    "sha": sha,
                    "lastModified": "2026-10-01T12:00:00.000Z",
                    "private": repository.private,
                    "disabled": False,
                    "gated": "manual" if repository.gated is not None else False,
                    "tags": ["gguf", f"license:{repository.licence}"],
                    "downloads": repository.downloads,
                    "likes": repository.likes,
                    "cardData": {"license": repository.licence},
                    "siblings": [
                        {"rfilename": path}
                        | ({"size": file.size, "blobId": file.git_id} if blobs else {})
                        | ({"lfs": _lfs(file, "sha256")} if blobs and file.lfs else {})
                        for path, file in repository.commits[sha].items()
                    ],
                },
            )

    def _visible(self, name: str) -> LocalRepository | None:
        """The repository, if whoever asks may see it; else the answer has been given."""
        token = self._token()
        if token is not None and not token.startswith("hf_valid"):
            self._say(
                401,
                {"error": "Invalid credentials in Authorization header"},
                {"X-Error-Message": "Invalid credentials in Authorization header"},
            )
            return None
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and token is None):
            if token is None:
                self._error(401, "RepoNotFound", "Invalid username or password.")
            else:
                self._error(404, "RepoNotFound", "Repository not found")
            return None
        return repository

    # Files

    def _resolve(self, name: str, revision: str, path: str) -> None:
        if name in self.hub.renamed:
            self._redirect(307, self.path.replace(name, self.hub.renamed[name], 1))
            return
        repository = self._visible(name)
        if repository is None:
            return
        token = self._token()
        if repository.gated is not None and token not in repository.gated:
            said = f"Access to model {name} is restricted."
            self._error(401 if token is None else 403, "GatedRepo", said)
            return
        sha = repository.at(revision)
        if sha is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        file = repository.commits[sha].get(path)
        if file is None:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        if self._faulty(file.faults, "resolve"):
            return
        known = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if file.lfs:
            known |= {"X-Linked-Size": str(file.size), "X-Linked-Etag": f'"{file.sha256}"'}
            # Another host, as in life: a token must not follow us there.
            where = f"http://localhost:{self.hub.port}/content/{name}/{sha}/{file.sha256}/{quote(path)}"
            self._redirect(302, where, known)
        elif "resolve-cache" not in self.path:
            self._redirect(307, f"/api/resolve-cache/models/{name}/resolve/{sha}/{quote(path)}", known)
        else:
            self._serve(file, f'"{file.git_id}"', None, known)

    def _content(self, name: str, sha: str, path: str) -> None:
        if self._token() is not None:
            self._say(400, {"error": "Only one auth mechanism allowed"})
            return
        file = self.hub.repositories[name].commits[sha][path]
        fault = self.hub.next_fault(file.faults, "content")
        if fault is not None and fault.kind == "changed_etag":
            file.etag = f'"cdn-{time.monotonic_ns():x}"'
        self._serve(file, file.etag, fault, {})

    def _serve(self, file: LocalFile, etag: str, fault: Fault | None, headers: dict[str, str]) -> None:
        """Send the file or the part that is asked for; ``fault`` says what goes wrong."""
        kind = fault.kind if fault else None
        headers = headers | {
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        if etag:
            headers["ETag"] = etag
        start, end, status = 0, file.size, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and self.headers.get("If-Range", etag) == etag and kind != "ignore_range":
            start, end, status = int(asked[1]), min(int(asked[2] or file.size - 1) + 1, file.size), 206
        if kind == "status_403":
            self._say(403, {"error": "Request has expired"})
            return
        if start >= end or kind == "status_416":
            self._send_head(416, headers | {"Content-Range": f"bytes */{file.size}", "Content-Length": "0"})
            return
        if kind == "wrong_part":
            start, end, status = max(0, start - 1), max(1, end - 1), 206
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
        extra = b"more than there is" if kind == "longer" else b""
        if kind == "short_without_length":
            self.close_connection = True
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(end - start + len(extra))
        self._send_head(status, headers)
        if self.command == "HEAD":
            return
        stop = end
        if fault is not None and kind in ("reset", "early_close", "stall", "short_without_length"):
            stop = start + int((end - start) * fault.at)
        flip = start + int((end - start - 1) * fault.at) if fault and kind == "flip" else -1
        self._send_body(file, start, stop, flip)
        if extra:
            self.wfile.write(extra)
        if stop < end:
            if fault is not None and kind == "stall":
                self.seen.answered.set()  # nothing more will come
                self.hub.closing.wait(fault.seconds)
            if kind == "reset":
                # A reset, where closing would be a clean end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            self.close_connection = True

    def _send_body(self, file: LocalFile, start: int, stop: int, flip: int) -> None:
        if isinstance(file.content, Path) and not file.piece_pause:
            with file.content.open("rb") as source:
                self.seen.sent += self.connection.sendfile(source, start, stop - start)
            return
        for position in range(start, stop, _PIECE):
            piece = file.read(position, min(position + _PIECE, stop))
            if position <= flip < position + len(piece):
                index = flip - position
                piece = piece[:index] + bytes([piece[index] ^ 1]) + piece[index + 1 :]
            self.wfile.write(piece)
            self.seen.sent += len(piece)
            if file.piece_pause:
                self.hub.closing.wait(file.piece_pause)

    def _faulty(self, faults: deque[Fault], stage: Stage) -> bool:
        """Answer with the next fault of these, if there is one for this stage."""
        fault = self.hub.next_fault(faults, stage)
        if fault is None:
            return False
        wait = {"Retry-After": f"{fault.seconds:.0f}"} if fault.seconds else {}
        if fault.kind == "status_429":
            self._say(429, {"error": "Too many requests"}, wait)
        elif fault.kind == "status_503":
            self._say(503, {"error": "Service unavailable"}, wait)
        elif fault.kind == "redirect_loop":
            self._redirect(302, "/loop")
        else:
            self._page(with_length=fault.at >= 0.5)
        return True

    # Answers

    def _page(self, *, with_length: bool) -> None:
        body = b"<!DOCTYPE html><html><body><h1>Guest network</h1>Please sign in.</body></html>"
        length = {"Content-Length": str(len(body))} if with_length else {"Connection": "close"}
        self.close_connection = not with_length
        self._send_head(200, {"Content-Type": "text/html"} | length)
        self._write(body)

    def _redirect(self, status: int, where: str, headers: dict[str, str] | None = None) -> None:
        self._send_head(status, {"Location": where, "Content-Length": "0"} | (headers or {}))

    def _error(self, status: int, code: str, message: str) -> None:
        self._say(status, {"error": message}, {"X-Error-Code": code, "X-Error-Message": message})

    def _say(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(answer).encode()
        said = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(body))}
        self._send_head(status, said | (headers or {}))
        self._write(body)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.seen.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def _write(self, body: bytes) -> None:
        if self.command != "HEAD":
            self.wfile.write(body)


def _lfs(file: LocalFile, name: str) -> dict[str, object]:
    return {name: file.sha256, "size": file.size, "pointerSize": 130}
