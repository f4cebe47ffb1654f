"""Tokens per second of the server, for several clients at once, beside llama-server on the same file.

    python -m tests.server.throughput [--peer PATH] [--clients 4] [--rounds 3] [--model FILE]

Each round asks ours with drafting off and in auto, and the peer with ``-np``, in a new order: their
ratio is what counts. With one client it also prints what HTTP adds to the worker's own time to the first
token. Nothing else may compute meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from app.bench.workloads import load_workloads
from app.protocol import ChatMessage, Chunk, DraftingParams, Generate, SamplingParams
from app.settings import Settings
from model_store.starter import starter_path
from tests.server.local_server import LocalServer

WORKLOADS = ("edit", "chat", "json", "refactor")
MAX_TOKENS = 200
N_CTX = 2048


async def burst(
    url: str, model: str, prompts: list[str], speculation: str | None
) -> tuple[int, float, list[float]]:
    """Tokens of all answers, seconds for all, and each client's seconds to its first token."""
    firsts: list[float] = []

    async def one(http: httpx.AsyncClient, prompt: str) -> int:
        body: dict[str, object] = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0.0,
            "max_tokens": MAX_TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if speculation is not None:
            body["speculation"] = speculation
        began = time.perf_counter()
        tokens = 0
        async with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
            answer.raise_for_status()
            first = True
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line.removeprefix("data: "))
                if first and event["choices"] and event["choices"][0]["delta"].get("content"):
                    firsts.append(time.perf_counter() - began)
                    first = False
                if event.get("usage"):
                    tokens = event["usage"]["completion_tokens"]
        return tokens

    async with httpx.AsyncClient(timeout=600) as http:
        began = time.perf_counter()
        counts = await asyncio.gather(*(one(http, prompt) for prompt in prompts))
        return sum(counts), time.perf_counter() - began, firsts


def direct(server: LocalServer, prompt: str) -> float:
    """Seconds to the first token without HTTP: from the client that the command line has."""
    first = threading.Event()
    server.heard = lambda event: first.set() if isinstance(event, Chunk) else None
    request = Generate(
        request_id=0,
        messages=(ChatMessage("user", prompt),),
        sampling=SamplingParams(temperature=0),
        drafting=DraftingParams(links=()),
        max_tokens=MAX_TOKENS,
    )
    began = time.perf_counter()
    request_id = server.client.ask(request)
    first.wait(600)
    seconds = time.perf_counter() - began
    server.heard = lambda event: None
    server.client.cancel(request_id)
    return seconds


@contextmanager
def peer_server(binary: str, model: Path, clients: int, threads: int) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(binary, "--model", str(model), "--port", str(port), "-np", str(clients)),
        *("--ctx-size", str(N_CTX * clients), "--threads", str(threads), "--threads-batch", str(threads)),
        *("--batch-size", "512", "--ubatch-size", "512", "--no-warmup", "--jinja"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                if httpx.get(f"{url}/health").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            if process.poll() is not None:
                raise SystemExit("the peer ended")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def _speculation(mode: str) -> str | None:
    return None if mode == "peer" else mode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, default=starter_path())
    parser.add_argument("--peer")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    texts = {workload.name: workload.primary.turns[0] for workload in load_workloads()}
    prompts = [texts[WORKLOADS[i % len(WORKLOADS)]] for i in range(options.clients)]
    settings = Settings(learn=False, n_ctx=N_CTX, n_threads=options.threads)
    speeds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        server = stack.enter_context(LocalServer(options.model, settings=settings, parallel=options.clients))
        urls = {"off": server.url, "auto": server.url}
        if options.peer:
            run = peer_server(options.peer, options.model, options.clients, options.threads)
            urls["peer"] = stack.enter_context(run)
        for mode, url in urls.items():
            # Loaded, and its pages read; another text, so that no prompt is known.
            asyncio.run(burst(url, server.model, ["Hello!"], _speculation(mode)))
        for number in range(options.rounds):
            turn = number % len(urls)
            for mode in [*urls][turn:] + [*urls][:turn]:
                seen = len(server.done)
                texts_now = [f"{number}{mode}. {text}" for text in prompts]
                tokens, seconds, firsts = asyncio.run(
                    burst(urls[mode], server.model, texts_now, _speculation(mode))
                )
                speeds.setdefault(mode, []).append(tokens / seconds)
                if options.clients == 1 and mode != "peer":
                    own = direct(server, f"{number}{mode}! {prompts[0]}")
                    added = (firsts[0] - own) * 1000
                    speed = server.done[seen][1].stats.tokens_per_second or 0.0
                    print(f"  {mode}: HTTP adds {added:.1f} ms to {own * 1000:.0f} until the first token")
                    streamed = (tokens - 1) / (seconds - firsts[0])
                    print(f"  {mode}: {streamed / speed:.3f} of the worker's {speed:.1f} tok/s")
            print({name: round(values[-1], 1) for name, values in speeds.items()}, flush=True)
    for name, values in speeds.items():
        ratios = [a / b for a, b in zip(values, speeds.get("peer", values), strict=True)]
        median, ratio = statistics.median(values), statistics.median(ratios)
        print(f"{name}: median {median:.1f} tok/s for {options.clients} clients, {ratio:.3f} of the peer's")


if __name__ == "__main__":
    main()
