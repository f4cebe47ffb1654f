"""Functions that a model may call: told in words or by the template, read out of what it says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import ChatMessage, ToolCall
from app.tools import (
    CallWatch,
    Function,
    calls_schema,
    read_calls,
    read_functions,
    told_in_words,
    write_functions,
)
from native.json_schema import schema_to_gbnf

WEATHER = Function("weather", "Of a place", {"type": "object", "properties": {"place": {"type": "string"}}})
TIME = Function("time")
NAMES = {"weather", "time"}
CALL = ToolCall("weather", '{"place": "Genova"}')
SPOKEN = '{"name": "weather", "arguments": {"place": "Genova"}}'


@pytest.mark.parametrize(
    ("text", "words", "calls"),
    [
        (f"<tool_call>\n{SPOKEN}\n</tool_call>", "", [CALL]),
        (f"<tool_call>{SPOKEN}", "", [CALL]),  # the end token came in place of the tag
        (f"Let me look.\n<tool_call>{SPOKEN}</tool_call>", "Let me look.", [CALL]),
        (f"<tool_call>{SPOKEN}</tool_call>\n<tool_call>{SPOKEN}</tool_call>", "", [CALL, CALL]),
        (f"[TOOL_CALLS] [{SPOKEN}]", "", [CALL]),
        ('<|python_tag|>{"name": "time", "parameters": {}}', "", [ToolCall("time", "{}")]),
        (f"  {SPOKEN}\n", "", [CALL]),
        (f"[{SPOKEN}, {SPOKEN}]", "", [CALL, CALL]),
        ('{"name": "weather", "arguments": "{\\"place\\": \\"Genova\\"}"}', "", [CALL]),
        ('{"name": "other", "arguments": {}}', '{"name": "other", "arguments": {}}', []),
        ('{"name": "weather", "arguments": [1]}', '{"name": "weather", "arguments": [1]}', []),
        ("<tool_call>soon</tool_call>", "<tool_call>soon</tool_call>", []),
        ("It is { warm }.", "It is { warm }.", []),
        ("", "", []),
        ("[" * 100_000, "[" * 100_000, []),
    ],
)
def test_calls_are_read_and_words_stay_words(text: str, words: str, calls: list[ToolCall]) -> None:
    assert read_calls(text, NAMES) == (words, calls)


@given(
    st.lists(
        st.sampled_from(
            ["Hi ", "{", "}", "<tool", "_call>", SPOKEN, "</tool_call>", "[TOOL", "_CALLS]", "\n"]
        )
    ),
    st.integers(1, 7),
)
def test_a_stream_says_what_the_whole_says(parts: list[str], step: int) -> None:
    text = "".join(parts)
    watch = CallWatch()
    said = "".join(watch.feed(text[i : i + step]) for i in range(0, len(text), step))
    assert said + watch.rest() == text
    words, calls = read_calls(watch.rest(), NAMES)
    whole_words, whole_calls = read_calls(text, NAMES)
    assert calls == whole_calls
    assert (said + words).strip() == whole_words.strip()


def test_words_that_are_no_call_are_not_held() -> None:
    watch = CallWatch()
    assert watch.feed("Good day, ") == "Good day, "
    assert watch.feed("a < b") == "a < b"
    assert watch.feed(" <tool_c") == " "
    assert watch.feed("ake>") == "<tool_cake>"


def test_a_template_that_knows_nothing_is_told_in_words() -> None:
    chat = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Weather?"),
        ChatMessage("assistant", "", (CALL,)),
        ChatMessage("tool", "sunny", tool_call_id="call_1"),
    ]
    told = told_in_words(chat, [WEATHER, TIME])
    assert [message.role for message in told] == ["system", "user", "assistant", "user"]
    assert told[0].content.startswith("Be brief.") and '"weather"' in told[0].content
    assert read_calls(told[2].content, NAMES) == ("", [CALL])
    assert "sunny" in told[3].content
    assert told_in_words(chat[:2], []) == chat[:2]


def test_the_schema_of_a_call_allows_calls_alone() -> None:
    gbnf, unenforced = schema_to_gbnf(calls_schema([WEATHER, TIME]))
    assert not unenforced and "weather" in gbnf and "time" in gbnf
    schema = json.loads(calls_schema([TIME]))
    assert schema["properties"]["name"] == {"const": "time"}
    assert schema["required"] == ["name", "arguments"]


def test_functions_go_through_the_pipe_as_they_are() -> None:
    assert read_functions(write_functions([WEATHER, TIME])) == [WEATHER, TIME]


def test_what_a_functions_schema_refers_to_is_found_where_it_stands_now() -> None:
    """As pydantic writes each model within another, and a tree that holds itself."""
    parameters = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place"}, "more": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["place"],
        "$defs": {"Place": {"enum": ["Genova"]}},
    }
    travel = Function("travel", parameters=parameters)
    for functions in ([travel], [WEATHER, travel]):
        gbnf, unenforced = schema_to_gbnf(calls_schema(functions))
        assert not unenforced and "Genova" in gbnf
    assert parameters["properties"]["place"] == {"$ref": "#/$defs/Place"}  # type: ignore[index]
