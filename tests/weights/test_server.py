"""The server over real weights: schemas, functions, prefixes that are reused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model_store.starter import starter_path
from tests.server.local_server import LocalServer

pytestmark = pytest.mark.all_cores

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


# ---- what was read before


def prose(seed: int, sentences: int) -> str:
    """About nine tokens a sentence."""
    rng = random.Random(seed)
    things = ("river", "stone", "garden", "table", "letter", "bridge", "window", "market", "forest")
    return " ".join(
        f"The {rng.choice(things)} is {rng.randint(2, 99)} steps from the {rng.choice(things)}."
        for _ in range(sentences)
    )


class Conversation:
    """Of one client: it sends what was said so far, answers as it got them, and one more question."""

    def __init__(self, server: LocalServer, beginning: str, **more: Any) -> None:
        self._server = server
        self._more = more
        self.messages: list[Any] = [{"role": "system", "content": "You help."}, *user(beginning)]
        self.prompt = self.cached = self.kept = 0
        self.said = ""

    def ask(self) -> None:
        answer = self._server.openai(timeout=300.0).chat.completions.create(
            model=self._server.model, messages=self.messages, max_tokens=12, **self._more
        )
        usage = answer.usage
        assert usage is not None and usage.prompt_tokens_details is not None
        self.prompt, self.cached = usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens or 0
        # What the target has of it: all but the token said last.
        self.kept = usage.total_tokens - 1
        self.said = answer.choices[0].message.content or ""

    def go_on(self) -> int:
        """One turn more; how many tokens had to be read again of those that the one before left."""
        left = self.kept
        self.messages += [{"role": "assistant", "content": self.said}, *user("And on?")]
        self.ask()
        return left - self.cached


def test_long_conversations_are_not_read_twice() -> None:
    """Nearly all that the model can see, in the only slot; another conversation comes between."""
    starter = starter_path()
    assert starter is not None
    settings = Settings(learn=False, temperature=0.0, n_ctx=8192)
    with LocalServer(Path(starter), settings=settings) as server:
        server.openai().models.list()
        long, other = Conversation(server, prose(1, 680)), Conversation(server, prose(2, 20))
        long.ask()
        assert long.prompt > 7000 and long.cached < 100
        assert long.go_on() <= 2
        other.ask()
        assert other.cached < 100
        assert long.go_on() <= 2
        assert other.go_on() <= 2
        assert long.go_on() <= 2
        assert long.prompt - long.cached < 40


def test_more_conversations_than_slots(server: LocalServer) -> None:
    chats = [Conversation(server, prose(10 + n, 20)) for n in range(4)]
    for chat in chats:
        chat.ask()
    for _ in range(2):
        for chat in chats:
            assert chat.go_on() <= 2


def test_an_agent_is_not_told_its_instructions_twice(server: LocalServer) -> None:
    """Each request holds all calls so far and what they gave; another agent works beside it."""
    agents = [
        Conversation(server, f"{prose(20, 30)} Task {n}.", tools=TOOLS, tool_choice="required")
        for n in range(2)
    ]
    before = [0, 0]
    for step in range(2):
        for n, agent in enumerate(agents):
            agent.ask()
            assert agent.cached >= before[n] - 8, "the words that begin an answer may be others now"
            before[n] = agent.prompt
            agent.messages += [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": f"call_{step}",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"place": "Lisbon", "days": 1}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": f"call_{step}", "content": f"{20 + step} degrees"},
            ]


def test_an_answer_that_comes_back_otherwise_costs_no_more_than_itself(server: LocalServer) -> None:
    """A client may trim it, or tell it in words of its own."""
    chat = Conversation(server, prose(30, 20))
    chat.ask()
    prompt = chat.prompt
    chat.messages += [{"role": "assistant", "content": f"{chat.said.strip()} Or so."}, *user("And on?")]
    chat.ask()
    assert chat.cached >= prompt - 1


def test_text_goes_on_without_a_template(server: LocalServer) -> None:
    answer = server.openai().completions.create(
        model=server.model, prompt="The capital of France is", max_tokens=3
    )
    assert "Paris" in answer.choices[0].text
