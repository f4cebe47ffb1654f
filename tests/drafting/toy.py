"""A target small enough to read, and drafters that do as a test tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drafting.chain import Chain
from drafting.distribution import Distribution, Noise
from drafting.drafter import NO_DRAFT, Draft, Drafter, Draw, Interrupted
from drafting.loop import Loop, Step
from drafting.sequence import FinishReason
from drafting.sequence import Sequence as TokenSequence
from drafting.target import Row, SavedState
from drafting.verification import Mode

VOCAB = 16
MEMORY = 3  # how many of the last tokens the next one depends on


@lru_cache(maxsize=100_000)
def next_token(context: tuple[int, ...], greedy: bool, flavour: int = 0) -> Distribution:
    """p after ``context`` (its last tokens): arbitrary, but always the same."""
    logits = np.random.default_rng([flavour, *context[-MEMORY:]]).normal(0.0, 2.0, VOCAB)
    if greedy:
        return Distribution.certain(int(logits.argmax()))
    weights = np.exp(logits - logits.max())
    return Distribution(np.arange(VOCAB, dtype=np.int32), weights / weights.sum())


@dataclass(frozen=True)
class ToyState:
    """A byte for each token."""

    tokens: tuple[int, ...]
    can_cut: bool = True

    def usable(self, length: int) -> int:
        return min(length, len(self.tokens)) if self.can_cut or length >= len(self.tokens) else 0

    @property
    def n_bytes(self) -> int:
        return len(self.tokens)


class ToyTarget:
    """Its KV cache is a list of tokens per sequence: what was not rewound spoils what comes next."""

    n_vocab = VOCAB
    saves_all = True

    def __init__(
        self,
        *,
        n_ctx: int = 1000,
        n_batch: int = 64,
        n_outputs: int = 32,
        greedy: bool = True,
        rewinds: bool = True,
        checkpoints: bool = False,
        interrupted: frozenset[int] = frozenset(),
    ) -> None:
        """``rewinds`` False is a recurrent memory, which goes back to where its last pass began if it keeps
        ``checkpoints``; passes numbered in ``interrupted`` are stopped."""
        self.n_ctx, self.n_batch, self.n_outputs, self.n_slots = n_ctx, n_batch, n_outputs, 1
        self.kv: dict[int, list[int]] = {}
        self.passes: list[list[Row]] = []  # those that were asked for
        self.forgotten: list[int] = []
        self._greedy = greedy
        self._rewinds = rewinds
        self._checkpoints = checkpoints
        self._began: dict[int, int] = {}  # tokens a sequence had before its last pass
        self._interrupted = interrupted
        self._contexts: list[tuple[int, ...]] = []

    def decode(self, rows: Sequence[Row]) -> None:
        number = len(self.passes)
        self.passes.append(list(rows))
        assert 0 < len(rows) <= self.n_batch
        assert sum(row.output for row in rows) <= self.n_outputs
        if number in self._interrupted:
            if not self._rewinds and not self._checkpoints:
                self.kv.clear()  # the state is somewhere in the middle of a token
            raise Interrupted("the pass was stopped")
        self._contexts = []
        self._began |= {row.seq: len(self.kv.get(row.seq, ())) for row in rows}
        for row in rows:
            assert 0 <= row.token < self.n_vocab
            tokens = self.kv.setdefault(row.seq, [])
            assert row.pos == len(tokens), f"position {row.pos}, but {len(tokens)} tokens are cached"
            tokens.append(row.token)
            assert len(tokens) <= self.n_ctx
            if row.output:
                self._contexts.append(tuple(tokens[-MEMORY:]))

    def rewind(self, seq: int, length: int) -> int:
        kept = self.kv.setdefault(seq, [])
        if length < len(kept) and not self._rewinds:
            began = self._began[seq] if self._checkpoints else 0
            length = began if began <= length else 0
            if not length:
                self.forgotten.append(seq)
        del kept[length:]
        return len(kept)

    def forget(self, seq: int) -> None:
        self.forgotten.append(seq)
        self.kv[seq] = []

    def save(self, seq: int, most_bytes: int) -> ToyState | None:
        saved = ToyState(tuple(self.kv.get(seq, ())), self.saves_all)
        return saved if saved.n_bytes <= most_bytes else None

    def restore(self, seq: int, saved: SavedState) -> int:
        assert isinstance(saved, ToyState)
        self.kv[seq] = list(saved.tokens)
        return len(saved.tokens)

    def at(self, output: int, last: int | None) -> Distribution:
        return next_token(self._contexts[output], self._greedy)


class Idle:
    """A drafter with nothing to say, that notes what it is told."""

    name = "idle"

    def __init__(self, name: str = "idle") -> None:
        self.name = name
        self.history: list[int] = []
        self.verdicts: list[tuple[int, int]] = []
        self.limits: list[int] = []

    def begin(self, tokens: Sequence[int]) -> None:
        self.history = list(tokens)

    def commit(self, tokens: Sequence[int]) -> None:
        self.history += tokens

    def judged(self, drafted: int, accepted: int) -> None:
        self.verdicts.append((drafted, accepted))

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.limits.append(limit)
        return NO_DRAFT


class Oracle(Idle):
    """Knows the answer: by turns drafts so many tokens of it and then so many wrong ones.

    It minds no limit, so the chain has to.
    """

    def __init__(
        self, answer: Sequence[int], plan: Sequence[tuple[int, int]], name: str = "oracle", start: int = 0
    ) -> None:
        """``plan``: (right, wrong) per call, over and over. ``start``: where the answer begins."""
        super().__init__(name)
        self._answer, self._plan, self._start = list(answer), plan, start
        self._calls = 0

    def propose(self, limit: int, draw: Draw) -> Draft:
        self.limits.append(limit)
        right, wrong = self._plan[self._calls % len(self._plan)]
        self._calls += 1
        at = len(self.history) - self._start
        tokens = self._answer[at : at + right]
        for i in range(wrong):
            place = at + len(tokens)
            true = self._answer[place] if place < len(self._answer) else 0
            tokens.append((true + 1 + i) % VOCAB)
        return Draft(tokens)


class ToyDraftModel(Idle):
    """A neural drafter: a model of its own that is often of the target's mind."""

    def __init__(self, agreement: float = 0.5, name: str = "draft") -> None:
        super().__init__(name)
        self._agreement = agreement

    def propose(self, limit: int, draw: Draw) -> Draft:
        context = tuple(self.history[-MEMORY:])
        tokens: list[int] = []
        qs: list[Distribution] = []
        for i in range(limit):
            p = next_token(context, False)
            other = next_token(context, False, flavour=1)
            q = Distribution(p.ids, self._agreement * p.probs + (1 - self._agreement) * other.probs)
            tokens.append(draw(q, len(self.history) + i))
            qs.append(q)
            context = (*context, tokens[-1])[-MEMORY:]
        return Draft(tokens, qs)


