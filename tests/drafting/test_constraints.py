"""Penalties, bias and grammar together with drafts, over llama.cpp's own samplers and toy logits.

Each place is judged with exactly the history it has: prompt, answer, accepted tokens, and never one
that was rejected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import JsonSchema
from app.worker.grammar import ROOT, answer_gbnf
from drafting.chain import Chain
from drafting.distribution import Distribution, Noise
from drafting.drafter import Draft, Drafter, Draw
from drafting.llama_target import LlamaSource
from drafting.sequence import Sequence as TokenSequence
from drafting.target import TokenSource
from drafting.verification import Mode
from native.context import Logits
from native.grammar import Grammar
from native.model import Model
from native.sampler import SamplerChain, SamplerOptions
from tests.drafting.chi_square import assert_follows
from tests.drafting.toy import MEMORY, VOCAB, Idle, Oracle, ToyTarget, answer, run
from tests.native.reference import distribution
from tests.tiny_gguf import EOS, write_llama

PROMPT = [3, 1, 4, 1, 5, 1]
PENALTIES = {"repeat_penalty": 1.5, "frequency_penalty": 0.6, "presence_penalty": 0.4, "penalty_last_n": 8}
GREEDY = SamplerOptions(**PENALTIES, logit_bias={2: 1.0, 7: -float("inf")})
SAMPLED = SamplerOptions(temperature=1.0, top_k=8, **PENALTIES, logit_bias={2: 1.0, 7: -float("inf")})


class LogitsTarget(ToyTarget):
    """The same toy with logits in place of distributions; stands in for a context."""

    def __init__(self, n_vocab: int = VOCAB, boosts: Sequence[int] = ()) -> None:
        """``boosts``: tokens that are the likeliest at the answer's beginning, one after the other."""
        super().__init__(n_batch=128, n_outputs=64)
        self.n_vocab = n_vocab
        self._boosts = boosts
        self.positions: list[int] = []

    def decode(self, rows: Sequence) -> None:  # type: ignore[type-arg]
        self.positions = [row.pos for row in rows if row.output]
        super().decode(rows)

    def logits(self) -> Logits:
        rows = [toy_logits(context, self.n_vocab) for context in self._contexts]
        for row, position in zip(rows, self.positions, strict=True):
            place = position - len(PROMPT) + 1
            if place < len(self._boosts):
                row[self._boosts[place]] += 50.0
        return np.stack(rows)


def toy_logits(context: Sequence[int], n_vocab: int, flavour: int = 0) -> Logits:
    rng = np.random.default_rng([flavour, *context[-MEMORY:]])
    return rng.normal(0.0, 2.0, n_vocab).astype(np.float32)


class PenalisedDrafter(Idle):
    """Draws from a q of its own that the same penalties shape, as the draft model does."""

    def __init__(self, options: SamplerOptions) -> None:
        super().__init__("draft")
        self._chain = SamplerChain(VOCAB, options)

    def begin(self, tokens: Sequence[int]) -> None:
        super().begin(tokens)
        self._chain.begin(tokens)

    def commit(self, tokens: Sequence[int]) -> None:
        super().commit(tokens)
        for token in tokens:
            self._chain.accept(token)

    def propose(self, limit: int, draw: Draw) -> Draft:
        tokens: list[int] = []
        qs: list[Distribution] = []
        with self._chain.trial():
            for i in range(min(limit, 5)):
                context = (self.history + tokens)[-MEMORY:]
                logits = toy_logits(context, VOCAB) + toy_logits(context, VOCAB, flavour=1) / 2
                qs.append(Distribution(*self._chain.distribution(logits)))
                tokens.append(draw(qs[-1], len(self.history) + i))
                self._chain.accept(tokens[-1])
        return Draft(tokens, qs)


def say(
    target: LogitsTarget,
    source: TokenSource,
    *drafters: Drafter,
    seed: int = 0,
    mode: Mode = "reproducible",
    max_new: int = 40,
    max_draft: int = 8,
    prompt: Sequence[int] = PROMPT,
) -> TokenSequence:
    """One answer from beginning to end."""
    one = TokenSequence(
        seq=0,
        tokens=list(prompt),
        source=source,
        chain=Chain(drafters),
        noise=Noise(seed),
        mode=mode,
        take=lambda token: "stop" if token == EOS and target.n_vocab > VOCAB else None,
        max_new=max_new,
        max_draft=max_draft,
    )
    run(target, one)
    return one


def source_of(target: LogitsTarget, options: SamplerOptions, grammar: Grammar | None = None) -> LlamaSource:
    chain = SamplerChain(target.n_vocab, options, grammar)
    chain.begin(PROMPT)
    return LlamaSource(target, chain)  # type: ignore[arg-type]


def penalised(
    options: SamplerOptions, *drafters: Drafter, seed: int = 0, mode: Mode = "reproducible"
) -> list[int]:
    target = LogitsTarget()
    return answer(say(target, source_of(target, options), *drafters, seed=seed, mode=mode))


PLANS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=8)


@given(plan=PLANS, greedy=st.booleans(), seed=st.integers(0, 50))
def test_drafted_text_is_the_plain_text_with_penalties(
    plan: list[tuple[int, int]], greedy: bool, seed: int
) -> None:
    options = GREEDY if greedy else SAMPLED
    plain = penalised(options, seed=seed)
    assert penalised(options, Oracle(plain, plan, start=len(PROMPT)), seed=seed) == plain
    assert 7 not in plain


def test_plain_text_follows_the_formula() -> None:
    """So that plain and drafted are not both wrong."""
    said = penalised(GREEDY)
    without = penalised(SamplerOptions(logit_bias=GREEDY.logit_bias))
    assert said != without
    for place, token in enumerate(said):
        tokens = [*PROMPT, *said[:place]]
        p = distribution(
            toy_logits(tokens[-MEMORY:], VOCAB),
            tokens,
            SamplerOptions(temperature=1.0, **PENALTIES, logit_bias=GREEDY.logit_bias),
        )
        assert token == max(p, key=lambda t: p[t])


@pytest.mark.parametrize("seed", range(8))
def test_a_drafter_with_a_q_does_not_change_a_seeds_text(seed: int) -> None:
    target = LogitsTarget()
    one = say(target, source_of(target, SAMPLED), PenalisedDrafter(SAMPLED), seed=seed)
    assert answer(one) == penalised(SAMPLED, seed=seed)
    assert 0 < one.stats.accepted < one.stats.drafted


def test_rejection_sampling_follows_p_with_penalties() -> None:
    """Three tokens, whose odds depend on each other through the penalties alone.

    p is the same at each place but for them; the drafter's q is another, penalised the same way.
    """
    options = SamplerOptions(temperature=1.0, repeat_penalty=3.0, presence_penalty=1.0, penalty_last_n=4)
    logits = np.array([1.0, 0.5, 0.0], dtype=np.float32)
    n = 3

    class Fixed(LogitsTarget):
        n_vocab = n

        def logits(self) -> Logits:
            return np.stack([logits] * len(self.positions))

    class Other(PenalisedDrafter):
        def __init__(self) -> None:
            Idle.__init__(self, "draft")
            self._chain = SamplerChain(n, options)

        def propose(self, limit: int, draw: Draw) -> Draft:
            tokens: list[int] = []
            qs: list[Distribution] = []
            with self._chain.trial():
                for i in range(limit):
                    qs.append(Distribution(*self._chain.distribution(logits[::-1].copy())))
                    tokens.append(draw(qs[-1], len(self.history) + i))
                    self._chain.accept(tokens[-1])
            return Draft(tokens, qs)

    prompt = [0, 2]

    def joint(options: SamplerOptions) -> np.ndarray:
        """Of the second to fourth token; the first is said by the pass that reads the prompt."""
        odds = np.zeros((n, n, n))
        for a in range(n):
            for b, c, d in np.ndindex(n, n, n):
                said = [*prompt, a]
                p = distribution(logits, prompt, options)[a]
                for token in (b, c, d):
                    p *= distribution(logits, said, options)[token]
                    said.append(token)
                odds[b, c, d] += p
        return odds.ravel()

    target = Fixed(n)
    chain = SamplerChain(n, options)
    drafter = Other()
    cells, accepted, drafted = [], 0, 0
    for seed in range(4000):
        chain.begin(prompt)
        target.kv[0] = []
        one = say(
            target,
            LlamaSource(target, chain),
            drafter,
            seed=seed,
            mode="rejection",
            max_new=4,
            max_draft=2,
            prompt=prompt,  # type: ignore[arg-type]
        )
        _, b, c, d = answer(one)
        cells.append((b * n + c) * n + d)
        accepted += one.stats.accepted
        drafted += one.stats.drafted
    assert 0.3 < accepted / drafted < 0.9
    assert_follows(cells, joint(options))
    with pytest.raises(AssertionError):  # the test can tell
        assert_follows(cells, joint(SamplerOptions(temperature=1.0)))


