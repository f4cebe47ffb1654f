"""Penalties and grammar with every drafter, through the real worker: tiny models, and the starter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from msgspec.structs import replace

from app.protocol import (
    DRAFTERS,
    NEURAL,
    ChatMessage,
    Chunk,
    Done,
    DrafterName,
    EngineOptions,
    Failed,
    Gbnf,
    JsonSchema,
    SamplingParams,
    Started,
)
from drafting.parameters import (
    LinkParameters,
    MapParameters,
    ModParameters,
    NeuralParameters,
    SuffixParameters,
)
from tests.session import EXACT, GREEDY, Session
from tests.tiny_gguf import CHATML, EOS, IM_END, Tiny, write_llama

CHAINS: list[tuple[DrafterName, ...]] = [*((link,) for link in DRAFTERS), DRAFTERS]
EAGER = LinkParameters(
    simple=MapParameters(n=2),
    map_k=MapParameters(n=2),
    map_k4v=MapParameters(n=2),
    mod=ModParameters(n=2, n_min=1, n_max=8),
    suffix=SuffixParameters(p_min=0.0),
    draft=NeuralParameters(n_max=6),
)
PENALTIES = SamplingParams(
    temperature=0.0,
    repeat_penalty=1.2,
    frequency_penalty=0.2,
    presence_penalty=0.1,
    penalty_last_n=40,
    logit_bias={65: 2.0, 101: -100.0},
)

# Case A14
SCHEMA = JsonSchema('{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
BAIT = '{"n": "seven", "n": "seven"'
CHAT = [ChatMessage("user", "n is 7"), ChatMessage("assistant", BAIT), ChatMessage("user", "n is 7")]


def assert_fits(text: str) -> None:
    value = json.loads(text)
    assert list(value) == ["n"] and isinstance(value["n"], int), text


# ---- penalties


@pytest.mark.parametrize("seed", [None, 0, 42])
def test_same_ids_with_penalties_whoever_drafts(
    session: Session, t0: Path, d0: Path, seed: int | None
) -> None:
    session.load(t0, d0, EXACT)
    sampling = PENALTIES if seed is None else replace(PENALTIES, temperature=0.9)
    plain = session.ask("the the the cat", sampling=sampling, seed=seed, max_tokens=150)
    assert 101 not in plain.token_ids
    unpenalised = SamplingParams(temperature=sampling.temperature)
    assert session.ask("the the the cat", sampling=unpenalised, seed=seed, max_tokens=150) != plain
    drafted = accepted = 0
    for links in CHAINS:
        done = session.ask(
            "the the the cat", links=links, parameters=EAGER, sampling=sampling, seed=seed, max_tokens=150
        )
        assert done.token_ids == plain.token_ids, links
        drafted += done.stats.drafted
        accepted += done.stats.accepted
    auto = session.ask(
        "the the the cat", links=DRAFTERS, mode="auto", sampling=sampling, seed=seed, max_tokens=150
    )
    assert auto.token_ids == plain.token_ids
    assert 0 < accepted < drafted


def test_a_draft_models_penalties_follow_the_text_as_the_targets_do(session: Session, t0: Path) -> None:
    """With the target itself for a drafter, all is accepted: q is p, penalties and all."""
    session.load(t0, t0, EXACT)
    # an answer that ended by itself would throw away what was drafted behind its end
    endless = replace(PENALTIES, logit_bias={**PENALTIES.logit_bias, EOS: -100.0, IM_END: -100.0})
    for sampling, seed in [
        (endless, None),
        (replace(endless, temperature=1.0), 7),
        (replace(endless, temperature=1.0), None),
    ]:
        done = session.ask(
            "once upon", links=("draft",), parameters=EAGER, sampling=sampling, seed=seed, max_tokens=120
        )
        assert done.stats.drafted > 60
        assert done.stats.accepted >= done.stats.drafted - 1  # the last may be cut by max_tokens


# ---- case A14


def json_with_every_method(
    session: Session,
    *,
    seeds: Sequence[int],
    chains: Sequence[tuple[DrafterName, ...]],
    exact: bool,
    **ask: Any,
) -> dict[str, int]:
    """Drafted tokens by drafter."""
    drafted: dict[str, int] = {}
    for seed in seeds:
        common = {"grammar": SCHEMA, "seed": seed, "exact": exact, "max_tokens": 60, **ask}
        plain = session.ask(CHAT, **common)
        assert_fits(plain.text)
        assert plain.finish_reason == "stop"
        for links in chains:
            done = session.ask(CHAT, links=links, parameters=EAGER, **common)
            assert done.text == plain.text and done.token_ids == plain.token_ids, (seed, links)
            for name, counts in done.stats.by_drafter.items():
                drafted[name] = drafted.get(name, 0) + counts.drafted
        auto = session.ask(CHAT, links=DRAFTERS, mode="auto", **common)
        assert auto.text == plain.text
    return drafted


def test_json_of_a_tiny_model_whoever_drafts(session: Session, t0: Path, d0: Path) -> None:
    session.load(t0, d0, EXACT)
    drafted = json_with_every_method(
        session, seeds=range(20), chains=CHAINS, exact=False, sampling=SamplingParams(temperature=0.8)
    )
    # map-k4v asks for a continuation that dominates, which random text may not have
    assert set(drafted) >= set(DRAFTERS) - {"map-k4v", *NEURAL[1:]}, drafted
    greedy = session.ask(CHAT, grammar=SCHEMA, links=DRAFTERS, parameters=EAGER)
    assert_fits(greedy.text)


@pytest.mark.timeout(600)
def test_json_of_the_starter_whoever_drafts(session: Session, starter: Path, starter_q2: Path) -> None:
    """20 seeds: each with the whole chain and auto, and the links in turn."""
    session.load(starter, starter_q2, EngineOptions(n_ctx=2048, n_threads=1))
    links = DRAFTERS
    drafted: dict[str, int] = {}
    for seed in range(20):
        chains = [links, (links[seed % len(links)],), (links[(seed + 3) % len(links)],)]
        for name, count in json_with_every_method(
            session, seeds=[seed], chains=chains, exact=True, sampling=SamplingParams(temperature=0.8)
        ).items():
            drafted[name] = drafted.get(name, 0) + count
    assert {"cache", "simple", "suffix", "draft"} <= set(drafted), drafted


def test_without_a_seed_it_is_json_too(session: Session, t0: Path, d0: Path) -> None:
    session.load(t0, d0, EXACT)
    for _ in range(10):
        sampling = SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
        assert_fits(
            session.ask(CHAT, grammar=SCHEMA, sampling=sampling, links=DRAFTERS, parameters=EAGER).text
        )


@pytest.mark.parametrize("opened", [True, False])
def test_thoughts_end_before_the_grammar_begins(session: Session, tmp_path: Path, opened: bool) -> None:
    """A14's variant, with the tag as one token that look-ups draft along with the JSON behind it."""
    template = CHATML.replace("assistant\n", "assistant\n<think>\n") if opened else CHATML + "{# <think> #}"
    opening, closing, brace = 510, 511, 4 + ord("{")
    thinker = write_llama(tmp_path / "thinker.gguf", Tiny(template=template, words=("<think>", "</think>")))
    session.load(thinker, options=EXACT)
    # Random weights would hardly ever begin or end a thought, nor think in letters.
    bias = {opening: 8.0, closing: 8.0, brace: 6.0} | {4 + ord(c): 4.0 for c in ascii_lowercase}
    prompt = "n is 7" + "".join(f'{letter}</think>{{"n": 1}}' for letter in ascii_lowercase)
    inside = 0
    for seed in range(40):
        sampling = SamplingParams(temperature=1.0, logit_bias=bias)
        common = {"grammar": SCHEMA, "seed": seed, "sampling": sampling, "max_tokens": 400}
        plain = session.ask(prompt, **common)
        assert_fits(plain.text)
        assert closing in plain.token_ids or not opened
        for links in (("map-k",), DRAFTERS):
            session.seen.clear()
            drafted = session.ask(
                prompt, links=links, parameters=LinkParameters(map_k=MapParameters(n=1)), **common
            )
            assert drafted.token_ids == plain.token_ids
            inside += _ends_thoughts_inside(session, drafted, closing)
    assert inside >= 5


