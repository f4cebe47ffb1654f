"""A target goes through a recorded answer again, and a drafter of ours drafts along."""

from __future__ import annotations

from drafting.distribution import Distribution
from drafting.llama_target import LlamaTarget
from drafting.neural import NeuralDrafter
from drafting.target import Row
from tests.parity.recording import Answer, Pass

_LONGEST = 16


def drafts(target: LlamaTarget, drafter: NeuralDrafter, answer: Answer) -> list[Pass]:
    """What is drafted where the server drafted for the passes that were recorded."""
    tokens = [*answer.prompt, answer.tokens[0]]
    target.forget(0)
    for start in range(0, len(answer.prompt), target.n_batch):
        piece = answer.prompt[start : start + target.n_batch]
        target.decode([Row(0, token, start + i, False) for i, token in enumerate(piece)])
    # The server reads every prompt from its beginning; what another batch left would round otherwise.
    drafter.begin([])
    drafter.begin(tokens)
    made: list[Pass] = []
    while len(made) < len(answer.passes):
        at = len(tokens) - len(answer.prompt)
        draft = drafter.propose(_LONGEST, greedy)
        known = answer.passes[len(made)] if draft else Pass((), 0)
        if draft:
            made.append(Pass(tuple(draft.tokens), known.accepted))
        rows = [tokens[-1], *known.drafted]
        computed = len(tokens) - 1
        target.decode([Row(0, token, computed + i, True) for i, token in enumerate(rows)])
        said = answer.tokens[at : at + known.accepted + 1]
        assert said, "the server drafted where we had nothing to say"
        tokens += said
        target.rewind(0, len(tokens) - 1)
        drafter.commit(said)
    return made


def greedy(distribution: Distribution, position: int) -> int:
    return int(distribution.ids[distribution.probs.argmax()])
