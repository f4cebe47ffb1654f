"""The bodies of requests: what is understood, in which range, and what it means to the engine."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field

from app.protocol import (
    DRAFTERS,
    ChatMessage,
    DrafterName,
    DraftingParams,
    Grammar,
    JsonSchema,
    RequestPart,
    SamplingParams,
    ToolCall,
)
from app.server.errors import unsupported
from app.server.fields import Body, FreeJson, Metadata, at_most, many, plain, text_only
from app.tools import Function, calls_schema

MOST_STOPS = 16
MOST_CHOICES = 8
MOST_TEXTS = 2048  # to be embedded
MOST_BIASES = 1024
MOST_MESSAGES = 10_000
MOST_PARTS = 1000  # of a message's content, and calls in it
MOST_TOOLS = 128
_LONGEST_ID = 10  # digits of a token's

Bias = Annotated[float, Field(ge=-100.0, le=100.0)]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Speculation = Literal["off", "auto"] | Annotated[list[DrafterName], Field(min_length=1, max_length=11)]

_SAMPLED = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repeat_penalty",
)


class TextPart(Body):
    type: Literal["text"]
    text: str


class CalledFunction(Body):
    name: str
    arguments: str


class Call(Body):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction

    def tool_call(self) -> ToolCall:
        """Raises ApiError."""
        try:
            arguments = plain(msgspec.json.decode(self.function.arguments or "{}", type=dict[str, Any]))
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            raise unsupported("messages.tool_calls", "arguments are no JSON object") from None
        return ToolCall(self.function.name, json.dumps(arguments, ensure_ascii=False), self.id)


class Message(Body):
    role: Role
    content: Annotated[
        str | Annotated[list[TextPart], many(MOST_PARTS)] | None, BeforeValidator(text_only)
    ] = None
    name: str | None = None
    reasoning_content: str | None = Field(default=None, description="Read past: thoughts are not repeated.")
    refusal: str | None = None
    tool_calls: Annotated[list[Call], many(MOST_PARTS)] | None = None
    tool_call_id: str | None = None

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ToolFunction(Body):
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    description: str | None = None
    parameters: FreeJson | None = None
    strict: bool | None = None


class Tool(Body):
    type: Literal["function"]
    function: ToolFunction


class ChosenFunction(Body):
    name: str


class ChosenTool(Body):
    type: Literal["function"]
    function: ChosenFunction


ToolChoice = Literal["none", "auto", "required"] | ChosenTool


class SchemaFormat(Body):
    name: str = Field(max_length=64)
    description: str | None = None
    schema_: FreeJson | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class Sampled(Body):
    """What all requests for text have in common."""

    model: str = Field(description="The id of a model in /v1/models.")
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_k: int | None = Field(default=None, ge=0, le=2**31 - 1)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    repeat_penalty: float | None = Field(default=None, gt=0.0, le=10.0)
    logit_bias: Annotated[dict[str, Bias], at_most(MOST_BIASES)] | None = None
    max_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    stop: str | Annotated[list[str], many(MOST_STOPS)] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    n: int = Field(default=1, ge=1, le=MOST_CHOICES)
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    speculation: Speculation | None = Field(
        default=None,
        description="Who drafts: off, auto, or a list of drafters of which the first with an offer speaks.",
    )

    def sampling(self, defaults: SamplingParams) -> SamplingParams:
        given: dict[str, Any] = {
            name: value for name in _SAMPLED if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(defaults, **given, logit_bias=self._bias())

    def _bias(self) -> dict[int, float]:
        bias: dict[int, float] = {}
        for token, value in (self.logit_bias or {}).items():
            if not token.isascii() or not token.isdigit() or len(token) > _LONGEST_ID:
                raise unsupported("logit_bias", "its keys are token ids")
            bias[int(token)] = value
        return bias

    def drafting(self, defaults: DraftingParams) -> DraftingParams:
        return _drafting(self.speculation, defaults)

    def stops(self) -> tuple[str, ...]:
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if any(not stop for stop in given):
            raise unsupported("stop", "an empty text stops nothing")
        return tuple(given)

    def seeds(self) -> list[int | None]:
        """One for each choice; none where none was named."""
        if self.seed is None:
            return [None] * self.n
        return [(self.seed + i) % 2**63 for i in range(self.n)]

    def wants_usage(self) -> bool:
        if self.stream_options is not None and not self.stream:
            raise unsupported("stream_options", "is for streamed answers only")
        return self.stream_options is not None and self.stream_options.include_usage


class ChatRequest(Sampled):
    messages: Annotated[list[Message], many(MOST_MESSAGES, least=1)]
    max_completion_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool], many(MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    metadata: Metadata | None = None
    store: bool | None = None
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None

    def chat(self) -> list[ChatMessage]:
        chat = []
        for i, message in enumerate(self.messages):
            if message.role == "tool" and message.tool_call_id is None:
                raise unsupported(f"messages.{i}.tool_call_id", "is missing")
            if message.tool_calls and message.role != "assistant":
                raise unsupported(f"messages.{i}.tool_calls", "are an assistant's")
            role = "system" if message.role == "developer" else message.role
            calls = tuple(call.tool_call() for call in message.tool_calls or ())
            chat.append(ChatMessage(role, message.text(), calls, message.tool_call_id or ""))
        return chat

    def functions(self) -> list[Function]:
        """Those that may be called: none where the choice says so, one where it names it."""
        there = [
            Function(each.function.name, each.function.description or "", each.function.parameters or {})
            for each in self.tools or ()
        ]
        if self.tool_choice is not None and self.tool_choice != "none" and not there:
            raise unsupported("tool_choice", "there are no tools")
        if isinstance(self.tool_choice, ChosenTool):
            name = self.tool_choice.function.name
            there = [each for each in there if each.name == name]
            if not there:
                raise unsupported("tool_choice", "there is no such tool")
        return [] if self.tool_choice == "none" else there

    @property
    def must_call(self) -> bool:
        return self.tool_choice == "required" or isinstance(self.tool_choice, ChosenTool)

    def parts(self) -> dict[RequestPart, str]:
        """The fields that parts of the engine's request come from."""
        return {"prompt": "messages", "grammar": "tools" if self.must_call else "response_format"}

    def told_logprobs(self) -> int | None:
        if self.top_logprobs is not None and not self.logprobs:
            raise unsupported("top_logprobs", "needs logprobs")
        return (self.top_logprobs or 0) if self.logprobs else None

    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def grammar(self) -> Grammar | None:
        if self.must_call:
            return JsonSchema(calls_schema(self.functions()))
        asked = self.response_format
        if asked is None or asked.type == "text":
            return None
        if asked.type == "json_object":
            return JsonSchema()
        if asked.json_schema is None or asked.json_schema.schema_ is None:
            raise unsupported("response_format.json_schema", "has no schema")
        return JsonSchema(json.dumps(asked.json_schema.schema_))


class CompletionRequest(Sampled):
    prompt: str | Annotated[list[str], many(MOST_CHOICES, least=1)]
    echo: bool = False
    logprobs: int | None = Field(default=None, ge=0, le=20)

    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt


class EmbeddingsRequest(Body):
    model: str = Field(description="The id of an embedding model in /v1/models.")
    input: str | Annotated[list[str], many(MOST_TEXTS, least=1)]
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None

    def texts(self) -> list[str]:
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not all(texts):
            raise unsupported("input", "an empty text has no embedding")
        return texts


class InputText(Body):
    type: Literal["input_text", "output_text"]
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class InputMessage(Body):
    """A message of the responses API; one that it answered with may come back as it was."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[InputText], many(MOST_PARTS)]
    id: str | None = None
    status: str | None = None

    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class TextFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: FreeJson | None = Field(default=None, alias="schema")
    strict: bool | None = None


class TextOptions(Body):
    format: TextFormat | None = None


class ResponsesRequest(Body):
    """What of the responses API there is: text in, text out, nothing stored."""

    model: str = Field(description="The id of a model in /v1/models.")
    input: str | Annotated[list[InputMessage], many(MOST_MESSAGES, least=1)]
    instructions: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    stream: bool = False
    text: TextOptions | None = None
    store: bool | None = Field(default=None, description="Nothing is stored, whatever this says.")
    metadata: Metadata | None = None
    user: str | None = None
    speculation: Speculation | None = None

    def chat(self) -> list[ChatMessage]:
        chat = [ChatMessage("system", self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return [*chat, ChatMessage("user", self.input)]
        for message in self.input:
            role = "system" if message.role == "developer" else message.role
            chat.append(ChatMessage(role, message.text()))
        return chat

    def sampling(self, defaults: SamplingParams) -> SamplingParams:
        given = {
            name: value for name in ("temperature", "top_p") if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(defaults, **given)

    def drafting(self, defaults: DraftingParams) -> DraftingParams:
        return _drafting(self.speculation, defaults)

    def parts(self) -> dict[RequestPart, str]:
        """The fields that parts of the engine's request come from."""
        return {"prompt": "input", "grammar": "text.format"}

    def format(self) -> dict[str, Any]:
        asked = self.text.format if self.text is not None else None
        return {"type": "text"} if asked is None else asked.model_dump(by_alias=True, exclude_none=True)

    def grammar(self) -> Grammar | None:
        asked = self.text.format if self.text is not None else None
        if asked is None or asked.type == "text":
            return None
        if asked.type == "json_object":
            return JsonSchema()
        if asked.schema_ is None:
            raise unsupported("text.format", "has no schema")
        return JsonSchema(json.dumps(asked.schema_))


def _drafting(speculation: Speculation | None, defaults: DraftingParams) -> DraftingParams:
    """Who drafts, by the request's own choice or as the settings say."""
    if speculation is None:
        return defaults
    if speculation == "off":
        return DraftingParams(links=())
    if speculation == "auto":
        return DraftingParams(mode="auto", links=DRAFTERS, max_draft=defaults.max_draft)
    links = tuple(dict.fromkeys(speculation))
    return DraftingParams(
        mode="manual", links=links, parameters=defaults.parameters, max_draft=defaults.max_draft
    )
