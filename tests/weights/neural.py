"""What the tests of neural drafters share: tiny pairs of each kind, answers without a worker, chats in
turn, stopped drafts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from app.protocol import EngineOptions
from app.worker.neural import neural_drafter
from drafting.chain import Chain
from drafting.distribution import Distribution, Noise
from drafting.drafter import Drafter, Interrupted
from drafting.llama_target import LlamaTarget, llama_source
from drafting.loop import Loop
from drafting.neural import NeuralDrafter, NeuralName
from drafting.parameters import LinkParameters, NeuralParameters
from drafting.sequence import Sequence
from native.context import Context, ContextOptions
from native.model import Model
from native.sampler import SamplerOptions
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.mtp import CHAIN, MTP_KINDS
from tests.session import chat
from tests.tiny_gguf import Tiny, write_llama

PROMPT = [2, 260, 17, 300, 41, 5, 99, 260, 261, 9, 3, 77]
LENGTH = 200  # tokens of an answer
LONGEST = 16  # tokens of a draft

_LONG = "count and count again " * 30
CHATS = [
    chat(_LONG, "yes", "more"),
    chat("hi"),
    chat(_LONG, "yes", "more"),
    chat(_LONG, "no", "more"),
    chat(_LONG, "no", "more", "and", "then"),
]
"""Chats in turn, and one with an edited message."""

N_VOCAB = Tiny().n_vocab
Floats = npt.NDArray[np.float64]
_TARGET, _HEAD = Tiny(n_layer=4), Tiny(n_layer=2)


class Files(NamedTuple):
    """``drafter`` is None where it is heads inside the target."""

    target: Path
    drafter: Path | None


class Kind(NamedTuple):
    link: NeuralName
    write: Callable[[Path], Files]
    longest: int = LONGEST  # tokens that it drafts at most


def _pair(folder: Path, drafter: Callable[[Path], Path]) -> Files:
    return Files(write_llama(folder / "target.gguf", _TARGET), drafter(folder / "drafter.gguf"))


def _block(folder: Path, size: int, **what: Any) -> Files:
    return _pair(folder, lambda path: write_dflash(path, _HEAD, block_size=size, **what))


def _mtp(kind: str) -> Kind:
    def write(folder: Path) -> Files:
        return Files(*MTP_KINDS[kind](folder))

    return Kind("mtp", write, CHAIN if kind == "a chain" else LONGEST)


KINDS: dict[str, Kind] = {
    "draft": Kind("draft", lambda folder: _pair(folder, lambda path: write_llama(path, Tiny(n_layer=1)))),
    "eagle3": Kind("eagle3", lambda folder: _pair(folder, lambda path: write_eagle3(path, _TARGET))),
    **{f"mtp, {name}": _mtp(name) for name in MTP_KINDS},
    "dflash": Kind("dflash", lambda folder: _block(folder, LONGEST + 1)),
    "dspark": Kind("dspark", lambda folder: _block(folder, LONGEST, markov=True)),
    "dspark without anchor": Kind(
        "dspark", lambda folder: _block(folder, LONGEST + 1, markov=True, drafts_from_anchor=False)
    ),
}
"""All that llama.cpp can draft with, DSpark's known token once drafting and once not."""


class Pair:
    """A tiny target and a drafter of its, without a worker in between."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind = kind
        files = kind.write(folder)
        self.model = Model(files.target, heads=files.drafter is None)
        self._other = Model(files.drafter, heads=kind.link == "mtp") if files.drafter else self.model
        options = ContextOptions(
            n_ctx=256, n_batch=64, n_outputs=24, n_snapshots=16, kv_type="f32", flash_attention="off"
        )
        self.target = LlamaTarget(Context(self.model, options))

    def close(self) -> None:
        if self._other is not self.model:
            self._other.close()
        self.model.close()

    def drafter(self, n_max: int = LONGEST, temperature: float = 0.0) -> NeuralDrafter:
        """A new one, which reads what the target computes from here on; the one before is at its end."""
        options = EngineOptions(n_ctx=256, n_threads=1, kv_type="f32", flash_attention="off")
        drafter = neural_drafter(self.kind.link, self._other, self.target, options)
        drafter.configure(NeuralParameters(n_max=n_max))
        drafter.set_sampling(SamplerOptions(temperature=temperature))
        return drafter

    @cached_property
    def plain(self) -> list[int]:
        """The greedy text, prompt and all."""
        return answer(self.target, None, PROMPT, LENGTH).tokens


def only(link: NeuralName, n_max: int = LONGEST) -> LinkParameters:
    """Parameters with which it drafts so many tokens, however unsure it is."""
    return msgspec.structs.replace(LinkParameters(), **{link: NeuralParameters(n_max=n_max)})


def answer(
    target: LlamaTarget,
    drafter: Drafter | None,
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
        max_draft=LONGEST,
    )
    loop = Loop(target, lambda: 0.0)
    loop.add(sequence)
    while loop.busy:
        loop.step()
    assert not sequence.chain.failures
    return sequence


def by_id(q: Distribution) -> Floats:
    """The probability of each token."""
    probs = np.zeros(N_VOCAB)
    probs[q.ids] = q.probs
    return probs


def apart(a: Distribution, b: Distribution) -> float:
    """Total variation (0 to 1)."""
    return float(np.abs(by_id(a) - by_id(b)).sum() / 2.0)


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
