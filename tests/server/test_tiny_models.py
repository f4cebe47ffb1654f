"""The server over real, tiny models: functions, schemas and templates as the engine sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from app.settings import Settings
from tests.server.local_server import LocalServer
from tests.tiny_gguf import CHATML, Tiny, write_llama

KNOWS_TOOLS = "{% if tools %}{{ tools | tojson }}\n{% endif %}" + CHATML
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"$ref": "#/$defs/Zone"}},
            "required": ["zone"],
            "additionalProperties": False,
            "$defs": {"Zone": {"enum": ["UTC", "CET"]}},
        },
    },
}
N: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder = tmp_path_factory.mktemp("tiny")
    write_llama(folder / "plain.gguf")
    write_llama(folder / "tools.gguf", Tiny(template=KNOWS_TOOLS))
    for name, trick in (
        ("refuses", "{{ raise_exception('no turns today') }}"),
        ("spies", "{{ ''.__class__.__mro__[1].__subclasses__() }}"),
        ("looks", "{{ cycler.__init__.__globals__.os.environ }}"),
        ("endless", "{% for i in range(10**9) %}x{% endfor %}"),
    ):
        write_llama(folder / f"{name}.gguf", Tiny(template=trick + CHATML))
    settings = Settings(learn=False, n_ctx=1024, kv_type="f32", flash_attention="off", n_threads=1)
    with LocalServer(folder, settings=settings, parallel=2) as server:
        made = server.openai()
        made.models.list()
        yield made


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("model", ["plain", "tools"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_time"}}])
def test_a_call_that_must_be_made_is_one(
    client: openai.OpenAI, model: str, stream: bool, choice: Any
) -> None:
    """E06: also with a template that never heard of functions, where the model is told of them in words."""
    asked: dict[str, Any] = {
        "model": model,
        "messages": user("?"),
        "tools": [TOOL],
        "tool_choice": choice,
        "max_tokens": 200,
    }
    if stream:
        events = list(client.chat.completions.create(**asked, stream=True))
        [call] = [call for event in events for call in event.choices[0].delta.tool_calls or []]
        words = "".join(event.choices[0].delta.content or "" for event in events)
        assert (call.index, words, events[-1].choices[0].finish_reason) == (0, "", "tool_calls")
    else:
        [made] = client.chat.completions.create(**asked).choices
        [call] = made.message.tool_calls or []  # type: ignore[assignment]
        assert (made.message.content, made.finish_reason) == (None, "tool_calls")
    assert call.function is not None and call.function.name == "get_time"
    assert json.loads(call.function.arguments or "")["zone"] in ("UTC", "CET")


@pytest.mark.parametrize("model", ["plain", "tools"])
def test_functions_are_never_silently_dropped(client: openai.OpenAI, model: str) -> None:
    """E06: the model is told of them, unless none may be called."""

    def prompt_tokens(**more: Any) -> int:
        answer = client.chat.completions.create(model=model, messages=user("?"), max_tokens=1, **more)
        assert answer.usage is not None
        return answer.usage.prompt_tokens

    without = prompt_tokens()
    assert prompt_tokens(tools=[TOOL]) > without + 20
    assert prompt_tokens(tools=[TOOL], tool_choice="none") == without


def test_json_fits_its_schema_whoever_drafts(client: openai.OpenAI) -> None:
    """A14: with words of the prompt's that drafters would say again, and the same text for a seed."""
    asked: dict[str, Any] = {
        "model": "plain",
        "messages": user('{"n": "seven", "n": "seven"} n is 7'),
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": N}},
        "max_tokens": 100,
        "temperature": 1.0,
    }
    drafted = 0
    for seed in range(6):
        texts = set()
        for speculation in ("off", "auto", ["cache", "simple"], ["map-k", "mod"]):
            answer = client.chat.completions.create(
                **asked, seed=seed, extra_body={"speculation": speculation}
            )
            [choice] = answer.choices
            texts.add(choice.message.content or "")
            assert choice.finish_reason == "stop"
            assert answer.usage is not None and answer.usage.model_extra is not None
            drafted += answer.usage.model_extra["speculation"]["drafted"]
        [text] = texts
        assert isinstance(json.loads(text)["n"], int) and set(json.loads(text)) == {"n"}
    assert drafted, "nothing was tried"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "pattern": "("},
        {"type": "string", "pattern": "^(((a{400}){400}){400})$"},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://evil.example/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"type": "array", "minItems": 10**9, "items": {}},
        {"type": "string", "maxLength": 10**9},
        {"enum": [["x" * 1000] * 60]},
        {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(1000)}},
        {"type": ["string"] * 5000},
        {"type": 7},
        {"properties": 7},
    ],
)
def test_no_schema_stops_the_server(client: openai.OpenAI, schema: dict[str, Any]) -> None:
    """It is followed, or refused as the request's own fault; what comes next is answered."""
    asked = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    try:
        client.chat.completions.create(
            model="plain",
            messages=user("?"),
            response_format=asked,  # type: ignore[arg-type]
            max_tokens=4,
        )
    except openai.BadRequestError as error:
        assert error.param == "response_format" and "grammar" in str(error)
    assert client.chat.completions.create(model="plain", messages=user("x"), max_tokens=1).choices


