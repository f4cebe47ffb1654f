"""Functions that a model may call: how it is told of them, and how its calls are read out of its words."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from app.protocol import ChatMessage, ToolCall
from app.reasoning import held_back

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
# What models write before calls: Hermes' and Qwen's tag, Mistral's, Llama's.
_OPENINGS = (_OPEN, "[TOOL_CALLS]", "<|python_tag|>")
_TAGGED = re.compile(rf"{_OPEN}\s*(.*?)\s*(?:{_CLOSE}|\Z)", re.DOTALL)

_TOLD = """You can call functions. These are there, each with a JSON schema of its arguments:
{functions}
To call one, answer with nothing but
<tool_call>
{{"name": "its name", "arguments": {{"argument": "value"}}}}
</tool_call>
and wait for what it gives back. Call one only where that helps; otherwise answer in words."""


class Function(Struct, frozen=True):
    """``parameters`` is a JSON schema of an object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}

    def as_tool(self) -> dict[str, Any]:
        """The form that OpenAI's API and chat templates share."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def write_functions(functions: Sequence[Function]) -> str:
    return msgspec.json.encode(functions).decode()


def read_functions(text: str) -> list[Function]:
    """From JSON. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=list[Function])


def told_in_words(messages: Sequence[ChatMessage], functions: Sequence[Function]) -> list[ChatMessage]:
    """The same chat for a template that knows nothing of functions: all is text."""
    told: list[ChatMessage] = []
    if functions:
        listed = "\n".join(json.dumps(each.as_tool()["function"], ensure_ascii=False) for each in functions)
        told.append(ChatMessage("system", _TOLD.format(functions=listed)))
    for message in messages:
        if message.role == "system" and told and told[-1].role == "system":
            told[-1] = ChatMessage("system", f"{message.content}\n\n{told[-1].content}")
        elif message.role == "tool":
            told.append(ChatMessage("user", f"<tool_response>\n{message.content}\n</tool_response>"))
        elif message.tool_calls:
            calls = "\n".join(f"{_OPEN}\n{_call_text(call)}\n{_CLOSE}" for call in message.tool_calls)
            told.append(ChatMessage("assistant", f"{message.content}\n{calls}".strip()))
        else:
            told.append(message)
    return told


def _call_text(call: ToolCall) -> str:
    return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'


def calls_schema(functions: Sequence[Function]) -> str:
    """A JSON schema of one call of one of these functions."""
    calls = []
    for i, each in enumerate(functions):
        place = "#/properties/arguments" if len(functions) == 1 else f"#/anyOf/{i}/properties/arguments"
        arguments = _moved(dict(each.parameters) or {"type": "object"}, place)
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": each.name}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return json.dumps(calls[0] if len(calls) == 1 else {"anyOf": calls})


def _moved(schema: Any, place: str) -> Any:
    """A schema that stands at ``place`` of a larger one: what it refers to is found from there."""
    if isinstance(schema, list):
        return [_moved(each, place) for each in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value, place) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = place + reference[1:]
    return moved


def read_calls(text: str, names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """The words beside the calls in an answer, and the calls of functions in ``names``.

    Words that only look like a call stay words.
    """
    tagged = list(_TAGGED.finditer(text))
    if tagged:
        calls = [_calls(match[1], names) for match in tagged]
        if all(calls):
            return _TAGGED.sub("", text).strip(), [call for each in calls for call in each]
        return text, []
    for opening in _OPENINGS[1:]:
        before, found, after = text.partition(opening)
        if found and (calls_after := _calls(after.strip(), names)):
            return before.strip(), calls_after
    calls_alone = _calls(text.strip(), names)
    return ("", calls_alone) if calls_alone else (text, [])


def _calls(text: str, names: Collection[str]) -> list[ToolCall]:
    """One call or a list of calls in JSON; empty for anything else."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    calls: list[ToolCall] = []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict) or each.get("name") not in names:
            return []
        arguments = each.get("arguments", each.get("parameters", {}))
        if isinstance(arguments, str):  # JSON in JSON
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                return []
        if not isinstance(arguments, dict):
            return []
        calls.append(ToolCall(each["name"], json.dumps(arguments, ensure_ascii=False)))
    return calls


class CallWatch:
    """Lets an answer's words through until they may be a call; the rest is looked at when all is there."""

    def __init__(self) -> None:
        self._held = ""
        self._begun = False  # words were let through
        self._holds = False

    def feed(self, text: str) -> str:
        """Words that are no call, whatever follows."""
        self._held += text
        if self._holds:
            return ""
        if not self._begun and self._held.lstrip()[:1] in ("", "{", "["):
            self._holds = bool(self._held.strip())
            return ""
        found = [at for opening in _OPENINGS if (at := self._held.find(opening)) >= 0]
        self._holds = bool(found)
        certain = min(found) if found else len(self._held) - held_back(self._held, _OPENINGS)
        words, self._held = self._held[:certain], self._held[certain:]
        self._begun = self._begun or bool(words.strip())
        return words

    def rest(self) -> str:
        """What was held back."""
        return self._held
