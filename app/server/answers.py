"""Answers as OpenAI's clients read them: whole, or event by event."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field

from app.protocol import Chunk, Done, FinishReason
from drafting.statistics import Statistics

FINISH = {"stop": "stop", "length": "length"}


@dataclass
class Usage:
    """Tokens of all choices of a request, and what drafting did for them."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    drafted: int = 0
    accepted: int = 0
    passes: int = 0
    by_drafter: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, stats: Statistics) -> None:
        # The prompt is one, however many answers there are to it.
        self.prompt = max(self.prompt, stats.prompt_tokens)
        self.cached = max(self.cached, stats.reused_tokens)
        self.completion += stats.completion_tokens
        self.drafted += stats.drafted
        self.accepted += stats.accepted
        self.passes += stats.target_passes
        for name, counts in stats.by_drafter.items():
            drafted, accepted = self.by_drafter.get(name, (0, 0))
            self.by_drafter[name] = (drafted + counts.drafted, accepted + counts.accepted)

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


def chat_choice(index: int, done: Done) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": done.text, "refusal": None}
    if done.reasoning:
        message["reasoning_content"] = done.reasoning
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(done.finish_reason),
    }


def text_choice(index: int, done: Done, echo: str = "") -> dict[str, object]:
    # Without a template there are no thoughts: what looks like some is text too.
    return {
        "index": index,
        "text": echo + done.reasoning + done.text,
        "logprobs": None,
        "finish_reason": finish_reason(done.finish_reason),
    }


def chat_deltas(index: int, chunk: Chunk) -> list[dict[str, object]]:
    """What a pass added to a choice, thoughts apart."""
    deltas: list[dict[str, object]] = []
    thoughts = "".join(piece.text for piece in chunk.pieces if piece.reasoning)
    text = "".join(piece.text for piece in chunk.pieces if not piece.reasoning)
    for name, said in (("reasoning_content", thoughts), ("content", text)):
        if said:
            deltas.append(delta(index, {name: said}))
    return deltas


def delta(index: int, what: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return {"index": index, "delta": what, "logprobs": None, "finish_reason": finish}


def text_delta(index: int, text: str, finish: str | None = None) -> dict[str, object]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


def finish_reason(reason: FinishReason) -> str:
    return FINISH[reason]