# ---- grammar

SCHEMA = JsonSchema('{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    path: Path = write_llama(tmp_path_factory.mktemp("constraints") / "t0.gguf")
    with Model(path, vocab_only=True) as model:
        yield model


def constrained(
    model: Model, options: SamplerOptions, script: str, closing: str | None, *drafters: Drafter, seed: int = 0
) -> tuple[TokenSequence, str]:
    """An answer that begins with ``script``, if the grammar lets it, and goes on at random."""
    gbnf, _ = answer_gbnf(SCHEMA, closing, ())
    target = LogitsTarget(512, model.tokenize(script, parse_special=False))
    source = source_of(target, options, Grammar(model, gbnf, root=ROOT))
    one = say(target, source, *drafters, seed=seed, max_new=200)
    source.close()
    text = b"".join(model.token_bytes(t) for t in answer(one)).decode(errors="replace")
    return one, text


def assert_fits(text: str) -> None:
    value = json.loads(text)
    assert list(value) == ["n"] and isinstance(value["n"], int)


@given(plan=PLANS, greedy=st.booleans(), seed=st.integers(0, 50))
def test_drafted_text_is_the_plain_text_under_a_grammar(
    model: Model, plan: list[tuple[int, int]], greedy: bool, seed: int
) -> None:
    options = SamplerOptions(temperature=0.0 if greedy else 1.2, top_k=40, repeat_penalty=1.2)
    plain, text = constrained(model, options, "", None, seed=seed)
    assert plain.finished == "stop"
    assert_fits(text)
    oracle = Oracle(answer(plain), plan, start=len(PROMPT))
    drafted, again = constrained(model, options, "", None, oracle, seed=seed)
    assert again == text and answer(drafted) == answer(plain)


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("script", ["hm, 7.</think>\n\nSure:", "</</think></think>x", '{"n": 1}</think>'])
def test_a_grammar_begins_behind_the_thoughts_in_the_middle_of_a_draft(
    model: Model, script: str, greedy: bool
) -> None:
    """A14: every way of cutting the drafts, so that the tag also ends inside an accepted one."""
    options = SamplerOptions(temperature=0.0 if greedy else 1.0, top_k=40)
    plain, text = constrained(model, options, script, "</think>")
    thoughts, tag, rest = text.partition("</think>")
    assert thoughts == script.partition("</think>")[0] and tag
    assert_fits(rest)
    ended = len(model.tokenize(thoughts + tag, parse_special=False))
    for right in range(1, 12):
        oracle = Oracle(answer(plain), [(right, 2), (0, 3)], start=len(PROMPT))
        drafted, again = constrained(model, options, script, "</think>", oracle)
        assert again == text
        assert 0 < drafted.stats.accepted < drafted.stats.drafted
    whole = Oracle(answer(plain), [(64, 0)], start=len(PROMPT))
    target_passes = constrained(model, options, script, "</think>", whole)[0].stats
    assert target_passes.accepted > ended  # one draft went past the tag


def test_thoughts_that_the_answer_opens_itself_are_optional(model: Model) -> None:
    gbnf, _ = answer_gbnf(SCHEMA, None, [("<think>", "</think>"), ("[THINK]", "[/THINK]")])
    fits = '{"n": 1}'
    for text, allowed in [
        (fits, True),
        (f"<think>a < b</think>\n\n{fits}", True),
        (f"\n[THINK]</think>[/THINK]{fits}", True),
        (f"<think>[/THINK]{fits}", None),  # still thinking
        (f"so: {fits}", False),
        (f"<think></think>so: {fits}", False),
        (f"[THINK]x[/THINK]{fits}{fits}", False),
    ]:
        with Grammar(model, gbnf, root=ROOT) as grammar:
            tokens = model.tokenize(text, parse_special=False)
            fine = True
            for token in tokens:
                fine = grammar.allows(token)
                if not fine:
                    break
                grammar.accept(token)
            assert fine == (allowed is not False), text
            assert (fine and grammar.allows(EOS)) == bool(allowed), text