class Ticks:
    """A clock that is one second later each time it is asked."""

    def __init__(self) -> None:
        self.now = -1.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def sequence(
    target: ToyTarget,
    prompt: Sequence[int],
    *drafters: Drafter,
    seq: int = 0,
    seed: int = 0,
    mode: Mode = "rejection",
    max_new: int | None = 40,
    max_draft: int = 8,
    end: Sequence[int] = (),
    take: Callable[[int], FinishReason | None] | None = None,
) -> TokenSequence:
    """``end``: tokens that end the answer."""

    def ends(token: int) -> FinishReason | None:
        return "stop" if token in end else None

    return TokenSequence(
        seq=seq,
        tokens=list(prompt),
        source=target,
        chain=Chain(drafters),
        noise=Noise(seed),
        mode=mode,
        take=take or ends,
        max_new=max_new,
        max_draft=max_draft,
    )


def run(target: ToyTarget, *sequences: TokenSequence) -> list[Step]:
    """Drive them all to their end; a stopped pass is tried again. The steps of all passes."""
    loop = Loop(target, Ticks())
    for one in sequences:
        loop.add(one)
    steps: list[Step] = []
    for _ in range(5000):
        if not loop.busy:
            return steps
        try:
            steps += loop.step()
        except Interrupted:
            continue
    raise AssertionError("the loop does not end")


def answer(one: TokenSequence) -> list[int]:
    """What was said after the prompt."""
    return one.tokens[one.n_prompt :]
