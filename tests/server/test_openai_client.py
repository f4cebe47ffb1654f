"""What OpenAI's own client sees, over the real pipe; the words come from a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest

from app.fake_script import FakeReply, FakeScript
from tests.server.local_server import LocalServer
from tests.session import fake_command

Serve = Callable[..., LocalServer]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers over the scripted engine; they are stopped again."""
    running: list[LocalServer] = []
    model = tmp_path / "toy.gguf"
    model.write_bytes(b"GGUF")

    def start(*replies: FakeReply, **options: object) -> LocalServer:
        command = fake_command(FakeScript(replies=replies or (FakeReply(),)), tmp_path)
        server = LocalServer(model, command, **options)  # type: ignore[arg-type]
        running.append(server)
        return server.__enter__()

    yield start
    for server in running:
        server.__exit__(None, None, None)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_models(serve: Serve) -> None:
    client = serve().openai()
    assert [model.id for model in client.models.list()] == ["toy"]
    assert client.models.retrieve("toy").owned_by == "local"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("other")
    assert refused.value.code == "model_not_found"


def test_chat(serve: Serve) -> None:
    server = serve(FakeReply(text="Hello, {prompt}", drafts=((2, 1),)))
    answer = server.openai().chat.completions.create(model="toy", messages=user("you"))  # type: ignore[arg-type]
    assert answer.object == "chat.completion" and answer.model == "toy"
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("Hello, you", "stop")
    usage = answer.usage
    assert usage is not None
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


def test_a_stream_event_by_event(serve: Serve) -> None:
    server = serve(FakeReply(text="One two three."))
    stream = server.openai().chat.completions.create(
        model="toy",
        messages=user("go"),  # type: ignore[arg-type]
        stream=True,
        stream_options={"include_usage": True},
    )
    events = list(stream)
    assert len({event.id for event in events}) == 1
    assert {event.object for event in events} == {"chat.completion.chunk"}
    *told, last = events
    assert last.choices == [] and last.usage is not None and last.usage.completion_tokens > 0
    assert all(event.usage is None and len(event.choices) == 1 for event in told)
    first, *middle, end = (event.choices[0] for event in told)
    assert (first.delta.role, first.delta.content, first.finish_reason) == ("assistant", "", None)
    assert "".join(choice.delta.content or "" for choice in middle) == "One two three."
    assert all(choice.finish_reason is None for choice in middle)
    assert end.finish_reason == "stop" and end.delta.content is None


def test_thoughts_have_a_field_of_their_own(serve: Serve) -> None:
    server = serve(FakeReply(text="<think>\nhm\n</think>\n\nYes."))
    client = server.openai()
    message = client.chat.completions.create(model="toy", messages=user("?")).choices[0].message  # type: ignore[arg-type]
    assert message.content == "Yes."
    assert message.model_extra["reasoning_content"].strip() == "hm"
    deltas = [
        event.choices[0].delta
        for event in client.chat.completions.create(model="toy", messages=user("?"), stream=True)  # type: ignore[arg-type]
    ]
    assert "".join(delta.content or "" for delta in deltas) == "Yes."
    assert "hm" in "".join(delta.model_extra.get("reasoning_content", "") for delta in deltas)


def test_several_choices(serve: Serve) -> None:
    server = serve(FakeReply(text="first"), FakeReply(text="second"))
    client = server.openai()
    answer = client.chat.completions.create(model="toy", messages=user("go"), n=2)  # type: ignore[arg-type]
    assert [(c.index, c.message.content) for c in answer.choices] == [(0, "first"), (1, "second")]
    texts = {0: "", 1: ""}
    ends: dict[int, str | None] = {}
    for event in client.chat.completions.create(model="toy", messages=user("go"), n=2, stream=True):  # type: ignore[arg-type]
        [choice] = event.choices
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            ends[choice.index] = choice.finish_reason
    assert texts == {0: "first", 1: "second"} and ends == {0: "stop", 1: "stop"}


def test_completions(serve: Serve) -> None:
    server = serve(FakeReply(text=" and on"))
    client = server.openai()
    answer = client.completions.create(model="toy", prompt="on", echo=True)
    assert answer.object == "text_completion"
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("on and on", "stop")
    events = list(client.completions.create(model="toy", prompt=["a", "b"], stream=True))
    assert {event.choices[0].index for event in events} == {0, 1}
    for index in (0, 1):
        mine = [event.choices[0] for event in events if event.choices[0].index == index]
        assert "".join(choice.text for choice in mine) == " and on"
        assert mine[-1].finish_reason == "stop"


def test_length_and_stops(serve: Serve) -> None:
    client = serve(FakeReply(text="alpha beta gamma delta")).openai()
    short = client.chat.completions.create(model="toy", messages=user("go"), max_completion_tokens=2)  # type: ignore[arg-type]
    assert short.choices[0].finish_reason == "length"
    assert short.usage is not None and short.usage.completion_tokens == 2
    stopped = client.chat.completions.create(model="toy", messages=user("go"), stop=["gamma"])  # type: ignore[arg-type]
    assert stopped.choices[0].message.content == "alpha beta "
    assert stopped.choices[0].finish_reason == "stop"


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
    ],
)
def test_what_is_not_supported_is_named(serve: Serve, field: str, value: object, code: str) -> None:
    client = serve().openai()
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="toy", messages=user("secret words"), extra_body={field: value})  # type: ignore[arg-type]
    assert refused.value.code == code
    assert (refused.value.param or "").split(".")[0] == field
    assert "secret" not in str(refused.value)


def test_other_content_than_text_is_refused_by_name(serve: Serve) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    with pytest.raises(openai.BadRequestError) as refused:
        serve().openai().chat.completions.create(
            model="toy",
            messages=[{"role": "user", "content": [picture]}],  # type: ignore[list-item]
        )
    assert str(refused.value.param).startswith("messages.0.content")


def test_speculation_is_the_requests_choice(serve: Serve) -> None:
    server = serve(FakeReply(text="word " * 20, drafts=((3, 3),)))
    client = server.openai()
    for speculation, drafts in (("off", False), ("auto", True), (["map-k"], True)):
        answer = client.chat.completions.create(
            model="toy",
            messages=user("go"),  # type: ignore[arg-type]
            extra_body={"speculation": speculation},
        )
        assert answer.usage is not None
        assert bool(answer.usage.model_extra["speculation"]["drafted"]) is drafts


def test_what_the_engine_refuses_is_the_requests_fault(serve: Serve) -> None:
    with pytest.raises(openai.BadRequestError, match="empty"):
        serve().openai().chat.completions.create(model="toy", messages=user("  "))  # type: ignore[arg-type]


def test_a_fault_in_mid_stream_is_an_event_and_no_end(serve: Serve) -> None:
    server = serve(FakeReply(text="one two three four five six", fail="it broke", at=4))
    stream = server.openai().chat.completions.create(model="toy", messages=user("go"), stream=True)  # type: ignore[arg-type]
    seen = []
    with pytest.raises(openai.APIError, match="broke"):
        for event in stream:
            seen.append(event.choices[0])
    assert "".join(choice.delta.content or "" for choice in seen).startswith("one")
    assert all(choice.finish_reason is None for choice in seen)


def test_a_dead_worker_is_an_error_and_the_next_request_is_answered(serve: Serve) -> None:
    server = serve(FakeReply(text="one two three four", crash="kill", at=3))
    client = server.openai()
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="toy", messages=user("go"), stream=True))  # type: ignore[arg-type]
    # The script begins anew with the worker, so that the next dies as well; but it is asked.
    with pytest.raises(openai.APIError, match=r"stopped|engine"):
        client.chat.completions.create(model="toy", messages=user("go"))  # type: ignore[arg-type]


