"""Log probabilities of an answer's tokens: the model's own, whoever drafted them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.protocol import DRAFTERS, Chunk, DrafterName, DraftingParams, Generate, TokenLogprob
from native.context import Context, ContextOptions
from native.model import Model
from tests.session import EXACT, GREEDY, Session, chat

PROMPT = "one two three one two three one two"


def logprobs(session: Session, links: tuple[DrafterName, ...]) -> tuple[tuple[int, ...], list[TokenLogprob]]:
    session.seen.clear()
    request = Generate(
        request_id=0,
        messages=tuple(chat(PROMPT)),
        sampling=GREEDY,
        drafting=DraftingParams(mode="manual", links=links, max_draft=8),
        max_tokens=40,
        logprobs=3,
    )
    done = session.terminal(session.client.ask(request))
    told = [one for event in session.seen if isinstance(event, Chunk) for one in event.logprobs]
    return done.token_ids, told  # type: ignore[union-attr]


def test_logprobs_are_the_models_own(session: Session, t0: Path) -> None:
    session.load(t0, options=EXACT)
    ids, plain = logprobs(session, ())
    assert len(plain) == len(ids) > 20
    drafted_ids, drafted = logprobs(session, DRAFTERS)
    assert drafted_ids == ids
    for ours, theirs in zip(plain, drafted, strict=True):
        assert ours.data == theirs.data and abs(ours.logprob - theirs.logprob) < 1e-3
        assert ours.top[0] == (ours.data, ours.logprob)  # greedy takes the likeliest
        assert [p for _, p in ours.top] == sorted((p for _, p in ours.top), reverse=True)
        assert len(ours.top) == 3 and sum(np.exp(p) for _, p in ours.top) <= 1.0 + 1e-9
    # The first of them, computed by hand behind the same prompt.
    with (
        Model(t0) as model,
        Context(model, ContextOptions(n_ctx=512, kv_type="f32", flash_attention="off")) as c,
    ):
        started = Generate(request_id=1, messages=tuple(chat(PROMPT)))
        prompt = _prompt(model, started)
        c.decode([(0, token, place, place == len(prompt) - 1) for place, token in enumerate(prompt)])
        row = c.logits()[0].astype(np.float64)
        expected = row[ids[0]] - row.max() - np.log(np.exp(row - row.max()).sum())
    assert abs(plain[0].logprob - expected) < 1e-3


def _prompt(model: Model, request: Generate) -> list[int]:
    import datetime

    from app.worker.prompt import PromptBuilder
    from app.worker.template_choice import choose_template

    template, _ = choose_template(model, None)
    return PromptBuilder(model, template).build(request.messages, datetime.datetime.now()).tokens
