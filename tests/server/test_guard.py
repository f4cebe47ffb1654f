"""Who gets an answer at all: foreign names and pages, keys, sizes. Over raw sockets, as an attacker has."""

from __future__ import annotations

import json
import logging
import re
import socket
import urllib.request
from collections.abc import Callable, Iterator

import psutil
import pytest

from app.server import guard
from app.server import host as host_module
from app.server.application import MOST_BYTES
from app.server.host import Address, HostError, listen
from app.worker.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer
from tests.session import fake_command

KEY = "a key of some length: é"
PAGE = "https://app.example"
CHAT = "/v1/chat/completions"
JSON = "Content-Type: application/json"
BODY = b'{"model": "toy", "messages": [{"role": "user", "content": "x"}]}'

Start = Callable[..., LocalServer]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Servers by their options: one each, for all tests."""
    folder = tmp_path_factory.mktemp("guard")
    model = folder / "toy.gguf"
    model.write_bytes(b"GGUF")
    command = fake_command(FakeScript(replies=(FakeReply(text="fine"),)), folder)
    running: dict[str, LocalServer] = {}

    def server(**options: object) -> LocalServer:
        name = repr(options)
        if name not in running:
            running[name] = LocalServer(model, command, **options).__enter__()  # type: ignore[arg-type]
        return running[name]

    yield server
    for each in running.values():
        each.__exit__(None, None, None)


@pytest.fixture(scope="module")
def server(start: Start) -> LocalServer:
    return start()


@pytest.fixture(scope="module")
def keyed(start: Start) -> LocalServer:
    return start(key=KEY)


@pytest.fixture(scope="module")
def paged(start: Start) -> LocalServer:
    """A page was named that may ask; a key is asked for as well."""
    return start(key=KEY, origins=(f"{PAGE}/",))


@pytest.fixture(scope="module", autouse=True)
def threads(server: LocalServer, keyed: LocalServer, paged: LocalServer) -> None:
    """They are there before the first test counts what it leaves behind."""
    for each in (server, keyed, paged):
        ask(each, headers=(f"Authorization: Bearer {KEY}",))


def raw(server: LocalServer, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what a socket answers to ``data`` before it is closed."""
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, rest


