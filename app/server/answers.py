"""Answers as OpenAI's clients read them: whole, or event by event."""

from __future__ import annotations

import codecs
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.protocol import Chunk, Done, TokenLogprob, ToolCall
from drafting.statistics import Statistics


@dataclass
class Usage:
    """Tokens of all choices of a request, and what drafting did for them."""

    prompts: dict[int, tuple[int, int]] = field(default_factory=dict)  # tokens, and those in memory before
    completion: int = 0
    drafted: int = 0
    accepted: int = 0
    passes: int = 0
    by_drafter: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, stats: Statistics, prompt: int = 0) -> None:
        """``prompt``: which of the request's it was. Each counts once, however many answers there are to it,
        and what one answer read for the next was not in memory before."""
        cached = min(stats.reused_tokens, self.prompts.get(prompt, (0, stats.reused_tokens))[1])
        self.prompts[prompt] = (stats.prompt_tokens, cached)
        self.completion += stats.completion_tokens
        self.drafted += stats.drafted
        self.accepted += stats.accepted
        self.passes += stats.target_passes
        for name, counts in stats.by_drafter.items():
            drafted, accepted = self.by_drafter.get(name, (0, 0))
            self.by_drafter[name] = (drafted + counts.drafted, accepted + counts.accepted)

    @property
    def prompt(self) -> int:
        return sum(tokens for tokens, _ in self.prompts.values())

    @property
    def cached(self) -> int:
        return sum(cached for _, cached in self.prompts.values())

    def body(self) -> dict[str, object]:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "speculation": {
                "drafted": self.drafted,
                "accepted": self.accepted,
                "passes": self.passes,
                "by_drafter": {
                    name: {"drafted": drafted, "accepted": accepted}
                    for name, (drafted, accepted) in self.by_drafter.items()
                },
            },
        }


@dataclass(frozen=True)
class Head:
    """What all objects of one answer begin with."""

    kind: str
    prefix: str
    model: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self, choices: list[dict[str, object]], *, chunk: bool = False) -> dict[str, object]:
        return {
            "id": f"{self.prefix}-{self.id}",
            "object": f"{self.kind}.chunk" if chunk and self.kind == "chat.completion" else self.kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def chat_choice(
    index: int,
    done: Done,
    chances: Sequence[TokenLogprob] | None,
    content: str,
    calls: Sequence[ToolCall],
) -> dict[str, object]:
    """``content``: the words beside ``calls``."""
    message: dict[str, object] = {"role": "assistant", "content": content, "refusal": None}
    if calls:
        message |= {"content": content or None, "tool_calls": [call_body(call) for call in calls]}
    if done.reasoning:
        message["reasoning_content"] = done.reasoning
    return {
        "index": index,
        "message": message,
        "logprobs": chat_logprobs(chances) if chances is not None else None,
        "finish_reason": "tool_calls" if calls else done.finish_reason,
    }


def call_body(call: ToolCall) -> dict[str, object]:
    return {
        "id": f"call_{uuid.uuid4().hex[:24]}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def chat_logprobs(chances: Sequence[TokenLogprob]) -> dict[str, object]:
    return {
        "content": [
            _chance(each.data, each.logprob) | {"top_logprobs": [_chance(*other) for other in each.top]}
            for each in chances
        ],
        "refusal": None,
    }


def _chance(data: bytes, logprob: float) -> dict[str, object]:
    return {"token": _spelled(data), "logprob": _finite(logprob), "bytes": list(data)}


class TextLogprobs:
    """The older form, for tokens in their order; it says where in the text each begins."""

    def __init__(self, start: int) -> None:
        """``start``: characters before the first token."""
        self._at = start
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def body(self, chances: Sequence[TokenLogprob]) -> dict[str, object]:
        """Of the next tokens."""
        offsets = []
        for each in chances:
            offsets.append(self._at)
            self._at += len(self._decoder.decode(each.data))
        return {
            "tokens": [_spelled(each.data, "bytes:") for each in chances],
            "token_logprobs": [_finite(each.logprob) for each in chances],
            "top_logprobs": [
                {_spelled(data, "bytes:"): _finite(logprob) for data, logprob in each.top} for each in chances
            ],
            "text_offset": offsets,
        }


def _spelled(data: bytes, mark: str = "") -> str:
    """A token's text. One that is a part of a character shows its bytes as OpenAI does, behind ``mark``, so
    that no two look alike."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return mark + "".join(f"\\x{byte:02x}" for byte in data)


def _finite(logprob: float) -> float:
    return max(logprob, -9999.0)  # JSON knows no infinity


def text_choice(
    index: int, done: Done, chances: Sequence[TokenLogprob] | None, echo: str = ""
) -> dict[str, object]:
    return {
        "index": index,
        "text": echo + done.text,
        "logprobs": TextLogprobs(len(echo)).body(chances) if chances is not None else None,
        "finish_reason": done.finish_reason,
    }


def thoughts_and_words(chunk: Chunk) -> tuple[str, str]:
    """What a pass added, in two."""
    thoughts = "".join(piece.text for piece in chunk.pieces if piece.reasoning)
    return thoughts, "".join(piece.text for piece in chunk.pieces if not piece.reasoning)


def delta(
    index: int,
    what: dict[str, object],
    finish: str | None = None,
    logprobs: dict[str, object] | None = None,
) -> dict[str, object]:
    return {"index": index, "delta": what, "logprobs": logprobs, "finish_reason": finish}


def text_delta(
    index: int, text: str, finish: str | None = None, logprobs: dict[str, object] | None = None
) -> dict[str, object]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
