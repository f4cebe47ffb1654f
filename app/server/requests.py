"""The bodies of requests: what is understood, in which range, and what it means to the engine."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.protocol import (
    DRAFTERS,
    ChatMessage,
    DrafterName,
    DraftingParams,
    Grammar,
    JsonSchema,
    SamplingParams,
)
from app.server.errors import unsupported

MOST_STOPS = 16
MOST_CHOICES = 8
MOST_BIASES = 1024

Role = Literal["system", "developer", "user", "assistant", "tool"]
Speculation = Literal["off", "auto"] | Annotated[list[DrafterName], Field(min_length=1, max_length=11)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TextPart(_Body):
    type: Literal["text"]
    text: str


class Message(_Body):
    role: Role
    content: str | list[TextPart] | None = None
    name: str | None = None
    reasoning_content: str | None = Field(default=None, description="Read past: thoughts are not repeated.")

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(_Body):
    include_usage: bool = False


class SchemaFormat(_Body):
    name: str = Field(max_length=64)
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(_Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class Sampled(_Body):
    """What all requests for text have in common."""

    model: str = Field(description="The id of a model in /v1/models.")
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_k: int | None = Field(default=None, ge=0, le=2**31 - 1)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    repeat_penalty: float | None = Field(default=None, gt=0.0, le=10.0)
    logit_bias: dict[str, Annotated[float, Field(ge=-100.0, le=100.0)]] | None = Field(
        default=None, max_length=MOST_BIASES
    )
    max_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS)] | None = None
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
            name: value
            for name in (
                "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
                "repeat_penalty",
            )
            if (value := getattr(self, name)) is not None
        }  # fmt: skip
        return SamplingParams(
            **{
                "temperature": defaults.temperature,
                "top_p": defaults.top_p,
                "top_k": defaults.top_k,
                "min_p": defaults.min_p,
                "repeat_penalty": defaults.repeat_penalty,
                "frequency_penalty": defaults.frequency_penalty,
                "presence_penalty": defaults.presence_penalty,
                "penalty_last_n": defaults.penalty_last_n,
                "logit_bias": self._bias(),
                **given,
            }
        )

    def _bias(self) -> dict[int, float]:
        bias: dict[int, float] = {}
        for token, value in (self.logit_bias or {}).items():
            if not token.isascii() or not token.isdigit():
                raise unsupported("logit_bias", "its keys are token ids")
            bias[int(token)] = value
        return bias

    def drafting(self, defaults: DraftingParams) -> DraftingParams:
        if self.speculation is None:
            return defaults
        if self.speculation == "off":
            return DraftingParams(links=())
        if self.speculation == "auto":
            return DraftingParams(mode="auto", links=DRAFTERS, max_draft=defaults.max_draft)
        links = tuple(dict.fromkeys(self.speculation))
        return DraftingParams(
            mode="manual", links=links, parameters=defaults.parameters, max_draft=defaults.max_draft
        )

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
    messages: list[Message] = Field(min_length=1, max_length=10_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    response_format: ResponseFormat | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None

    def chat(self) -> list[ChatMessage]:
        chat = []
        for i, message in enumerate(self.messages):
            if message.role == "tool":
                raise unsupported(f"messages.{i}.role", "tools are not supported")
            role = "system" if message.role == "developer" else message.role
            chat.append(ChatMessage(role, message.text()))
        return chat

    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def grammar(self) -> Grammar | None:
        asked = self.response_format
        if asked is None or asked.type == "text":
            return None
        if asked.type == "json_object":
            return JsonSchema()
        if asked.json_schema is None or asked.json_schema.schema_ is None:
            raise unsupported("response_format.json_schema", "has no schema")
        return JsonSchema(json.dumps(asked.json_schema.schema_))


class CompletionRequest(Sampled):
    prompt: str | Annotated[list[str], Field(min_length=1, max_length=MOST_CHOICES)]
    echo: bool = False

    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt
