"""What OpenAI's own client sees, over the real pipe; the words come from a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from app.worker.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer, toy_server

CALL = '<tool_call>\n{"name": "weather", "arguments": {"place": "Genova"}}\n</tool_call>'
LETTERS = "👩‍💻漢字é"
WORDS = "one two three four five six"
# What is asked for is what is said, but for these.
SAID = {
    "drafted": FakeReply(text="word " * 20, drafts=((3, 3), (2, 1))),
    "broken": FakeReply(text=WORDS, fail="it broke", at=4),
    "killed": FakeReply(text=WORDS, crash="kill", at=4),
    "letters": FakeReply(text=LETTERS, bytewise=True, drafts=((2, 1), (3, 3))),
    # A04: a stop in the middle of accepted tokens; one that two passes bring; two of them.
    "stop inside": FakeReply(pieces=("10", "11", "STOP", "20", "21", "22"), drafts=((5, 5),)),
    "stop in two": FakeReply(pieces=("ab", "c", "#", "##\n", "x"), drafts=((0, 0), (0, 0), (0, 0), (2, 2))),
    "two stops": FakeReply(text="aXbEND", drafts=((0, 0), (4, 4))),
}


def made(folder: Path) -> LocalServer:
    script = FakeScript(replies=(FakeReply(text="{prompt}", tokens_per_second=2000.0),), asked=SAID)
    return toy_server(folder, script)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with made(tmp_path_factory.mktemp("openai")) as running:
        running.openai().models.list()
        yield running


@pytest.fixture(scope="module")
def client(server: LocalServer) -> openai.OpenAI:
    return server.openai()


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["toy"]
    model = client.models.retrieve("toy")
    assert (model.object, model.owned_by) == ("model", "local") and model.created > 0
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("other")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="other", messages=user("x"))
    assert refused.value.code == "model_not_found"


def test_chat(server: LocalServer, client: openai.OpenAI) -> None:
    server.done.clear()
    answer = client.chat.completions.create(model="toy", messages=user("drafted"))
    assert answer.object == "chat.completion" and answer.model == "toy"
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("word " * 20, "stop")
    assert choice.message.role == "assistant" and choice.message.tool_calls is None
    usage = answer.usage
    assert usage is not None and usage.model_extra is not None
    [(_, done)] = server.done
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        done.stats.prompt_tokens,
        done.stats.completion_tokens,
    )
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    speculation = usage.model_extra["speculation"]
    assert speculation["drafted"] == done.stats.drafted > 0
    assert speculation["accepted"] == done.stats.accepted > 0
    assert speculation["passes"] == done.stats.target_passes


def test_a_stream_event_by_event(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="toy",
        messages=user("One two three."),
        stream=True,
        stream_options={"include_usage": True},
    )
    events = list(stream)
    assert len({(event.id, event.created, event.model) for event in events}) == 1
    assert {event.object for event in events} == {"chat.completion.chunk"}
    *told, last = events
    assert last.choices == [] and last.usage is not None and last.usage.completion_tokens > 0
    assert all(event.usage is None and len(event.choices) == 1 for event in told)
    first, *middle, end = (event.choices[0] for event in told)
    assert (first.delta.role, first.delta.content, first.finish_reason) == ("assistant", "", None)
    assert "".join(choice.delta.content or "" for choice in middle) == "One two three."
    assert all(choice.finish_reason is None and choice.delta.role is None for choice in middle)
    assert end.finish_reason == "stop" and end.delta.content is None


def lines(server: LocalServer, body: dict[str, Any], path: str = "/v1/chat/completions") -> list[str]:
    """The events of a stream as they are on the wire, between empty lines."""
    with httpx.Client(timeout=60) as http:
        answer = http.post(server.url + path, json={"model": "toy", "stream": True} | body)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    text = answer.content.decode()
    assert text.endswith("\n\n")
    return text.removesuffix("\n\n").split("\n\n")


@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_to_the_letter(server: LocalServer, usage: bool) -> None:
    """J04: usage comes where it was asked for, and only there."""
    body: dict[str, Any] = {"messages": user(WORDS)}
    if usage:
        body["stream_options"] = {"include_usage": True}
    *told, done = lines(server, body)
    assert done == "data: [DONE]"
    assert all(line.startswith("data: {") and "\n" not in line for line in told)
    events = [json.loads(line.removeprefix("data: ")) for line in told]
    assert all(("usage" in event) is usage for event in events)
    if usage:
        last = events.pop()
        assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
        assert all(event["usage"] is None for event in events)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert [("role" in delta) for delta in deltas] == [True] + [False] * (len(deltas) - 1)
    finishes = [event["choices"][0]["finish_reason"] for event in events]
    assert finishes == [None] * (len(events) - 1) + ["stop"]


def test_no_reader_of_lines_finds_one_inside_a_text(server: LocalServer) -> None:
    """str.splitlines of Python's ends lines at these, and so does many a client."""
    text = "a\u2028b\u2029c\x85d\x0be\x1cf\r\ng"
    told = lines(server, {"messages": user(text)})
    assert all(len(line.splitlines()) == 1 for line in told)
    events = [json.loads(line.removeprefix("data: ")) for line in told[:-1]]
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events) == text


def test_thoughts_have_a_field_of_their_own(client: openai.OpenAI) -> None:
    asked = user("<think>\nhm\n</think>\n\nYes.")
    message = client.chat.completions.create(model="toy", messages=asked).choices[0].message
    assert message.content == "Yes."
    assert message.model_extra is not None and message.model_extra["reasoning_content"].strip() == "hm"
    deltas = [
        event.choices[0].delta
        for event in client.chat.completions.create(model="toy", messages=asked, stream=True)
    ]
    assert "".join(delta.content or "" for delta in deltas) == "Yes."
    assert "hm" in "".join((delta.model_extra or {}).get("reasoning_content", "") for delta in deltas)


def test_several_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="toy", messages=user("one of two"), n=2)
    assert [(c.index, c.message.content) for c in answer.choices] == [(0, "one of two"), (1, "one of two")]
    one = client.chat.completions.create(model="toy", messages=user("one of two"))
    assert answer.usage is not None and one.usage is not None
    assert answer.usage.prompt_tokens == one.usage.prompt_tokens
    assert answer.usage.completion_tokens == 2 * one.usage.completion_tokens
    texts = {0: "", 1: ""}
    roles: list[int] = []
    ends: dict[int, str | None] = {}
    for event in client.chat.completions.create(model="toy", messages=user("one of two"), n=2, stream=True):
        [choice] = event.choices
        roles += [choice.index] if choice.delta.role else []
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            ends[choice.index] = choice.finish_reason
    assert texts == {0: "one of two", 1: "one of two"} and ends == {0: "stop", 1: "stop"}
    assert sorted(roles) == [0, 1]


def test_completions(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="toy", prompt="and on", echo=True)
    assert answer.object == "text_completion"
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("and onand on", "stop")
    events = list(client.completions.create(model="toy", prompt=["a", "b"], n=2, stream=True))
    assert {event.choices[0].index for event in events} == {0, 1, 2, 3}
    for index, said in enumerate("aabb"):
        mine = [event.choices[0] for event in events if event.choices[0].index == index]
        assert "".join(choice.text for choice in mine) == said
        assert [choice.finish_reason for choice in mine] == [None] * (len(mine) - 1) + ["stop"]


def test_each_prompt_of_several_counts_once(client: openai.OpenAI) -> None:
    def usage(prompt: str | list[str], n: int) -> tuple[int, int]:
        told = client.completions.create(model="toy", prompt=prompt, n=n).usage
        assert told is not None
        return told.prompt_tokens, told.completion_tokens

    (a, said_a), (b, said_b) = usage("some words", 1), usage("other words than those", 1)
    assert usage(["some words", "other words than those"], 2) == (a + b, 2 * (said_a + said_b))


def test_text_that_goes_on_keeps_what_looks_like_thoughts(client: openai.OpenAI) -> None:
    text = "<think>\nhm\n</think>\n\nYes."
    assert client.completions.create(model="toy", prompt=text).choices[0].text == text
    streamed = client.completions.create(model="toy", prompt=text, stream=True)
    assert "".join(event.choices[0].text for event in streamed) == text