def _ends_thoughts_inside(session: Session, done: Done, closing: int) -> bool:
    """Whether the tag was an accepted token with more accepted ones behind it, in one pass."""
    if closing not in done.token_ids:
        return False
    place, said = done.token_ids.index(closing), 0
    for chunk in session.seen:
        if isinstance(chunk, Chunk):
            if said <= place < said + chunk.accepted - 1:
                return True
            said += chunk.tokens
    return False


# ---- with what else ends an answer, and what goes wrong


def test_a_stop_string_ends_an_answer_inside_its_grammar(session: Session, t0: Path) -> None:
    session.load(t0, t0, EXACT)
    quoted = Gbnf('root ::= "\\"" [a-z]{200} "\\""')
    plain = session.ask("say", grammar=quoted, max_tokens=300)
    stop = plain.text[20:22]
    for links in ((), ("draft",)):
        done = session.ask("say", grammar=quoted, links=links, parameters=EAGER, stop=(stop,), max_tokens=300)
        assert done.finish_reason == "stop"
        assert done.text == plain.text[: plain.text.index(stop)]


def test_a_grammar_that_ends_ends_the_answer(session: Session, t0: Path) -> None:
    session.load(t0, t0, EXACT)
    for links in ((), ("draft",)):
        done = session.ask("say", grammar=Gbnf('root ::= "yes" | "no"'), links=links, parameters=EAGER)
        assert done.text in ("yes", "no") and done.finish_reason == "stop"
        assert done.stats.completion_tokens == len(done.token_ids) + 1  # and the end token
    endless = session.ask("say", grammar=Gbnf('root ::= "ab" root'), max_tokens=30)
    assert endless.finish_reason == "length" and set(endless.text) == {"a", "b"}