def whole(
    server: LocalServer,
    path: str = "/v1/models",
    *,
    method: str = "GET",
    headers: tuple[str, ...] = (),
    host: str | None = None,
    body: bytes = b"",
) -> tuple[int, dict[str, str], bytes]:
    """Headers are sent as they are."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{server.address.port}'}", *headers]
    if body and not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    lines.append("Connection: close")
    return raw(server, "\r\n".join([*lines, "", ""]).encode() + body)


def ask(server: LocalServer, path: str = "/v1/models", **asked: object) -> tuple[int, dict[str, object]]:
    """The status and the JSON of the answer."""
    status, _, rest = whole(server, path, **asked)  # type: ignore[arg-type]
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


def test_a_request_names_one_host(server: LocalServer) -> None:
    """J02: 400 for none."""
    assert ask(server, headers=("Host: evil.example",))[0] in (400, 403)
    assert raw(server, b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")[0] == 400
    status, _, rest = raw(server, b"GET /v1/models HTTP/1.0\r\n\r\n")
    assert (status, json.loads(rest)["error"]["code"]) == (400, "host_missing")


def test_a_host_in_the_first_line_is_no_way_around(server: LocalServer) -> None:
    line = f"GET http://127.0.0.1:{server.address.port}/v1/models HTTP/1.1\r\n"
    assert raw(server, f"{line}Host: evil.example\r\nConnection: close\r\n\r\n".encode())[0] == 403


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost", "file://", "http://localhost.evil.example", ""],
)
def test_foreign_pages_get_nothing_and_no_permission(server: LocalServer, origin: str) -> None:
    """J01, also of a preflight that asks for a private network; and the body is not waited for."""
    for method in ("GET", "POST", "OPTIONS"):
        status, headers, rest = whole(
            server,
            CHAT,
            method=method,
            headers=(
                f"Origin: {origin}",
                "Content-Length: 1000",
                "Access-Control-Request-Method: POST",
                "Access-Control-Request-Private-Network: true",
            ),
        )
        assert (status, json.loads(rest)["error"]["code"]) == (403, "origin_not_allowed")
        assert not any(name.startswith("access-control") for name in headers)


def test_by_default_no_page_may_read_an_answer(server: LocalServer) -> None:
    own = f"Origin: http://localhost:{server.address.port}"
    for method in ("GET", "OPTIONS"):
        status, headers, _ = whole(server, method=method, headers=(own, "Access-Control-Request-Method: GET"))
        assert status == (200 if method == "GET" else 405)
        assert not any(name.startswith("access-control") for name in headers)


def test_a_page_that_was_named_may_ask_and_read(paged: LocalServer) -> None:
    """J01: also errors and streams; with the preflight that a browser sends before, without the key."""
    status, headers, _ = whole(
        paged,
        CHAT,
        method="OPTIONS",
        headers=(
            f"Origin: {PAGE}",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization,content-type,x-stainless-os",
            "Access-Control-Request-Private-Network: true",
        ),
    )
    assert status == 200
    assert headers["access-control-allow-origin"] == PAGE
    assert "authorization" in headers["access-control-allow-headers"]
    assert "POST" in headers["access-control-allow-methods"]
    assert headers["access-control-allow-private-network"] == "true"
    key = f"Authorization: Bearer {KEY}"
    stream = BODY.replace(b'{"model"', b'{"stream": true, "model"')
    for status, sent, body in (
        (200, (key, JSON), BODY),
        (200, (key, JSON), stream),
        (401, (JSON,), BODY),
        (400, (key, JSON), b"{}"),
        (413, (key, JSON, f"Content-Length: {MOST_BYTES + 1}"), b""),
        (415, (key,), BODY),
    ):
        seen, headers, rest = whole(paged, CHAT, method="POST", headers=(f"Origin: {PAGE}", *sent), body=body)
        assert seen == status, rest
        assert headers["access-control-allow-origin"] == PAGE and "Origin" in headers["vary"]
        assert "access-control-allow-credentials" not in headers


def test_pages_that_look_like_the_one_that_was_named(paged: LocalServer) -> None:
    for origin in (f"{PAGE}.evil", f"{PAGE}:8443", "http://app.example", f"{PAGE}/", "https://x.app.example"):
        status, headers, _ = whole(paged, headers=(f"Origin: {origin}", f"Authorization: Bearer {KEY}"))
        assert status == 403 and "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json"]
)
def test_a_form_of_any_page_is_no_request(server: LocalServer, kind: str | None) -> None:
    """J01: what a page may send without a preflight."""
    headers = () if kind is None else (f"Content-Type: {kind}",)
    status, answer = ask(server, CHAT, method="POST", headers=headers, body=BODY)
    assert (status, code(answer)) == (415, "unsupported_media_type")


def test_the_type_of_a_body_may_be_written_out(server: LocalServer) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        headers = (f"Content-Type: {kind}",)
        assert ask(server, CHAT, method="POST", headers=headers, body=BODY)[0] == 200
    packed = (JSON, "Content-Encoding: gzip")
    assert ask(server, CHAT, method="POST", headers=packed, body=BODY)[0] == 415


def test_the_key(keyed: LocalServer) -> None:
    assert ask(keyed, "/health")[0] == 200
    assert ask(keyed, headers=(f"Authorization: Bearer {KEY}",))[0] == 200
    assert ask(keyed, headers=(f"authorization: bearer {KEY}",))[0] == 200
    for headers in (
        (),
        ("Authorization: Bearer no",),
        ("Authorization: Bearer",),
        ("Authorization: Bearer ÿ",),
        (f"Authorization: Bearer {KEY[:-1]}",),
        (f"Authorization: Bearer {KEY} ",  f"Authorization: Bearer {KEY}"),
        (f"Authorization: Basic {KEY}",),
        (f"Authorization: {KEY}",),
        ("Authorization: ",),
    ):  # fmt: skip
        for path in (
            "/v1/models",
            "/metrics",
            "/docs",
            "/openapi.json",
            "/v1/nothing",
            "/health/",
            "//health",
        ):
            status, sent, rest = whole(keyed, path, headers=headers)
            assert (status, json.loads(rest)["error"]["code"]) == (401, "invalid_api_key")
            assert sent["www-authenticate"] == "Bearer"
            assert KEY not in rest.decode()


def test_a_body_that_is_too_large_is_not_read(server: LocalServer) -> None:
    status, answer = ask(server, CHAT, method="POST", headers=(JSON, f"Content-Length: {MOST_BYTES + 1}"))
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


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: " + "9" * 5000,
        "Content-Length: -1",
        "Content-Length: 0x10",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Content-Length : 3",
        "\x00: 1",
    ],
)
def test_a_length_that_two_readers_could_read_in_two_ways(server: LocalServer, lines: str) -> None:
    """Request smuggling; nobody answers behind it either."""
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{server.address.port}\r\n{JSON}\r\n{lines}\r\n\r\n"
    status, _, rest = raw(server, head.encode() + b"GET /health HTTP/1.1\r\n\r\n")
    assert status in (400, 413, 501) and b"HTTP/1.1" not in rest


def test_who_asks_first_is_told_to_go_on_where_it_may(server: LocalServer) -> None:
    """curl does so with a long body."""
    asked = f"Expect: 100-continue\r\n{JSON}\r\nContent-Length: {len(BODY)}\r\nConnection: close\r\n\r\n"
    for host, first in ((f"localhost:{server.address.port}", b"100"), ("evil.example", b"403")):
        with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\n{asked}".encode())
            assert connection.recv(65536).split()[1] == first
            if first == b"100":
                connection.sendall(BODY)
                assert connection.recv(65536).split()[1] == b"200"


def test_a_request_that_never_ends_is_not_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines, and its body."""
    monkeypatch.setattr(host_module, "HEADER_S", 0.3)
    server = start()
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        assert connection.recv(1) == b"", "not one byte was sent"
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=30) as connection:
        try:
            while True:  # each byte comes in time, the last of them never does
                connection.sendall(b"x")
                connection.settimeout(0.05)
                try:
                    assert connection.recv(65536)[:12] in (b"", b"HTTP/1.1 400")
                    break
                except TimeoutError:
                    continue
        except OSError:
            pass  # closed


