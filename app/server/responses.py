"""/v1/responses: text, whole or streamed; nothing is stored."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from app.protocol import Chunk, Done, Generate
from app.server.answers import Usage, thoughts_and_words
from app.server.requests import ResponsesRequest
from app.server.sending import Event, gather, stream, unless_gone
from app.server.service import Indexed, Service

ROUTE = "/v1/responses"


async def responses(service: Service, body: ResponsesRequest, request: Request) -> Response:
    settings = service.settings()
    generate = Generate(
        request_id=0,
        messages=tuple(body.chat()),
        sampling=body.sampling(settings.sampling_params()),
        drafting=body.drafting(settings.drafting_params()),
        max_tokens=body.max_output_tokens,
        seed=body.seed,
        grammar=body.grammar(),
    )
    made = _Response(body)
    if body.stream:
        return await stream(
            request,
            service,
            body.model,
            [generate],
            ROUTE,
            lambda answers: _events(answers, made),
            named=True,
        )
    return await unless_gone(request, lambda: _whole(service, made, generate))


async def _whole(service: Service, made: _Response, generate: Generate) -> Response:
    [(done, _)], usage = await gather(service, made.asked.model, [generate], ROUTE, n=1)
    return JSONResponse(made.ended(done, usage))


@dataclass
class _Response:
    """The object that grows, and the parts that its events repeat."""

    asked: ResponsesRequest
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    item_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self, status: str, output: list[Event], usage: Usage | None = None, **more: object) -> Event:
        asked = self.asked
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": asked.model,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": asked.temperature,
            "text": {"format": asked.format()},
            "tool_choice": "none",
            "tools": [],
            "top_p": asked.top_p,
            "truncation": "disabled",
            "user": asked.user,
            "usage": _usage(usage) if usage is not None else None,
        } | more

    def item(self, text: str, status: str) -> Event:
        content = [self.part(text)] if status != "in_progress" else []
        return {
            "id": self.item_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    @staticmethod
    def part(text: str) -> Event:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def ended(self, done: Done, usage: Usage) -> Event:
        cut = done.finish_reason == "length"
        status = "incomplete" if cut else "completed"
        details = {"incomplete_details": {"reason": "max_output_tokens"}} if cut else {}
        return self.body(status, [self.item(done.text, status)], usage, **details)


async def _events(answers: AsyncIterator[Indexed], made: _Response) -> AsyncIterator[Event]:
    number = -1

    def event(type: str, **what: object) -> Event:
        nonlocal number
        number += 1
        return {"type": type, "sequence_number": number, **what}

    where = {"item_id": made.item_id, "output_index": 0, "content_index": 0}
    usage = Usage()
    async for _, each in answers:
        if number < 0:
            yield event("response.created", response=made.body("in_progress", []))
            yield event("response.in_progress", response=made.body("in_progress", []))
            item = made.item("", "in_progress")
            yield event("response.output_item.added", output_index=0, item=item)
            yield event("response.content_part.added", **where, part=made.part(""))
        if isinstance(each, Chunk):
            _, words = thoughts_and_words(each)
            if words:
                yield event("response.output_text.delta", **where, delta=words, logprobs=[])
        elif isinstance(each, Done):
            usage.add(each.stats)
            ended = made.ended(each, usage)
            yield event("response.output_text.done", **where, text=each.text, logprobs=[])
            yield event("response.content_part.done", **where, part=made.part(each.text))
            item = made.item(each.text, str(ended["status"]))
            yield event("response.output_item.done", output_index=0, item=item)
            yield event(f"response.{ended['status']}", response=ended)


def _usage(usage: Usage) -> Event:
    body = usage.body()
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
        "speculation": body["speculation"],
    }