def test_length_and_stops(client: openai.OpenAI) -> None:
    asked = user("alpha beta gamma delta")
    short = client.chat.completions.create(model="toy", messages=asked, max_completion_tokens=2)
    assert short.choices[0].finish_reason == "length"
    assert short.usage is not None and short.usage.completion_tokens == 2
    stopped = client.chat.completions.create(model="toy", messages=asked, stop=["gamma"])
    assert stopped.choices[0].message.content == "alpha beta "
    assert stopped.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("asked", "stop", "text", "tokens", "counted"),
    [
        ("stop inside", "STOP", "1011", ["10", "11"], 3),
        ("stop in two", "###", "abc", ["ab", "c"], 4),
        ("two stops", ["END", "X"], "a", None, None),
    ],
)
@pytest.mark.parametrize("max_tokens", [5, 50])
def test_nothing_behind_a_stop_is_told(
    client: openai.OpenAI,
    asked: str,
    stop: str | list[str],
    text: str,
    tokens: list[str] | None,
    counted: int | None,
    max_tokens: int,
) -> None:
    """A04: no text, no log probability, and no other end than a stop, though the cap is near."""
    answer = client.chat.completions.create(
        model="toy", messages=user(asked), stop=stop, max_tokens=max_tokens, logprobs=True
    )
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == (text, "stop")
    said = [each.token for each in (choice.logprobs and choice.logprobs.content) or []]
    if tokens is not None:
        assert said == tokens
        assert answer.usage is not None and answer.usage.completion_tokens == counted
    events = [
        event.choices[0]
        for event in client.chat.completions.create(
            model="toy", messages=user(asked), stop=stop, max_tokens=max_tokens, logprobs=True, stream=True
        )
    ]
    assert "".join(event.delta.content or "" for event in events) == text
    assert events[-1].finish_reason == "stop"
    told = [each.token for event in events if (p := event.logprobs) for each in p.content or []]
    assert told == said


@pytest.mark.parametrize("most", [1, 3, 10, 11, 12, 13, 14, 15, 50])
def test_characters_come_whole_however_their_bytes_come(
    server: LocalServer, client: openai.OpenAI, most: int
) -> None:
    """D01: one byte in each token, and an end in the middle of a character, the same in every form."""
    whole = client.chat.completions.create(
        model="toy", messages=user("letters"), max_tokens=most, logprobs=True
    ).choices[0]
    content = whole.message.content or ""
    assert LETTERS.startswith(content) and "\ufffd" not in content
    assert content == LETTERS.encode()[:most].decode(errors="ignore")
    assert whole.logprobs is not None
    assert not any("\ufffd" in each.token for each in whole.logprobs.content or [])
    data = b"".join(bytes(each.bytes or ()) for each in whole.logprobs.content or [])
    assert data.decode() == content
    body = {"messages": user("letters"), "max_tokens": most}
    events = [json.loads(line.removeprefix("data: ")) for line in lines(server, body)[:-1]]
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events) == content
    older = client.completions.create(model="toy", prompt="letters", max_tokens=most, logprobs=0).choices[0]
    assert older.text == content and older.logprobs is not None
    assert "\ufffd" not in "".join(older.logprobs.tokens or [])


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("temperature", 3.0, "invalid_value"),
        ("top_p", 0.0, "invalid_value"),
        ("n", 99, "invalid_value"),
        ("stop", [""], "unsupported_value"),
        ("logit_bias", {"word": 1}, "unsupported_value"),
        ("frequency_penalty", "much", "invalid_value"),
        ("made_up", 1, "unknown_field"),
        ("speculation", ["oracle"], "invalid_value"),
        ("stream_options", {"include_usage": True}, "unsupported_value"),
        ("tool_choice", "required", "unsupported_value"),
        ("top_logprobs", 2, "unsupported_value"),
        ("response_format", {"type": "json_schema"}, "unsupported_value"),
    ],
)
def test_what_is_not_supported_is_named(client: openai.OpenAI, field: str, value: object, code: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="toy", messages=user("secret words"), extra_body={field: value})
    assert refused.value.code == code
    assert (refused.value.param or "").split(".")[0] == field
    assert "secret" not in str(refused.value)


def test_speculation_is_the_requests_choice(client: openai.OpenAI) -> None:
    for speculation, drafts in (("off", False), ("auto", True), (["map-k"], True)):
        answer = client.chat.completions.create(
            model="toy", messages=user("drafted"), extra_body={"speculation": speculation}
        )
        assert answer.usage is not None and answer.usage.model_extra is not None
        assert bool(answer.usage.model_extra["speculation"]["drafted"]) is drafts