def test_nor_is_a_body(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.2)
    for said in ("Content-Length: 10", "Transfer-Encoding: chunked"):
        status, answer = ask(start(), CHAT, method="POST", headers=(JSON, said))
        assert (status, code(answer)) == (408, "request_timeout")


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
    status, answer = ask(server, CHAT, method="POST", headers=(JSON,), body=body)
    assert status == 400
    assert "Traceback" not in json.dumps(answer)


def test_routes_that_are_not_there(server: LocalServer) -> None:
    assert ask(server, "/v1/secrets")[0] == 404
    assert ask(server, "/v1/models", method="DELETE")[0] == 405
    assert ask(server, "/v1/models/..%2F..%2Fetc%2Fpasswd")[0] == 404


def test_the_page_of_documentation_loads_nothing_from_elsewhere(server: LocalServer) -> None:
    with urllib.request.urlopen(f"{server.url}/docs", timeout=30) as page:
        text = page.read().decode()
    assert "/v1/chat/completions" in text and "speculation" in text
    assert "<script" not in text and "http://" not in text and "https://" not in text


def test_a_fault_is_written_down_without_words_or_paths(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("secret words in /home/somebody")

    monkeypatch.setattr(server.service.shelf, "models", broken)
    with caplog.at_level(logging.DEBUG):
        status, answer = ask(server)
    assert status == 500 and "secret" not in json.dumps(answer)
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "RuntimeError in models (routes.py:" in line
    assert "secret" not in caplog.text and "/" not in line


def test_a_port_that_is_taken_is_said(server: LocalServer) -> None:
    name = psutil.Process().name()
    with pytest.raises(HostError, match=rf"in use by another program( \({re.escape(name)}\))?\. "):
        listen(Address(server.address.port))


def test_only_this_machine_is_listened_to_unless_told_otherwise() -> None:
    sockets = listen(Address(0))
    try:
        assert {made.getsockname()[0] for made in sockets} <= {"127.0.0.1", "::1"}
    finally:
        for made in sockets:
            made.close()
    assert Address().is_local and not Address(bind=("0.0.0.0",)).is_local
    assert Address(bind=("::1", "127.0.0.2")).is_local and not Address(bind=("::1", "::")).is_local
    assert not Address(bind=("127.0.0.1.evil.example",)).is_local and not Address(bind=("",)).is_local


def test_an_address_that_the_machine_lacks_is_left_out() -> None:
    """As ::1 is without IPv6, and 127.0.0.1 could be."""
    for missing in ("192.0.2.1", "2001:db8::1"):
        [made] = listen(Address(0, bind=("127.0.0.1", missing)))
        made.close()
        with pytest.raises(HostError, match="cannot be opened"):
            listen(Address(0, bind=(missing,)))


def test_a_page_is_named_as_browsers_name_it() -> None:
    named = ("HTTPS://App.example:443/", "http://localhost:80", "http://localhost:5173")
    assert Address(origins=named).named_origins() == {
        "https://app.example",
        "http://localhost",
        "http://localhost:5173",
    }


def test_the_port_that_nobody_names() -> None:
    assert {"localhost", "localhost:80", "[::1]"} <= Address(80).allowed_hosts()
    assert "http://localhost" in Address(80).allowed_origins()
    assert "localhost" not in Address(1337).allowed_hosts()
