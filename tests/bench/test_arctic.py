"""How the peer's drafts are counted; a stand-in that drafts what is on its list answers the pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drafting.chain import Chain
from drafting.cost import CostCurve
from drafting.replay import Trace, play
from tests.bench.arctic import DEFAULTS, Arctic, Settings, Tree, fixed, priced

_PACKAGE = '''
from types import SimpleNamespace


class SuffixDecodingCache:
    """Its prompt is the list: after each token t it proposes t + 1 and t + 2, as a path or as a fork."""

    def __init__(self, depth):
        self.depth, self.active = depth, set()

    def start_request(self, answer, prompt):
        assert answer not in self.active and type(prompt) is list
        self.active.add(answer)

    def stop_request(self, answer):
        self.active.remove(answer)

    def add_active_response(self, answer, tokens):
        assert answer in self.active and tokens

    def speculate(self, answer, context, *, max_spec_tokens, min_token_prob, use_tree_spec, **rest):
        assert set(rest) == {"max_spec_factor", "max_spec_offset"} and len(context) <= self.depth + 1
        last = context[-1]
        return SimpleNamespace(
            token_ids=[last + 1, last + 2][:max_spec_tokens],
            parents=[-1, -1 if use_tree_spec else 0][:max_spec_tokens],
            probs=[1.0, 0.25][:max_spec_tokens],
        )
'''


@pytest.fixture
def arctic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arctic]:
    package = tmp_path / "arctic_inference" / "suffix_decoding"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    peer = Arctic(Path(sys.executable))
    yield peer
    peer.close()


def test_a_path_and_a_fork(arctic: Arctic) -> None:
    trace = Trace("by hand", "steps", [9, 10], [11, 12, 14, 16, 17])
    arctic.forget(DEFAULTS)
    # 11 12 and 14 for free; 15 was wrong, 16; the last token is never drafted
    assert fixed(arctic, trace) == [(2, 2), (1, 0), (0, 0)]
    arctic.forget(Settings(use_tree_spec=True))
    # of each fork one side is right at most, but the other one may be
    assert fixed(arctic, trace) == [(2, 1), (2, 1), (0, 0)]


def test_what_passes_cost() -> None:
    outcome = priced([(2, 2), (1, 0), (0, 0)], {1: 1.0, 2: 1.5, 3: 1.75})
    assert (outcome.passes, outcome.drafted, outcome.accepted, outcome.time) == (3, 3, 2, 4.25)


def test_a_tree_holds_what_follows_from_its_root() -> None:
    tree = Tree([1, 2, 1, 3], [-1, -1, 1, 2], [1.0] * 4)
    assert [tree.right(said) for said in ([2, 1, 3, 4], [2, 3], [1, 1], [3], [])] == [3, 1, 1, 0, 0]


def test_as_a_drafter_of_ours(arctic: Arctic) -> None:
    """In a chain it drafts the same, and says how sure it is of each token after those before."""
    arctic.forget(DEFAULTS)
    arctic.begin([9, 10])
    draft = arctic.propose(8, lambda distribution, position: 0)
    assert draft.tokens == [11, 12] and draft.confidence == [0.98, 0.25]
    outcome = play(
        Trace("by hand", "steps", [9, 10], [11, 12, 14, 16, 17]), Chain([arctic]), CostCurve({1: 1})
    )
    assert (outcome.passes, outcome.drafted, outcome.accepted) == (3, 3, 2)
