"""/v1/completions: text that goes on from a prompt, without a template."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from app.protocol import Chunk, Done, Generate
from app.server.answers import Head, TextLogprobs, Usage, text_choice, text_delta
from app.server.requests import CompletionRequest
from app.server.sending import Event, gather, stream, unless_gone
from app.server.service import Indexed, Service, choices

ROUTE = "/v1/completions"
_MOST_TOKENS = 16  # OpenAI's own default


async def completions(service: Service, body: CompletionRequest, request: Request) -> Response:
    settings = service.settings()
    usage_wanted = body.wants_usage()
    asked: list[Generate] = []
    echoes: list[str] = []
    for prompt in body.prompts():
        generate = Generate(
            request_id=0,
            messages=(),
            prompt=prompt,
            sampling=body.sampling(settings.sampling_params()),
            drafting=body.drafting(settings.drafting_params()),
            max_tokens=body.max_tokens or _MOST_TOKENS,
            stop=body.stops(),
            logprobs=body.logprobs,
        )
        made = choices(generate, body.seeds())
        asked += made
        echoes += [prompt if body.echo else ""] * len(made)
    head = Head("text_completion", "cmpl", body.model)
    if body.stream:
        return await stream(
            request,
            service,
            body.model,
            asked,
            ROUTE,
            lambda answers: _events(answers, head, echoes, body.n, usage_wanted),
        )
    return await unless_gone(request, lambda: _whole(service, head, asked, echoes, body.n))


async def _whole(service: Service, head: Head, asked: list[Generate], echoes: list[str], n: int) -> Response:
    wholes, usage = await gather(service, head.model, asked, ROUTE, n=n)
    made = [text_choice(i, done, chances, echoes[i]) for i, (done, chances) in enumerate(wholes)]
    return JSONResponse(head.body(made) | {"usage": usage.body()})


async def _events(
    answers: AsyncIterator[Indexed], head: Head, echoes: list[str], n: int, usage_wanted: bool
) -> AsyncIterator[Event]:
    usage = Usage()
    extra: Event = {"usage": None} if usage_wanted else {}
    begun: dict[int, TextLogprobs] = {}
    async for index, event in answers:
        if index not in begun:
            begun[index] = TextLogprobs(len(echoes[index]))
            yield head.body([text_delta(index, echoes[index])]) | extra
        if isinstance(event, Chunk):
            text = "".join(piece.text for piece in event.pieces)
            chances = begun[index].body(event.logprobs) if event.logprobs else None
            if text or chances is not None:
                yield head.body([text_delta(index, text, logprobs=chances)]) | extra
        elif isinstance(event, Done):
            usage.add(event.stats, index // n)
            yield head.body([text_delta(index, "", event.finish_reason)]) | extra
    if usage_wanted:
        yield head.body([]) | {"usage": usage.body()}