def test_what_the_engine_refuses_is_the_requests_fault(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.chat.completions.create(model="toy", messages=user("  "))


@pytest.mark.parametrize(("asked", "words"), [("broken", "broke"), ("killed", "process stopped")])
def test_a_fault_in_mid_stream_is_an_event_and_no_end(tmp_path: Path, asked: str, words: str) -> None:
    """J04: one error event and the end of the stream; and the next request is answered."""
    with made(tmp_path) as server:
        _ends_with_an_error(server, asked, words)
        answer = server.openai().chat.completions.create(model="toy", messages=user("and now?"))
        assert answer.choices[0].message.content == "and now?"


def _ends_with_an_error(server: LocalServer, asked: str, words: str) -> None:
    *told, last = lines(server, {"messages": user(asked)})
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["type"] == "server_error" and words in error["message"]
    choices = [json.loads(line.removeprefix("data: "))["choices"][0] for line in told]
    assert "".join(choice["delta"].get("content", "") for choice in choices).startswith("one")
    assert all(choice["finish_reason"] is None for choice in choices)


def test_a_fault_in_mid_stream_for_openais_client(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="toy", messages=user("broken"), stream=True)
    with pytest.raises(openai.APIError, match="broke"):
        list(stream)
    with pytest.raises(openai.InternalServerError, match="broke"):
        client.chat.completions.create(model="toy", messages=user("broken"))


TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Of a place",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}},
                "required": ["place"],
            },
        },
    }
]


def test_tools(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="toy", messages=user(f"I look.\n{CALL}"), tools=TOOLS)
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls" and choice.message.content == "I look."
    [call] = choice.message.tool_calls or []
    assert call.type == "function" and call.function.name == "weather" and call.id
    assert json.loads(call.function.arguments) == {"place": "Genova"}
    # What was called and what it gave back go into the next request, also where that is nothing.
    for given in ("sunny", ""):
        result = {"role": "tool", "tool_call_id": call.id, "content": given}
        again = client.chat.completions.create(
            model="toy", messages=[*user("?"), choice.message, result], tools=TOOLS, tool_choice="none"
        )
        assert (again.choices[0].message.content, again.choices[0].finish_reason) == (given, "stop")


def test_a_call_alone_has_no_content(client: openai.OpenAI) -> None:
    """E06."""
    answer = client.chat.completions.create(model="toy", messages=user(CALL), tools=TOOLS)
    assert answer.choices[0].message.content is None
    assert answer.choices[0].finish_reason == "tool_calls"


def test_two_calls_unless_one_is_asked_for(client: openai.OpenAI) -> None:
    for parallel, count in ((None, 2), (True, 2), (False, 1)):
        asked: dict[str, Any] = {"model": "toy", "messages": user(f"{CALL}\n{CALL}"), "tools": TOOLS}
        if parallel is not None:
            asked["parallel_tool_calls"] = parallel
        whole = client.chat.completions.create(**asked).choices[0].message.tool_calls or []
        assert len(whole) == count == len({call.id for call in whole})
        events = list(client.chat.completions.create(**asked, stream=True))
        calls = [call for event in events for call in event.choices[0].delta.tool_calls or []]
        assert [call.index for call in calls] == list(range(count))


@pytest.mark.parametrize("stream", [False, True])
def test_half_a_call_is_no_call(client: openai.OpenAI, stream: bool) -> None:
    """E06: cut by the length cap."""
    asked: dict[str, Any] = {"model": "toy", "messages": user(CALL), "tools": TOOLS, "max_tokens": 8}
    if stream:
        events = list(client.chat.completions.create(**asked, stream=True))
        assert not any(event.choices[0].delta.tool_calls for event in events)
        assert events[-1].choices[0].finish_reason == "length"
    else:
        [choice] = client.chat.completions.create(**asked).choices
        assert (choice.message.tool_calls, choice.finish_reason) == (None, "length")


def test_tools_in_a_stream(client: openai.OpenAI) -> None:
    events = list(
        client.chat.completions.create(
            model="toy", messages=user(f"I look.\n{CALL}"), tools=TOOLS, stream=True
        )
    )
    deltas = [event.choices[0].delta for event in events]
    assert "".join(delta.content or "" for delta in deltas).strip() == "I look."
    [call] = [call for delta in deltas for call in delta.tool_calls or []]
    assert call.index == 0 and call.type == "function" and call.id
    assert call.function is not None and call.function.name == "weather"
    assert json.loads(call.function.arguments or "") == {"place": "Genova"}
    assert events[-1].choices[0].finish_reason == "tool_calls"


def test_logprobs(client: openai.OpenAI) -> None:
    asked = user("One two.")
    answer = client.chat.completions.create(model="toy", messages=asked, logprobs=True, top_logprobs=1)
    told = answer.choices[0].logprobs
    assert told is not None and told.content is not None
    assert b"".join(bytes(each.bytes or ()) for each in told.content) == b"One two."
    assert all(each.logprob == 0.0 and len(each.top_logprobs) == 1 for each in told.content)
    streamed = client.chat.completions.create(model="toy", messages=asked, logprobs=True, stream=True)
    tokens = [each.token for e in streamed if (p := e.choices[0].logprobs) for each in p.content or []]
    assert "".join(tokens) == "One two."


