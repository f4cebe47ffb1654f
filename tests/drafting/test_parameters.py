"""Parameters: what each of them changes, and that nothing is learned again where none did."""

from __future__ import annotations

import msgspec
import pytest

from drafting.drafter import Draft
from drafting.history import History
from drafting.ngram_cache import NgramCache
from drafting.ngram_map import NgramMap, NgramMapK4V, NgramSimple
from drafting.ngram_mod import ModTable, NgramMod
from drafting.parameters import (
    AUTOMATIC,
    CacheParameters,
    LinkParameters,
    MapParameters,
    ModParameters,
    NeuralParameters,
    SuffixParameters,
)
from drafting.suffix import Suffix
from tests.drafting.test_chain import no_draw

LINKS = ("cache", "simple", "map-k", "map-k4v", "mod", "suffix", "draft", "eagle3", "mtp", "dflash", "dspark")
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3]


def test_names_and_defaults_are_llama_cpps() -> None:
    parameters = LinkParameters()
    for name in ("simple", "map-k", "map-k4v"):
        assert msgspec.to_builtins(parameters.of(name)) == {"n": 12, "m": 48, "min_hits": 1}
    assert msgspec.to_builtins(parameters.mod) == {"n": 24, "n_min": 48, "n_max": 64}
    assert parameters.draft == parameters.eagle3 == parameters.mtp == NeuralParameters(n_max=3, p_min=0.0)
    assert parameters.dflash == parameters.dspark == parameters.draft
    assert (parameters.cache.ngram_min, parameters.cache.ngram_max) == (1, 4)
    assert set(msgspec.to_builtins(parameters)) == set(LINKS)


@pytest.mark.parametrize(
    "fields",
    [
        {"simple": {"n": 0}},
        {"map-k": {"m": 65}},
        {"map-k4v": {"min_hits": "2"}},
        {"mod": {"n_min": 20, "n_max": 10}},
        {"cache": {"ngram_min": 3, "ngram_max": 2}},
        {"suffix": {"p_min": 1.5}},
        {"draft": {"n_max": 0}},
    ],
    ids=str,
)
def test_what_is_out_of_range_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, LinkParameters)


@pytest.mark.parametrize("kind", [NgramSimple, NgramMap, NgramMapK4V])
def test_maps(kind: type[NgramMap]) -> None:
    drafter = kind()
    drafter.begin(TEXT)
    assert not drafter.propose(8, no_draw)
    drafter.configure(MapParameters(n=3, m=2))
    assert drafter.propose(8, no_draw).tokens == [4, 5]
    drafter.configure(MapParameters(n=3, m=48))
    assert drafter.propose(4, no_draw).tokens == [4, 5, 6, 7]
    drafter.configure(MapParameters(n=3, min_hits=2))
    assert not drafter.propose(8, no_draw)


def test_an_index_is_built_again_only_for_another_n() -> None:
    history = History()
    first, second = NgramSimple(history), NgramMap(history)
    history.begin(TEXT)
    for drafter in (first, second):
        drafter.configure(MapParameters(n=3))
        drafter.propose(4, no_draw)
    index = history.index(3)
    for drafter in (first, second):
        drafter.configure(MapParameters(n=3, m=7, min_hits=2))
        drafter.propose(4, no_draw)
    assert history.index(3) is index
    second.configure(MapParameters(n=2))
    second.propose(4, no_draw)
    assert first.propose(4, no_draw) == Draft() and history.index(3) is not index
    first.configure(MapParameters(n=2))
    assert set(history._indexes) == {2}


def test_cache() -> None:
    drafter = NgramCache()
    drafter.begin([7, 8, 1, 5, 2, 8, 1, 5, 9, 8, 1, 6, 9, 8, 1])
    assert drafter.propose(1, no_draw).tokens == [6]  # after 9 8 1
    drafter.configure(CacheParameters(ngram_max=2))
    assert drafter.propose(1, no_draw).tokens == [5]  # after 8 1, twice of three times
    drafter.configure(CacheParameters(ngram_min=4))
    assert not drafter.propose(1, no_draw)
    drafter.configure(CacheParameters(p_min=0.99))
    assert not drafter.propose(1, no_draw)
    drafter.configure(CacheParameters())
    assert drafter.propose(1, no_draw).tokens == [6]


def test_mod() -> None:
    table = ModTable(n=4, bits=16)
    drafter = NgramMod(table)
    text = [*range(20), *range(8)]
    drafter.configure(ModParameters(n=4, n_min=3, n_max=5))
    drafter.begin(text)
    assert drafter.propose(64, no_draw).tokens == [8, 9, 10, 11, 12]
    used = table._next
    drafter.configure(ModParameters(n=4, n_min=6, n_max=8))
    assert table._next is used  # everyone's memory stays
    drafter.begin(text)
    assert drafter.propose(64, no_draw).tokens == [8, 9, 10, 11, 12, 13, 14, 15]
    drafter.configure(ModParameters(n=2, n_min=1, n_max=2))
    drafter.begin(text)
    assert drafter.propose(64, no_draw).tokens == [8, 9]


def test_suffix() -> None:
    drafter = Suffix()
    drafter.begin([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 3, 1, 4])
    whole = drafter.propose(64, no_draw)
    drafter.configure(SuffixParameters(n_max=2, p_min=0.0))
    assert drafter.propose(64, no_draw).tokens == whole.tokens[:2]
    drafter.configure(SuffixParameters(n_max=48, p_min=0.5))
    sure = drafter.propose(64, no_draw)
    assert 0 < len(sure) < len(whole)
    assert sure.tokens == whole.tokens[: len(sure)]


def test_automatic_mode_leaves_the_length_to_the_controller() -> None:
    assert AUTOMATIC.suffix.p_min == AUTOMATIC.cache.p_min == 0.02  # no machine gains by less likely ones
    assert AUTOMATIC.draft == AUTOMATIC.eagle3 == NeuralParameters(n_max=64, p_min=0.75)