TOOLS = [
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
CALL = '<tool_call>\n{"name": "weather", "arguments": {"place": "Genova"}}\n</tool_call>'


def test_tools(serve: Serve) -> None:
    client = serve(FakeReply(text=f"I look.\n{CALL}")).openai()
    answer = client.chat.completions.create(model="toy", messages=user("?"), tools=TOOLS)  # type: ignore[arg-type]
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls" and choice.message.content == "I look."
    [call] = choice.message.tool_calls or []
    assert call.type == "function" and call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"place": "Genova"}
    # What was called and what it gave back go into the next request.
    again = client.chat.completions.create(
        model="toy",
        messages=[*user("?"), choice.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}],  # type: ignore[list-item]
        tools=TOOLS,  # type: ignore[arg-type]
        tool_choice="none",
    )
    assert again.choices[0].finish_reason == "stop"


def test_tools_in_a_stream(serve: Serve) -> None:
    client = serve(FakeReply(text=f"I look.\n{CALL}")).openai()
    events = list(
        client.chat.completions.create(model="toy", messages=user("?"), tools=TOOLS, stream=True)  # type: ignore[arg-type]
    )
    deltas = [event.choices[0].delta for event in events]
    assert "".join(delta.content or "" for delta in deltas).strip() == "I look."
    [call] = [call for delta in deltas for call in delta.tool_calls or []]
    assert call.index == 0 and call.function is not None and call.function.name == "weather"
    assert json.loads(call.function.arguments or "") == {"place": "Genova"}
    assert events[-1].choices[0].finish_reason == "tool_calls"


def test_logprobs(serve: Serve) -> None:
    client = serve(FakeReply(text="One two.")).openai()
    answer = client.chat.completions.create(
        model="toy",
        messages=user("?"),  # type: ignore[arg-type]
        logprobs=True,
        top_logprobs=1,
    )
    told = answer.choices[0].logprobs
    assert told is not None and told.content is not None
    assert b"".join(bytes(each.bytes or ()) for each in told.content) == b"One two."
    assert all(each.logprob == 0.0 and len(each.top_logprobs) == 1 for each in told.content)
    streamed = client.chat.completions.create(
        model="toy",
        messages=user("?"),  # type: ignore[arg-type]
        logprobs=True,
        stream=True,
    )
    tokens = [each.token for e in streamed if (p := e.choices[0].logprobs) for each in p.content or []]
    assert "".join(tokens) == "One two."
    older = client.completions.create(model="toy", prompt="?", logprobs=1, echo=True).choices[0].logprobs
    assert older is not None and older.tokens is not None and older.text_offset is not None
    assert "".join(older.tokens) == "One two." and older.text_offset[0] == 1


def test_responses(serve: Serve) -> None:
    client = serve(FakeReply(text="Hello, {prompt}")).openai()
    answer = client.responses.create(model="toy", input="you", instructions="Be kind.")
    assert (answer.status, answer.output_text) == ("completed", "Hello, you")
    assert answer.usage is not None and answer.usage.output_tokens > 0
    item = answer.output[0]
    # What was answered may come back as it was.
    again = client.responses.create(
        model="toy",
        input=[{"role": "user", "content": "you"}, item.to_dict(), {"role": "user", "content": "me"}],  # type: ignore[list-item]
    )
    assert again.output_text == "Hello, me"
    short = client.responses.create(model="toy", input="you", max_output_tokens=1)
    assert short.status == "incomplete" and short.incomplete_details is not None
    assert short.incomplete_details.reason == "max_output_tokens"


def test_responses_in_a_stream(serve: Serve) -> None:
    client = serve(FakeReply(text="One two three.")).openai()
    events = list(client.responses.create(model="toy", input="go", stream=True))
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
        "response.completed",
    ]
    assert set(types[4:-4]) == {"response.output_text.delta"}
    assert [event.sequence_number for event in events] == list(range(len(events)))
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1]
    assert last.type == "response.completed"
    assert said == last.response.output_text == "One two three."
