"""What whoever runs it meets: clients that go away, models that change, fail and rest, workers that die."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path

import gguf
import httpx
import pytest

from app.engine_client import CRASH_LIMIT, CRASH_WINDOW_S, Event
from app.protocol import ChatMessage, Chunk, Done, Started
from app.worker.fake_script import FakeReply, FakeScript
from tests.models.eagle3 import write_eagle3
from tests.server.local_server import LocalServer
from tests.server.test_load import asked, said, scripted, until
from tests.session import fake_command
from tests.tiny_gguf import write_llama

CHAT = "/v1/chat/completions"
SLOW = FakeReply(text="word " * 5000, tokens_per_second=50)
ECHO = FakeReply(text="{model}: {prompt}", tokens_per_second=2000)


def request(server: LocalServer, body: dict[str, object]) -> socket.socket:
    """A connection that asked."""
    data = json.dumps(body).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{server.address.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", server.address.port), timeout=60)
    connection.sendall(head.encode() + data)
    return connection


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_makes_room(tmp_path: Path, stream: bool) -> None:
    """In the middle of its answer, in the queue, and while its prompt is read: somebody waits behind it."""
    reading = FakeReply(prefill_s=1000.0)
    script = FakeScript(replies=(ECHO,), asked={"slow": SLOW, "reading": reading})
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")
    with LocalServer(model, fake_command(script, tmp_path), queue=1) as server:
        begun = threading.Event()
        server.heard = lambda event: begun.set() if isinstance(event, Chunk) else None
        first = request(server, asked("slow", stream=stream))
        assert begun.wait(60), "it is being answered"
        for _ in range(3):
            waiting = request(server, asked("waits", stream=stream))
            until(lambda: server.port.busy == 2)
            waiting.close()
            until(lambda: server.port.busy == 1)
        first.close()
        until(lambda: server.port.busy == 0)
        begun.clear()
        server.heard = lambda event: begun.set() if isinstance(event, Started) else None
        long = request(server, asked("reading", stream=stream))
        assert begun.wait(60), "it is being read"
        long.close()
        until(lambda: server.port.busy == 0)
        assert said(server, "next") == "toy: next"
        assert len(server.done) == 1, "the others were given up"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models that chat, and what is none."""
    folder = tmp_path_factory.mktemp("models")
    target = write_llama(folder / "a.gguf")
    write_llama(folder / "b.gguf")
    write_eagle3(folder / "a-eagle3.gguf")
    for name, kind in (("mmproj", "clip"), ("chat-lora", "llama")):
        writer = gguf.GGUFWriter(folder / f"{name}.gguf", kind)
        writer.add_type("adapter" if name == "chat-lora" else "mmproj")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    (folder / "half.gguf").write_bytes(target.read_bytes()[:5000])
    (folder / "notes.txt").write_text("no model")
    return folder


def test_the_models_that_are_there(folder: Path, tmp_path: Path) -> None:
    """J08: those that chat, by ids without a path, whether they are in memory or not; the same each time."""
    with LocalServer(folder, fake_command(FakeScript(replies=(ECHO,)), tmp_path)) as server:
        for _ in range(2):
            listed = httpx.get(f"{server.url}/v1/models").json()
            assert listed["object"] == "list"
            assert {"a", "b"} <= {model["id"] for model in listed["data"]}
            assert not {"a-eagle3", "mmproj", "chat-lora", "half", "notes"} & {
                m["id"] for m in listed["data"]
            }
            for model in listed["data"]:
                assert set(model) == {"id", "object", "created", "owned_by"} and model["object"] == "model"
                assert "/" not in model["id"] and model["created"] > 0 and model["owned_by"]
            assert said(server, "x", model="b") == "b: x"
        assert str(folder) not in json.dumps(listed)
        slash = httpx.get(f"{server.url}/v1/models/", follow_redirects=True)
        assert slash.json() == listed
        for wrong in ("other", "../a", "A", "a.gguf", str(folder / "a.gguf"), "half", "a-eagle3"):
            answer = httpx.post(server.url + CHAT, json=asked("x") | {"model": wrong})
            assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found"


def test_each_gets_its_own_words_of_its_own_model(folder: Path, tmp_path: Path) -> None:
    """J06: eight at once, for two models in turn, while the window changes the model and asks as well."""
    with LocalServer(folder, fake_command(FakeScript(replies=(ECHO,)), tmp_path)) as server:
        ended: dict[int, str] = {}

        def hear(event: Event) -> None:
            if isinstance(event, Done):
                ended[event.request_id] = event.text

        server.heard = hear

        async def clients() -> tuple[list[str], int]:
            async with httpx.AsyncClient(timeout=60) as http:

                async def one(number: int) -> str:
                    body = asked(str(number), stream=False) | {"model": "ab"[number % 2]}
                    answer = await http.post(server.url + CHAT, json=body)
                    text: str = answer.json()["choices"][0]["message"]["content"]
                    return text

                tasks = [asyncio.create_task(one(number)) for number in range(8)]
                while server.port.busy < 8 and not all(task.done() for task in tasks):
                    await asyncio.sleep(0.001)
                server.client.load(str(folder / "b.gguf"))
                window = server.client.generate([ChatMessage("user", "from the window")])
                later = [asyncio.create_task(one(number)) for number in range(8, 16)]
                return await asyncio.gather(*tasks, *later), window

        texts, window = asyncio.run(clients())
        assert texts == [f"{'ab'[number % 2]}: {number}" for number in range(16)]
        until(lambda: window in ended)
        assert ended[window] == "b: from the window"
        order = list(ended.values())
        assert order.index("b: from the window") == 8, "first come, first served, whoever comes"


