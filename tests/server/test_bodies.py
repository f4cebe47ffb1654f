"""What a body may hold: each of these was sent to a server that took it for a fault of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.server.requests import ChatRequest
from app.worker.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer, toy_server

CHAT = "/v1/chat/completions"
SCHEMA = '"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}'
MESSAGES = '"model": "toy", "messages": [{"role": "user", "content": "x"}]'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    script = FakeScript(replies=(FakeReply(text="fine", tokens_per_second=10_000.0),))
    with toy_server(tmp_path_factory.mktemp("bodies"), script) as running:
        running.openai().models.list()
        yield running


def error(server: LocalServer, path: str, body: str | bytes) -> dict[str, Any]:
    """What a request is refused with."""
    with httpx.Client(timeout=60) as client:
        answer = client.post(server.url + path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    told: dict[str, Any] = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"} and told["type"] == "invalid_request_error"
    return told


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def tool(parameters: str) -> str:
    return f'"tools": [{{"type": "function", "function": {{"name": "t", "parameters": {parameters}}}}}]'


@pytest.mark.parametrize(
    "body",
    [
        b'{"temperature": NaN}',
        b'{"temperature": -Infinity}',
        b'{"temperature": 1e400}',
        b'{"user": "\\ud800"}',  # half of a character
        b'{"user": "\xff"}',
        '{"user": "é"}'.encode("latin-1"),
        "{}".encode("utf-16"),
        b'{"seed": ' + b"9" * 5000 + b"}",
        b"{'user': 'x'}",
        b'{"user": "x",}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_json_to_the_letter(server: LocalServer, body: bytes) -> None:
    assert error(server, CHAT, body)["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ('"temperature": "0.5"', "temperature"),
        ('"n": true', "n"),
        ('"stream": "yes"', "stream"),
        ('"seed": 9223372036854775808', "seed"),
        ('"max_tokens": 0', "max_tokens"),
        ('"logit_bias": {"99999999999999999999999": 1}', "logit_bias"),
        ('"logit_bias": {"%s": 1}' % ("9" * 5000), "logit_bias"),
        ('"logit_bias": {"-1": 1}', "logit_bias"),
        ('"logit_bias": {"1": 101}', "logit_bias"),
        ('"metadata": {"secret words": 1}', "metadata"),
        (tool(nested(65)), "tools.0.function.parameters"),
        (tool(nested(900)), "tools.0.function.parameters"),
        (tool(f'{{"maximum": {2**70}}}'), "tools.0.function.parameters"),
        (tool("{}").replace('"t"', '"a b"'), "tools.0.function.name"),
        (tool("{}").replace('"t"', '"é"'), "tools.0.function.name"),
        (tool("{}").replace('"t"', '""'), "tools.0.function.name"),
        ('"tools": [{"type": "function", "function": {"name": "t", "tools": 1}}]', "tools.0.function.tools"),
        (SCHEMA.replace("{}", nested(500)), "response_format.json_schema.schema"),
    ],
)
def test_a_value_that_cannot_be_is_named_by_its_field(server: LocalServer, what: str, field: str) -> None:
    told = error(server, CHAT, f"{{{MESSAGES}, {what}}}")
    assert told["param"] == field and told["message"].startswith(f"{field}: ")
    assert "secret" not in told["message"]


@pytest.mark.parametrize("arguments", ["[1]", "NaN", '{"a": NaN}', '{"a": "\\ud800"}', "{", nested(400)])
def test_calls_that_were_never_made(server: LocalServer, arguments: str) -> None:
    call = {"id": "1", "function": {"name": "t", "arguments": arguments}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "x"}]
    told = error(server, CHAT, json.dumps({"model": "toy", "messages": messages}))
    assert told["param"] == "messages.tool_calls"


def test_other_parts_than_text_are_said_to_be_that(server: LocalServer) -> None:
    """A17, in a build for text only."""
    for part in ({"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_audio"}):
        body = {"model": "toy", "messages": [{"role": "user", "content": [part]}]}
        told = error(server, CHAT, json.dumps(body))
        assert told["param"] == "messages.0.content" and "takes text only" in told["message"]


def test_an_unknown_field_is_named_but_not_at_any_length(server: LocalServer) -> None:
    told = error(server, CHAT, json.dumps({"model": "toy", "messages": [], "x" * 100_000: 1}))
    assert len(told["message"]) < 200
    assert error(server, "/v1/responses", '{"model": "toy", "input": "x", "tools": []}')["param"] == "tools"


def test_a_prompt_of_tokens_is_not_understood(server: LocalServer) -> None:
    assert error(server, "/v1/completions", '{"model": "toy", "prompt": [1, 2]}')["param"] == "prompt"


@pytest.mark.parametrize(
    "more",
    [
        {"logit_bias": {str(i): "x" for i in range(5000)}},
        {"metadata": {str(i): 1 for i in range(5000)}},
        {"stop": [1] * 5000},
        {"tools": [1] * 5000},
        {"tools": [{}] * 100},
        {"messages": [1] * 5000},
        {"messages": [{"role": "user", "content": [1] * 5000}]},
        {"messages": [{"role": "user", "content": [{"type": "text"}] * 500}] * 500},
        {"messages": [{"role": "assistant", "tool_calls": [{}] * 500}] * 500},
        {"tools": [{"type": "function", "function": {"name": "t", "parameters": {"a": [1] * 20_000}}}]},
        {f"x{i}": 1 for i in range(5000)},
    ],
    ids=lambda more: next(iter(more)),
)
def test_many_faults_are_not_all_told(more: dict[str, object]) -> None:
    """What is said of each of a million would fill the memory, and hold up everybody for a minute."""
    body: dict[str, object] = {"model": "toy", "messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(ValidationError) as refused:
        ChatRequest.model_validate(body | more)
    assert refused.value.error_count() <= 3


def test_null_is_the_same_as_nothing(server: LocalServer) -> None:
    """Many a client writes out all the fields that it knows."""
    nothing = ("n", "stream", "temperature", "stop", "tools", "functions", "audio", "stream_options", "seed")
    body = {"model": "toy", "messages": [{"role": "user", "content": "x", "name": None, "audio": None}]}
    for path, made in (
        (CHAT, body),
        ("/v1/completions", {"model": "toy", "prompt": "x", "suffix": None, "echo": None}),
        ("/v1/responses", {"model": "toy", "input": "x", "tools": None}),
    ):
        with httpx.Client(timeout=60) as client:
            answer = client.post(server.url + path, json=made | dict.fromkeys(nothing))
        assert answer.status_code == 200, answer.text
    assert error(server, CHAT, json.dumps(body | {"model": None}))["param"] == "model"


def test_the_last_of_two_equal_names_counts_as_it_does_for_openai(server: LocalServer) -> None:
    body = f'{{"n": 99, {MESSAGES}, "n": 1}}'
    answer = httpx.post(
        server.url + CHAT, content=body, headers={"Content-Type": "application/json"}, timeout=60
    )
    assert answer.status_code == 200 and len(answer.json()["choices"]) == 1