@pytest.mark.parametrize("model", ["refuses", "spies", "looks", "endless"])
def test_a_hostile_template_harms_nobody_else(client: openai.OpenAI, model: str) -> None:
    """E07: it is refused in words, or another stands in for it; nothing of this machine is in the prompt."""
    try:
        answer = client.chat.completions.create(model=model, messages=user("x"), max_tokens=1)
        assert answer.usage is not None and answer.usage.prompt_tokens < 100
    except openai.BadRequestError as error:
        assert "template" in str(error) and "Traceback" not in str(error)
    assert client.chat.completions.create(model="plain", messages=user("x"), max_tokens=1).choices


def test_a_ban_and_a_token_that_is_not_there(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "plain", "messages": user("x"), "max_tokens": 8, "temperature": 0.0}
    with pytest.raises(openai.BadRequestError, match="no token 512") as refused:
        client.chat.completions.create(**asked, logit_bias={"512": 1})
    assert refused.value.param == "logit_bias"
    told = client.chat.completions.create(**asked, logit_bias={"300": 100}, logprobs=True).choices[0].logprobs
    assert told is not None and len({each.token for each in told.content or []}) == 1


def test_a_prompt_longer_than_the_context(client: openai.OpenAI) -> None:
    """By the name that clients look for which shorten a conversation themselves."""
    with pytest.raises(openai.BadRequestError, match="longer than the context") as refused:
        client.chat.completions.create(model="plain", messages=user("word " * 2000))
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="plain", prompt="word " * 2000)
    assert refused.value.param == "prompt"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="plain", input="word " * 2000)
    assert refused.value.param == "input"


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_that_cannot_be_is_named_by_its_field(client: openai.OpenAI, stream: bool) -> None:
    wrong = {"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}
    function: Any = {"type": "function", "function": {"name": "f", "parameters": wrong}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model="plain", messages=user("?"), tools=[function], tool_choice="required", stream=stream
        )
    assert refused.value.param == "tools"
    shape: Any = {"format": {"type": "json_schema", "name": "s", "schema": wrong}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="plain", input="?", text=shape, stream=stream)
    assert refused.value.param == "text.format"


def test_control_tokens_are_the_senders_own_where_there_is_no_template(client: openai.OpenAI) -> None:
    """So that an editor can ask for what comes between two texts; in a chat they are text (D04)."""

    def tokens(text: str) -> int:
        usage = client.completions.create(model="plain", prompt=text, max_tokens=1).usage
        assert usage is not None
        return usage.prompt_tokens

    assert tokens("a<|im_start|>b<|im_end|>") == 4
    chat = client.chat.completions.create(model="plain", messages=user("a<|im_start|>b"), max_tokens=1).usage
    plain = client.chat.completions.create(model="plain", messages=user("ab"), max_tokens=1).usage
    assert chat is not None and plain is not None and chat.prompt_tokens > plain.prompt_tokens + 5
