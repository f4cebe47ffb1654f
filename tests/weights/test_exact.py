"""Exact mode on quantised weights: the same ids whoever drafts, also past 512 cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine import NO_EXACT
from app.protocol import DRAFTERS, EngineOptions, SamplingParams, Started
from tests.session import Session
from tests.weights.test_same_text import PASSAGE, PROMPTS

OPTIONS = EngineOptions(n_ctx=2048)  # flash attention and an F16 KV cache, as people have them
LONG = f"{PASSAGE} " * 12 + "Repeat the text above, then go on with it."
LINKS = tuple(name for name in DRAFTERS if name != "draft")


@pytest.mark.timeout(900)
def test_the_starter_says_the_same_with_any_drafter(session: Session, starter: Path) -> None:
    session.load(starter, options=OPTIONS)
    accepted = rejected = 0
    for prompt in (LONG, PROMPTS[2], PROMPTS[3]):
        plain = session.ask(prompt, exact=True, max_tokens=120)
        for links, mode, longest in [
            *(((link,), "manual", 8) for link in LINKS),
            (LINKS, "manual", 47),
            (LINKS, "manual", 1),
            (LINKS, "auto", 47),
        ]:
            done = session.ask(prompt, links=links, mode=mode, exact=True, max_draft=longest, max_tokens=120)
            assert done.token_ids == plain.token_ids, (links, mode, longest)
            accepted += done.stats.accepted
            rejected += done.stats.drafted - done.stats.accepted
    assert accepted > 300 and rejected > 100
    assert not any(NO_EXACT in event.notices for event in session.seen if isinstance(event, Started))


@pytest.mark.timeout(900)
def test_a_seed_gives_the_same_with_any_drafter(session: Session, starter: Path) -> None:
    session.load(starter, options=OPTIONS)
    sampling = SamplingParams(temperature=0.8)
    texts = {
        session.ask(
            LONG, sampling=sampling, seed=7, exact=True, links=links, mode=mode, max_tokens=100
        ).token_ids
        for links, mode in [((), "manual"), (("suffix",), "manual"), (LINKS, "auto")]
    }
    assert len(texts) == 1
