"""Many clients at once, some of which go away: nobody gets another's words, nobody waits for ever."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from app.protocol import Done
from app.settings import Settings
from app.worker.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer
from tests.session import fake_command
from tests.tiny_gguf import write_llama

CLIENTS, REQUESTS = 16, 200
_WAIT_S = 60.0


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def scripted(folder: Path, *replies: FakeReply, **options: object) -> LocalServer:
    model = folder / "toy.gguf"
    model.write_bytes(b"GGUF")
    return LocalServer(model, fake_command(FakeScript(replies=replies), folder), **options)  # type: ignore[arg-type]


def asked(marker: str, *, stream: bool = True) -> dict[str, object]:
    return {"model": "toy", "messages": [{"role": "user", "content": marker}], "stream": stream}


@pytest.mark.parametrize("parallel", [1, 4])
def test_two_hundred_requests_of_sixteen_clients(tmp_path: Path, parallel: int) -> None:
    reply = FakeReply(
        text="marker {prompt} " + "and on " * 30, tokens_per_second=10_000, drafts=((3, 2), (0, 0))
    )
    with scripted(tmp_path, reply, parallel=parallel, queue=CLIENTS) as server:
        outcomes = asyncio.run(_clients(server.url))
        assert outcomes.count("whole") + outcomes.count("left") == REQUESTS
        assert outcomes.count("whole") > 50 and outcomes.count("left") > 20
        until(lambda: server.port.busy == 0)
        answers = [done for _, done in server.done]
        assert all(done.text.endswith("and on ") for done in answers)
        assert said(server, "last").startswith("marker last "), "the engine is free"


async def _clients(url: str) -> list[str]:
    numbers = iter(range(REQUESTS))
    rng = random.Random(7)
    outcomes: list[str] = []

    async def client() -> None:
        async with httpx.AsyncClient(timeout=_WAIT_S) as http:
            for number in numbers:
                marker = f"<{number}-{rng.random()}>"
                leaves_after = rng.randrange(12) if rng.random() < 0.4 else None
                outcomes.append(await _one(http, url, marker, leaves_after))

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return outcomes


async def _one(http: httpx.AsyncClient, url: str, marker: str, leaves_after: int | None) -> str:
    text, ended, events = "", False, 0
    async with http.stream("POST", f"{url}/v1/chat/completions", json=asked(marker)) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if leaves_after is not None and events >= leaves_after:
                return "left"
            if not line.startswith("data: {"):
                ended = ended or line == "data: [DONE]"
                continue
            events += 1
            [choice] = httpx.Response(200, text=line.removeprefix("data: ")).json()["choices"]
            text += choice["delta"].get("content", "")
    assert ended
    assert text.startswith(f"marker {marker} "), "the words of another"
    assert text.endswith("and on ")
    return "whole"


def said(server: LocalServer, prompt: str, model: str = "toy") -> str:
    body = asked(prompt, stream=False) | {"model": model}
    with httpx.Client(timeout=_WAIT_S) as client:
        answer = client.post(f"{server.url}/v1/chat/completions", json=body)
    content: str = answer.json()["choices"][0]["message"]["content"]
    return content


def test_stopping_the_server_ends_answers_with_an_error(tmp_path: Path) -> None:
    """Never with a stop that looks like the model's own."""
    slow = FakeReply(text="word " * 5000, tokens_per_second=50)
    with scripted(tmp_path, slow) as server, httpx.Client(timeout=30) as client:
        lines = []
        with client.stream("POST", f"{server.url}/v1/chat/completions", json=asked("x")) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                if len(lines) == 10:
                    server._host.stop()
        text = "\n".join(lines)
        assert '"error"' in text and "being stopped" in text
        assert "[DONE]" not in text and '"finish_reason": "stop"' not in text


def test_the_model_leaves_memory_when_nobody_asks_and_comes_back(tmp_path: Path) -> None:
    with scripted(tmp_path, FakeReply(text="here"), idle_s=0.2) as server, httpx.Client(timeout=30) as client:
        for _ in range(2):
            answer = client.post(f"{server.url}/v1/chat/completions", json=asked("x", stream=False))
            assert answer.json()["choices"][0]["message"]["content"] == "here"
            until(lambda: server.port.report is None)


def test_a_model_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")
    script = FakeScript(load_fail="This file is damaged.")
    with LocalServer(model, fake_command(script, tmp_path)) as server, httpx.Client(timeout=30) as client:
        for stream in (True, False, True):
            answer = client.post(f"{server.url}/v1/chat/completions", json=asked("x", stream=stream))
            assert answer.status_code == 503
            assert answer.json()["error"]["message"] == "This file is damaged."


def test_real_answers_in_one_batch_and_memory_that_stays_flat(tmp_path: Path) -> None:
    t0 = write_llama(tmp_path / "t0.gguf")
    settings = Settings(learn=False, n_ctx=512, temperature=0.0)
    with LocalServer(t0, settings=settings, parallel=4, queue=CLIENTS) as server:

        async def rounds(count: int) -> None:
            async with httpx.AsyncClient(timeout=_WAIT_S) as http:
                for _ in range(count):
                    await asyncio.gather(*(_short(http, server.url, t0.stem, i) for i in range(8)))

        asyncio.run(rounds(4))
        pid = server.client.pid
        assert pid is not None
        before = psutil.Process(pid).memory_info().rss
        asyncio.run(rounds(12))
        grown = psutil.Process(pid).memory_info().rss - before
        assert grown < 16 << 20
        assert server.port.busy == 0
        answers: list[Done] = [done for _, done in server.done]
        assert len(answers) == 16 * 8


async def _short(http: httpx.AsyncClient, url: str, model: str, number: int) -> None:
    body = asked(f"count {number} ") | {"model": model, "stream": False, "max_tokens": 24}
    answer = await http.post(f"{url}/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] > 0
