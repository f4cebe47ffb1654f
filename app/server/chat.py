"""/v1/chat/completions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from app.protocol import Chunk, Done, Generate, ToolCall
from app.server.answers import (
    Head,
    Usage,
    call_body,
    chat_choice,
    chat_logprobs,
    delta,
    thoughts_and_words,
)
from app.server.requests import ChatRequest
from app.server.sending import Event, gather, stream, unless_gone
from app.server.service import Indexed, Service, choices
from app.tools import CallWatch, read_calls, write_functions

ROUTE = "/v1/chat/completions"


class _Functions(NamedTuple):
    """Those that may be called."""

    names: frozenset[str]
    once: bool

    def read(self, text: str) -> tuple[str, list[ToolCall]]:
        """The words beside calls, and the calls."""
        if not self.names:
            return text, []
        words, calls = read_calls(text, self.names)
        return words, calls[:1] if self.once else calls


async def chat_completions(service: Service, body: ChatRequest, request: Request) -> Response:
    settings = service.settings()
    usage_wanted = body.wants_usage()
    functions = body.functions()
    generate = Generate(
        request_id=0,
        messages=tuple(body.chat()),
        sampling=body.sampling(settings.sampling_params()),
        drafting=body.drafting(settings.drafting_params()),
        max_tokens=body.most_tokens(),
        stop=body.stops(),
        grammar=body.grammar(),
        logprobs=body.told_logprobs(),
        functions=write_functions(functions) if functions else None,
    )
    head = Head("chat.completion", "chatcmpl", body.model)
    offered = _Functions(frozenset(each.name for each in functions), body.parallel_tool_calls is False)
    asked = choices(generate, body.seeds())
    if body.stream:
        return await stream(
            request,
            service,
            body.model,
            asked,
            ROUTE,
            lambda answers: _events(answers, head, offered, usage_wanted),
        )
    return await unless_gone(request, lambda: _whole(service, head, asked, offered))


async def _whole(service: Service, head: Head, asked: list[Generate], functions: _Functions) -> Response:
    wholes, usage = await gather(service, head.model, asked, ROUTE, n=len(asked))
    made = [
        chat_choice(index, done, chances, *functions.read(done.text))
        for index, (done, chances) in enumerate(wholes)
    ]
    return JSONResponse(head.body(made) | {"usage": usage.body()})


async def _events(
    answers: AsyncIterator[Indexed], head: Head, functions: _Functions, usage_wanted: bool
) -> AsyncIterator[Event]:
    usage = Usage()
    extra: Event = {"usage": None} if usage_wanted else {}
    begun: dict[int, CallWatch | None] = {}

    def told(choice: Event) -> Event:
        return head.body([choice], chunk=True) | extra

    async for index, event in answers:
        if index not in begun:
            # Not before the engine has begun: until then an error still has a status.
            begun[index] = CallWatch() if functions.names else None
            yield told(delta(index, {"role": "assistant", "content": ""}))
        watch = begun[index]
        if isinstance(event, Chunk):
            for each in _deltas(index, event, watch):
                yield told(each)
        elif isinstance(event, Done):
            usage.add(event.stats)
            finish: str = event.finish_reason
            if watch is not None:
                words, calls = functions.read(watch.rest())
                if words:
                    yield told(delta(index, {"content": words}))
                for place, call in enumerate(calls):
                    yield told(delta(index, {"tool_calls": [{"index": place} | call_body(call)]}))
                finish = "tool_calls" if calls else finish
            yield told(delta(index, {}, finish))
    if usage_wanted:
        yield head.body([], chunk=True) | {"usage": usage.body()}


def _deltas(index: int, chunk: Chunk, watch: CallWatch | None) -> list[Event]:
    """What a pass added, thoughts apart; words that may be a call are held back."""
    thoughts, words = thoughts_and_words(chunk)
    if watch is not None:
        words = watch.feed(words)
    chances = chat_logprobs(chunk.logprobs) if chunk.logprobs else None
    deltas: list[Event] = []
    if thoughts:
        deltas.append(delta(index, {"reasoning_content": thoughts}))
    if words or chances is not None:
        deltas.append(delta(index, {"content": words}, logprobs=chances))
    return deltas
