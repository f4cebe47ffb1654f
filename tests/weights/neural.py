"""What the tests of neural drafters share: answers without a worker, chats in turn, stopped drafts."""

from __future__ import annotations

import pytest

from drafting.chain import Chain
from drafting.distribution import Distribution, Noise
from drafting.drafter import Interrupted
from drafting.llama_target import LlamaTarget, llama_source
from drafting.loop import Loop
from drafting.neural import NeuralDrafter
from drafting.sequence import Sequence
from native.sampler import SamplerOptions
from tests.session import chat

_LONG = "count and count again " * 30
CHATS = [
    chat(_LONG, "yes", "more"),
    chat("hi"),
    chat(_LONG, "yes", "more"),
    chat(_LONG, "no", "more"),
    chat(_LONG, "no", "more", "and", "then"),
]
"""Chats in turn, and one with an edited message."""


def answer(
    target: LlamaTarget,
    drafter: NeuralDrafter | None,
    prompt: list[int],
    length: int,
    temperature: float = 0.0,
) -> Sequence:
    """An answer of ``length`` tokens, from scratch; 16 drafted tokens at most. Drawn, it is reproducible."""
    target.forget(0)
    sequence = Sequence(
        seq=0,
        tokens=list(prompt),
        source=llama_source(target.context, SamplerOptions(temperature=temperature), prompt),
        chain=Chain([drafter] if drafter else []),
        noise=Noise(3),
        mode="reproducible" if temperature else "rejection",
        take=lambda token: None,
        max_new=length,
        max_draft=16,
    )
    loop = Loop(target, lambda: 0.0)
    loop.add(sequence)
    while loop.busy:
        loop.step()
    assert not sequence.chain.failures
    return sequence


def first_id(q: Distribution, position: int) -> int:
    return int(q.ids[0])


def draft_after_stops(drafter: NeuralDrafter, n: int, stops: tuple[int, ...]) -> list[int]:
    """What it drafts once it was stopped before each of these draws; 0: before it began."""
    for stop_at in stops:
        drawn = 0

        def stopping(q: Distribution, position: int, stop_at: int = stop_at) -> int:
            nonlocal drawn
            drawn += 1
            if drawn == stop_at:
                drafter.context.abort()
            return first_id(q, position)

        if stop_at == 0:
            drafter.context.abort()
        with pytest.raises(Interrupted):
            drafter.propose(n, stopping)
        drafter.context.allow()
    return drafter.propose(n, first_id).tokens