def test_more_than_may_wait_are_told_when_to_come_again(tmp_path: Path) -> None:
    """J06: a hundred at once, where 64 may wait for one; when that one goes, each of them gets its own."""
    script = FakeScript(replies=(ECHO,), asked={"slow": FakeReply(prefill_s=1000.0)})
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")
    with LocalServer(model, fake_command(script, tmp_path)) as server:
        slow = request(server, asked("slow"))
        until(lambda: server.port.busy == 1)

        async def crowd() -> list[httpx.Response]:
            refused = 0
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(timeout=60, limits=limits, verify=False) as http:

                async def one(number: int) -> httpx.Response:
                    nonlocal refused
                    body = asked(str(number), stream=False)
                    answer = await http.post(server.url + CHAT, json=body)
                    refused += answer.status_code == 429
                    return answer

                tasks = [asyncio.create_task(one(number)) for number in range(99)]
                while server.port.busy < 65 or refused < 35:
                    await asyncio.sleep(0.01)
                slow.close()
                return await asyncio.gather(*tasks)

        answers = asyncio.run(crowd())
        for number, answer in enumerate(answers):
            if answer.status_code == 429:
                assert 1 <= int(answer.headers["Retry-After"]) <= 600
                assert answer.json()["error"]["code"] == "queue_full"
            else:
                assert answer.json()["choices"][0]["message"]["content"] == f"toy: {number}"
        assert sum(answer.status_code == 200 for answer in answers) == 64


def test_all_who_wait_are_told_that_the_server_stops(tmp_path: Path) -> None:
    with scripted(tmp_path, SLOW) as server:
        waiting = [request(server, asked(str(number), stream=number % 2 == 1)) for number in range(4)]
        until(lambda: server.port.busy == 4)
        server.stop()
        for number, connection in enumerate(waiting):
            with connection:
                told = connection.makefile("rb").read()
            assert b"being stopped" in told and b'"stop"' not in told and b"[DONE]" not in told
            begun = number % 2 == 1 and b" 200 " in told.splitlines()[0]
            assert begun or b" 503 " in told.splitlines()[0]


def test_a_model_that_fails_takes_nobody_along(folder: Path, tmp_path: Path) -> None:
    script = FakeScript(replies=(ECHO,), load_fail="This file is damaged.", fails="b", load_s=0.1)
    with LocalServer(folder, fake_command(script, tmp_path)) as server:

        async def clients() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60) as http:
                bodies = [asked("x", stream=i == 3) | {"model": model} for i, model in enumerate("aabbab")]
                return await asyncio.gather(*(http.post(server.url + CHAT, json=body) for body in bodies))

        for model, answer in zip("aabbab", asyncio.run(clients()), strict=True):
            if model == "a":
                assert answer.status_code == 200 and "a: x" in answer.text
            else:
                assert answer.status_code == 503
                assert answer.json()["error"]["message"] == "This file is damaged."


def test_a_request_that_comes_as_the_model_leaves_is_answered(tmp_path: Path) -> None:
    with scripted(tmp_path, ECHO, idle_s=0.0) as server:
        for number in range(20):
            assert said(server, str(number)) == f"toy: {number}"
        until(lambda: server.port.report is None)


def test_an_engine_that_gave_up_is_tried_again_later(tmp_path: Path) -> None:
    """I03 without a window: after three deaths nothing restarts by itself, but not for ever."""
    now = 0.0
    killed = FakeReply(text="some words", crash="kill", at=1)
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")
    script = FakeScript(replies=(ECHO,), asked={"die": killed})
    with LocalServer(model, fake_command(script, tmp_path), clock=lambda: now) as server:
        for _ in range(CRASH_LIMIT):
            assert httpx.get(f"{server.url}/health").status_code == 200
            answer = httpx.post(server.url + CHAT, json=asked("die", stream=False), timeout=60)
            assert answer.status_code == 503 and answer.json()["error"]["type"] == "server_error"
        until(lambda: not server.port.alive)
        assert httpx.get(f"{server.url}/health").status_code == 503
        answer = httpx.post(server.url + CHAT, json=asked("x", stream=False), timeout=60)
        assert answer.status_code == 503 and "not running" in answer.json()["error"]["message"]
        now = CRASH_WINDOW_S
        assert said(server, "x") == "toy: x"
        assert httpx.get(f"{server.url}/health").status_code == 200


def test_what_the_metrics_count(tmp_path: Path) -> None:
    with scripted(tmp_path, ECHO) as server:
        said(server, "x")
        httpx.get(f"{server.url}/nothing")
        httpx.post(server.url + CHAT, json={})
        text = httpx.get(f"{server.url}/metrics").text
    for line in (
        f'slipstream_requests_total{{route="{CHAT}",status="200"}} 1',
        f'slipstream_requests_total{{route="{CHAT}",status="400"}} 1',
        'slipstream_requests_total{route="other",status="404"} 1',
        "slipstream_queue_length 0",
    ):
        assert line in text.splitlines()
