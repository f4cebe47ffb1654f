"""How many requests a minute: the bucket by a clock of the test's own, and what a client is told."""

from __future__ import annotations

from pathlib import Path

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.rate_limit import LOOPBACK, RateLimit, client_of
from app.settings import Settings
from app.worker.fake_script import FakeReply
from tests.server.test_load import scripted

_STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 40)), max_size=120)


@given(st.integers(1, 50), _STEPS)
def test_no_more_than_a_minutes_requests_and_what_came_back_since(
    per_minute: int, steps: list[tuple[str, float]]
) -> None:
    limit, now = RateLimit(), 0.0
    made: dict[str, list[float]] = {"a": [], "b": []}
    for client, seconds in steps:
        now += seconds
        if limit.take(client, per_minute, now) == 0.0:
            made[client].append(now)
    for times in made.values():
        for first, began in enumerate(times):
            for last in range(first, len(times)):
                assert last - first + 1 <= per_minute * (1 + (times[last] - began) / 60) + 1e-6


@given(st.integers(1, 50), st.lists(st.floats(0, 5), min_size=1, max_size=80))
def test_the_wait_that_is_told_is_long_enough_and_no_longer(per_minute: int, pauses: list[float]) -> None:
    limit, now = RateLimit(), 0.0
    for pause in pauses:
        now += pause
        wait = limit.take("a", per_minute, now)
        if wait:
            assert limit.take("a", per_minute, now + 0.9 * wait) > 0.0, "it would have been too early"
            now += wait
            assert limit.take("a", per_minute, now) == 0.0


def test_clients_have_limits_of_their_own_and_none_means_none() -> None:
    limit = RateLimit()
    assert [limit.take("a", 2, 0.0) for _ in range(2)] == [0.0, 0.0]
    assert limit.take("a", 2, 0.0) == pytest.approx(30.0)
    assert limit.take("b", 2, 0.0) == 0.0
    assert limit.take("a", 0, 0.0) == 0.0, "the limit was taken away"
    assert limit.take("a", 2, 0.0) == 0.0


def test_quiet_clients_are_forgotten() -> None:
    limit = RateLimit()
    for number in range(10_000):
        limit.take(f"client {number}", 5, number * 0.001)
    assert len(limit._buckets) <= 4096
    limit.take("another", 5, 1000.0)
    assert len(limit._buckets) == 1


@pytest.mark.parametrize(
    ("address", "client"),
    [("127.0.0.1", LOOPBACK), ("127.0.0.2", LOOPBACK), ("::1", LOOPBACK), (None, LOOPBACK)]
    + [(each, each) for each in ("192.168.0.7", "fe80::1", "12.7.0.0")],
)
def test_all_of_one_machine_are_one_client(address: str | None, client: str) -> None:
    assert client_of(address) == client


def test_a_request_too_many_is_told_when_to_come_again(tmp_path: Path) -> None:
    settings = Settings(learn=False, server_requests_per_minute=2)
    body = {"model": "toy", "messages": [{"role": "user", "content": "x"}]}
    with scripted(tmp_path, FakeReply(text="fine"), settings=settings) as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            answers = [client.post("/v1/chat/completions", json=body) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            refused = answers[-1]
            assert 1 <= int(refused.headers["Retry-After"]) <= 30
            error = refused.json()["error"]
            assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
            # Another route for answers is under the same limit, others are under none.
            assert client.post("/v1/completions", json={"model": "toy", "prompt": "x"}).status_code == 429
            assert client.post("/v1/nothing", json={}).status_code == 404
            assert client.get("/v1/models").status_code == 200
            metrics = client.get("/metrics").text
        assert 'slipstream_refused_requests_total{reason="rate_limit_exceeded"} 2' in metrics
        assert 'slipstream_requests_total{route="/v1/chat/completions",status="429"} 1' in metrics
        with pytest.raises(openai.RateLimitError) as failure:
            server.openai().chat.completions.create(model="toy", messages=[{"role": "user", "content": "x"}])
        assert failure.value.code == "rate_limit_exceeded"