@pytest.mark.parametrize("echo", [False, True])
def test_older_logprobs_say_where_tokens_begin(client: openai.OpenAI, echo: bool) -> None:
    """Also in a stream whose end was held back, and where a character is many tokens."""
    for prompt in ("One two.", "letters"):
        asked: dict[str, Any] = {"model": "toy", "prompt": prompt, "logprobs": 1, "echo": echo, "stop": "%%"}
        whole = client.completions.create(**asked, max_tokens=100).choices[0]
        told = whole.logprobs
        assert told is not None and told.tokens and told.text_offset and told.top_logprobs
        assert len(told.tokens) == len(told.text_offset) == len(told.token_logprobs or []) > 1
        for token, offset in zip(told.tokens, told.text_offset, strict=True):
            assert token.startswith("bytes:\\x") or whole.text[offset:].startswith(token)
        assert told.text_offset[0] == (len(prompt) if echo else 0)
        assert [list(top) for top in told.top_logprobs] == [[token] for token in told.tokens]
        offsets: list[int] = []
        for event in client.completions.create(**asked, max_tokens=100, stream=True):
            if (part := event.choices[0].logprobs) is not None:
                offsets += part.text_offset or []
        assert offsets == told.text_offset


def test_embeddings_need_an_embedding_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model="toy", input="x")
    assert refused.value.param == "model" and "embedding" in str(refused.value)


def test_responses(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="toy", input="Hello, you", instructions="Be kind.")
    assert (answer.status, answer.output_text) == ("completed", "Hello, you")
    assert answer.usage is not None and answer.usage.output_tokens > 0
    item: Any = answer.output[0]
    # What was answered may come back as it was.
    again = client.responses.create(
        model="toy",
        input=[{"role": "user", "content": "you"}, item.to_dict(), {"role": "user", "content": "Hello, me"}],
    )
    assert again.output_text == "Hello, me"
    short = client.responses.create(model="toy", input="Hello, you", max_output_tokens=1)
    assert short.status == "incomplete" and short.incomplete_details is not None
    assert short.incomplete_details.reason == "max_output_tokens"
    assert client.responses.create(model="toy", input="<think>\nhm\n</think>\n\nYes.").output_text == "Yes."


@pytest.mark.parametrize("most", [None, 2])
def test_responses_in_a_stream(client: openai.OpenAI, most: int | None) -> None:
    events = list(
        client.responses.create(model="toy", input="One two three.", stream=True, max_output_tokens=most)
    )
    end = "incomplete" if most else "completed"
    types = [event.type for event in events]
    assert types[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert types[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{end}",
    ]
    assert set(types[4:-4]) == {"response.output_text.delta"}
    assert [event.sequence_number for event in events] == list(range(len(events)))
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last: Any = events[-1]
    assert said == last.response.output_text and last.response.status == end
    assert said == ("One two three." if most is None else "One two")
    assert len({event.item_id for event in events if hasattr(event, "item_id")}) == 1


def test_a_fault_in_a_stream_of_responses(server: LocalServer) -> None:
    """One event more, numbered as the others are; then nothing that looks like an end."""
    told = lines(server, {"input": "broken"}, "/v1/responses")
    events = [json.loads(line.partition("\ndata: ")[2]) for line in told]
    assert [line.partition("\n")[0] for line in told] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    last = events[-1]
    assert last["type"] == "error" and "broke" in last["message"] and last["code"] == "internal"
    assert not any(event["type"].endswith(("done", "completed", "incomplete")) for event in events)


def test_what_openais_client_puts_together_of_a_stream(client: openai.OpenAI) -> None:
    """Its own helpers are stricter than a loop over events: places, kinds and ends must all be there."""
    with client.chat.completions.stream(
        model="toy", messages=user(f"I look.\n{CALL}\n{CALL}"), tools=TOOLS, n=2
    ) as chat:
        told = [event.type for event in chat]
        whole = chat.get_final_completion()
    assert {"chunk", "content.delta", "tool_calls.function.arguments.done"} <= set(told)
    for choice in whole.choices:
        calls = choice.message.tool_calls or []
        assert [json.loads(call.function.arguments) for call in calls] == [{"place": "Genova"}] * 2
        assert choice.finish_reason == "tool_calls" and (choice.message.content or "").strip() == "I look."
    with client.responses.stream(model="toy", input="One two three.") as response:
        assert [event.type for event in response][-1] == "response.completed"
        assert response.get_final_response().output_text == "One two three."
