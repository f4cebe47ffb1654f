"""Who gets an answer at all: foreign names and pages, keys, sizes. Over raw sockets, as an attacker has."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.fake_script import FakeReply, FakeScript
from app.server.application import MOST_BYTES
from app.server.host import Address, HostError, listen
from tests.server.local_server import LocalServer
from tests.session import fake_command

KEY = "a key of some length"


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")
    command = fake_command(FakeScript(replies=(FakeReply(text="fine"),)), tmp_path)
    with LocalServer(model, command, **getattr(request, "param", {})) as running:
        yield running


def ask(
    server: LocalServer,
    path: str = "/v1/models",
    *,
    method: str = "GET",
    headers: tuple[str, ...] = (),
    host: str | None = None,
    body: bytes = b"",
) -> tuple[int, dict[str, object]]:
    """The status and the JSON of the answer; headers are sent as they are."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{server.address.port}'}", *headers]
    if body and not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    lines.append("Connection: close")
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, json.loads(rest) if rest.startswith(b"{") else {}


def code(answer: dict[str, object]) -> object:
    error = answer["error"]
    assert isinstance(error, dict)
    return error["code"]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_its_own_names_are_answered(server: LocalServer, name: str) -> None:
    assert ask(server, host=f"{name}:{server.address.port}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost",
        "localhost:1",
        "127.0.0.1.evil.example:{port}",
        "localhost:{port}.evil.example",
        "evil.example:{port}",
        "0.0.0.0:{port}",
        "localhost:{port}@evil.example",
    ],
)
def test_other_names_are_not(server: LocalServer, host: str) -> None:
    """A name that somebody made resolve to this machine (DNS rebinding)."""
    status, answer = ask(server, host=host.format(port=server.address.port))
    assert (status, code(answer)) == (403, "host_not_allowed")


def test_two_host_headers_are_one_too_many(server: LocalServer) -> None:
    assert ask(server, headers=("Host: evil.example",))[0] in (400, 403)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost", "file://"])
def test_foreign_pages_get_nothing_and_no_permission(server: LocalServer, origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        status, answer = ask(server, method=method, headers=(f"Origin: {origin}",))
        assert (status, code(answer)) == (403, "origin_not_allowed")


@pytest.mark.parametrize("server", [{"origins": ("https://app.example",)}], indirect=True)
def test_a_page_that_was_named_is_answered(server: LocalServer) -> None:
    assert ask(server, headers=("Origin: https://app.example",))[0] == 200
    assert ask(server, headers=("Origin: https://app.example.evil",))[0] == 403
    assert ask(server, headers=(f"Origin: http://localhost:{server.address.port}",))[0] == 200


@pytest.mark.parametrize("server", [{"key": KEY}], indirect=True)
def test_the_key(server: LocalServer) -> None:
    assert ask(server, "/health")[0] == 200
    assert ask(server, headers=(f"Authorization: Bearer {KEY}",))[0] == 200
    for headers in (
        (),
        ("Authorization: Bearer no",),
        (f"Authorization: Basic {KEY}",),
        ("Authorization: ",),
    ):
        status, answer = ask(server, headers=headers)
        assert (status, code(answer)) == (401, "invalid_api_key")
        assert KEY not in json.dumps(answer)
    assert server.openai().models.list().data


def test_a_body_that_is_too_large_is_not_read(server: LocalServer) -> None:
    status, answer = ask(
        server, "/v1/chat/completions", method="POST", headers=(f"Content-Length: {MOST_BYTES + 1}",)
    )
    assert (status, code(answer)) == (413, "request_too_large")


def test_nor_one_that_does_not_say_how_large_it_is(server: LocalServer) -> None:
    piece = b"x" * (1 << 20)
    chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        connection.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{server.address.port}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        try:
            for _ in range(MOST_BYTES // len(piece) + 4):
                connection.sendall(chunk)
        except OSError:
            pass  # it does not listen any more
        try:
            answer = connection.recv(65536)
        except OSError:
            return
    assert answer.split()[1] == b"413"


def test_large_headers_are_refused(server: LocalServer) -> None:
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        try:
            connection.sendall(b"GET /health HTTP/1.1\r\n" + b"X-Long: " + b"x" * (1 << 18) + b"\r\n\r\n")
            answer = connection.recv(65536)
        except OSError:
            return
    assert answer.split()[1] in (b"400", b"431")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b'{"model": 1}', b"\xff\xfe", b'{"a":' * 5000]
)
def test_what_is_no_request_is_said_without_repeating_it(server: LocalServer, body: bytes) -> None:
    headers = ("Content-Type: application/json",)
    status, answer = ask(server, "/v1/chat/completions", method="POST", headers=headers, body=body)
    assert status == 400
    assert "Traceback" not in json.dumps(answer)


def test_routes_that_are_not_there(server: LocalServer) -> None:
    assert ask(server, "/v1/secrets")[0] == 404
    assert ask(server, "/v1/models", method="DELETE")[0] == 405
    assert ask(server, "/v1/models/..%2F..%2Fetc%2Fpasswd")[0] == 404


def test_the_page_of_documentation_loads_nothing_from_elsewhere(server: LocalServer) -> None:
    import urllib.request

    with urllib.request.urlopen(f"{server.url}/docs", timeout=30) as page:
        text = page.read().decode()
    assert "/v1/chat/completions" in text and "speculation" in text
    assert "<script" not in text and "http://" not in text and "https://" not in text


def test_a_port_that_is_taken_is_said(server: LocalServer) -> None:
    with pytest.raises(HostError, match="in use by another program"):
        listen(Address(server.address.port))


def test_only_this_machine_is_listened_to_unless_told_otherwise() -> None:
    sockets = listen(Address(0))
    try:
        assert {made.getsockname()[0] for made in sockets} <= {"127.0.0.1", "::1"}
    finally:
        for made in sockets:
            made.close()
    assert Address().is_local and not Address(bind=("0.0.0.0",)).is_local
