"""Our EAGLE-3 drafter drafts what llama-server drafts with the same files and settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.protocol import EngineOptions
from app.worker.neural import neural_drafter
from drafting.eagle3 import Eagle3
from drafting.llama_target import LlamaTarget
from drafting.parameters import NeuralParameters
from model_store.starter import starter_path
from native.context import Context, ContextOptions
from native.model import Model
from tests.parity.__main__ import HEAD, OPTIONS
from tests.parity.recording import SETTINGS, Answer, Pass, load
from tests.parity.replay import drafts


class Replayed:
    """The starter goes through recorded answers, and its head drafts along."""

    def __init__(self, model: Model, head: Model) -> None:
        sizes = ContextOptions(n_ctx=OPTIONS.n_ctx, n_batch=OPTIONS.n_batch, n_outputs=16, n_threads=1)
        self.target = LlamaTarget(Context(model, sizes))
        drafter = neural_drafter("eagle3", head, self.target, EngineOptions())
        assert isinstance(drafter, Eagle3)
        self.drafter = drafter

    def drafts(self, answer: Answer) -> list[Pass]:
        return drafts(self.target, self.drafter, answer)


@pytest.fixture(scope="module")
def replayed() -> Iterator[Replayed]:
    path = starter_path()
    assert path is not None
    with Model(path) as model, Model(HEAD) as head:
        replayed = Replayed(model, head)
        yield replayed
        head.close()


@pytest.mark.parametrize(("n_max", "p_min"), SETTINGS)
def test_the_first_fifty_drafts_are_the_servers(replayed: Replayed, n_max: int, p_min: float) -> None:
    replayed.drafter.configure(NeuralParameters(n_max=n_max, p_min=p_min))
    for answer in load(n_max, p_min).answers:
        made = replayed.drafts(answer)
        different = [i for i, (a, b) in enumerate(zip(made, answer.passes, strict=True)) if a != b]
        assert not different, (answer.name, different, [made[i] for i in different])
