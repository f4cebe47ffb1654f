"""The server over real weights: schemas, functions, prefixes that are reused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model_store.starter import starter_path
from tests.server.local_server import LocalServer

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a place",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string", "maxLength": 20}, "days": {"enum": [1, 2]}},
                "required": ["place", "days"],
                "additionalProperties": False,
            },
        },
    }
]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    starter = starter_path()
    assert starter is not None
    settings = Settings(learn=False, temperature=0.0, n_ctx=4096)
    with LocalServer(Path(starter), settings=settings, parallel=2) as running:
        running.openai().models.list()  # its threads are there from here on
        yield running


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_json_that_fits_a_schema(server: LocalServer) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "maximum": 99},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    answer = server.openai().chat.completions.create(
        model=server.model,
        messages=user("Give me a person as JSON."),
        max_tokens=200,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
    )
    person = json.loads(answer.choices[0].message.content or "")
    assert set(person) == {"name", "age"} and isinstance(person["age"], int)


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_that_must_be_called(server: LocalServer, stream: bool) -> None:
    """The starter's template knows nothing of functions, and the model is too small to choose one."""
    asked: dict[str, Any] = {
        "model": server.model,
        "messages": user("What is the weather in Lisbon?"),
        "tools": TOOLS,
        "tool_choice": "required",
        "max_tokens": 100,
    }
    client = server.openai()
    if stream:
        events = list(client.chat.completions.create(**asked, stream=True))
        calls = [call for event in events for call in event.choices[0].delta.tool_calls or []]
        finish = events[-1].choices[0].finish_reason
    else:
        [choice] = client.chat.completions.create(**asked).choices
        calls, finish = choice.message.tool_calls or [], choice.finish_reason
    assert finish == "tool_calls"
    [call] = calls
    assert call.function is not None and call.function.name == "weather"
    arguments = json.loads(call.function.arguments or "")
    assert set(arguments) == {"place", "days"} and arguments["days"] in (1, 2)


def test_a_seed_gives_one_text_whoever_drafts(server: LocalServer) -> None:
    client = server.openai()
    texts = {
        client.chat.completions.create(
            model=server.model,
            messages=user("Tell me of the sea."),
            temperature=0.9,
            seed=11,
            max_tokens=24,
            extra_body={"speculation": speculation},
        ).choices[0].message.content
        for speculation in ("off", "off", "auto")
    }  # fmt: skip
    assert len(texts) == 1


def test_a_conversation_is_not_read_twice(server: LocalServer) -> None:
    """Nor after the other slot was used, nor in another conversation's place."""
    client = server.openai()
    chat = user("word " * 1500)
    first = client.chat.completions.create(model=server.model, messages=chat, max_tokens=8)
    assert first.usage is not None and first.usage.prompt_tokens > 1500
    client.chat.completions.create(model=server.model, messages=user("Hello?"), max_tokens=8)
    chat += [{"role": "assistant", "content": first.choices[0].message.content}, *user("And on?")]
    second = client.chat.completions.create(model=server.model, messages=chat, max_tokens=8)
    assert second.usage is not None and second.usage.prompt_tokens_details is not None
    cached = second.usage.prompt_tokens_details.cached_tokens or 0
    assert cached >= first.usage.prompt_tokens - 1


def test_text_goes_on_without_a_template(server: LocalServer) -> None:
    answer = server.openai().completions.create(
        model=server.model, prompt="The capital of France is", max_tokens=3
    )
    assert "Paris" in answer.choices[0].text