BAD = [
    (Gbnf('root ::= "a'), {}, "The grammar cannot be used: line 1 cannot be read"),
    (Gbnf("root ::= <nonsense>"), {}, "The grammar cannot be used: llama.cpp cannot read it"),
    (JsonSchema("[]"), {}, "The grammar cannot be used: it is not a JSON object"),
    (None, {"logit_bias": {512: 1.0}}, "There is no token 512: this model has 512."),
    (None, {"logit_bias": {-1: 1.0}}, "There is no token -1"),
    (None, {"logit_bias": {5: float("nan")}}, "Bad request"),
    (None, {"repeat_penalty": 0.0}, "Bad request"),
    (None, {"presence_penalty": float("inf")}, "Bad request"),
]


@pytest.mark.parametrize(("grammar", "sampling", "words"), BAD)
def test_bad_input_is_said_before_anything_is_decoded(
    session: Session, t0: Path, grammar: Any, sampling: dict[str, Any], words: str
) -> None:
    session.load(t0, options=EXACT)
    failed = session.terminal(
        session.client.generate(
            [ChatMessage("user", "hi")], grammar=grammar, sampling=SamplingParams(**sampling)
        )
    )
    assert isinstance(failed, Failed) and failed.kind == "bad_input"
    assert failed.message.startswith(words) and "\n" not in failed.message
    assert not any(isinstance(event, Started) for event in session.seen)
    assert session.ask("hi", max_tokens=4).stats.completion_tokens == 4


def test_a_dead_end_fails_the_request_and_not_the_worker(session: Session, t0: Path) -> None:
    session.load(t0, options=EXACT)
    ban = {token: -100.0 for token in range(512) if token == 4 + ord("a") or token >= 260}
    failed = session.terminal(
        session.client.generate(
            [ChatMessage("user", "hi")], grammar=Gbnf('root ::= "a"'), sampling=SamplingParams(logit_bias=ban)
        )
    )
    assert isinstance(failed, Failed) and failed.recoverable and failed.kind == "bad_input"
    assert "leaves this model nothing that it could say" in failed.message
    assert session.ask("hi", max_tokens=4).stats.completion_tokens == 4


def test_a_cancel_in_the_middle_of_a_grammar_leaves_no_trace(session: Session, t0: Path, d0: Path) -> None:
    session.load(t0, d0, EXACT)
    fresh = session.ask(CHAT, grammar=SCHEMA, sampling=GREEDY)
    request = session.client.generate(
        [ChatMessage("user", "go")], grammar=Gbnf("root ::= [^x] root"), sampling=PENALTIES
    )
    session.until(lambda e: isinstance(e, Chunk) and e.request_id == request)
    session.client.cancel(request)
    done = session.terminal(request)
    assert isinstance(done, Done) and done.finish_reason == "cancelled"
    for links in ((), DRAFTERS):
        again = session.ask(CHAT, grammar=SCHEMA, sampling=GREEDY, links=links, parameters=EAGER)
        assert again.token_ids == fresh.token_ids
