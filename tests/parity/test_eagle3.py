"""Our EAGLE-3 drafter drafts what llama-server drafts with the same files and settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.neural import neural_drafter
from app.protocol import EngineOptions
from drafting.distribution import Distribution
from drafting.eagle3 import Eagle3
from drafting.llama_target import LlamaTarget
from drafting.parameters import NeuralParameters
from drafting.target import Row
from model_store.starter import starter_path
from native.context import Context, ContextOptions
from native.model import Model
from tests.parity.__main__ import HEAD, OPTIONS
from tests.parity.recording import SETTINGS, Answer, Pass, load


class Replayed:
    """The starter goes through recorded answers, and its head drafts along."""

    def __init__(self, model: Model, head: Model) -> None:
        sizes = ContextOptions(n_ctx=OPTIONS.n_ctx, n_batch=OPTIONS.n_batch, n_outputs=16, n_threads=1)
        self.target = LlamaTarget(Context(model, sizes))
        drafter = neural_drafter("eagle3", head, self.target, EngineOptions())
        assert isinstance(drafter, Eagle3)
        self.drafter = drafter

    def drafts(self, answer: Answer) -> list[Pass]:
        """What is drafted where the server drafted for the passes that were recorded."""
        tokens = [*answer.prompt, answer.tokens[0]]
        self.target.forget(0)
        for start in range(0, len(answer.prompt), self.target.n_batch):
            piece = answer.prompt[start : start + self.target.n_batch]
            self.target.decode([Row(0, token, start + i, False) for i, token in enumerate(piece)])
        # The server reads every prompt from its beginning; what another batch left would round otherwise.
        self.drafter.begin([])
        self.drafter.begin(tokens)
        drafts: list[Pass] = []
        while len(drafts) < len(answer.passes):
            at = len(tokens) - len(answer.prompt)
            draft = self.drafter.propose(16, greedy)
            known = answer.passes[len(drafts)] if draft else Pass((), 0)
            if draft:
                drafts.append(Pass(tuple(draft.tokens), known.accepted))
            rows = [tokens[-1], *known.drafted]
            computed = len(tokens) - 1
            self.target.decode([Row(0, token, computed + i, True) for i, token in enumerate(rows)])
            said = answer.tokens[at : at + known.accepted + 1]
            assert said, "the server drafted where we had nothing to say"
            tokens += said
            self.target.rewind(0, len(tokens) - 1)
            self.drafter.commit(said)
        return drafts


def greedy(distribution: Distribution, position: int) -> int:
    return int(distribution.ids[distribution.probs.argmax()])


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
        drafts = replayed.drafts(answer)
        different = [i for i, (a, b) in enumerate(zip(drafts, answer.passes, strict=True)) if a != b]
        assert not different, (answer.name, different, [drafts[i] for i in different])
