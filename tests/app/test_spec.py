"""``--spec``: one line for what drafts, and one line for what is wrong with it."""

from __future__ import annotations

import argparse

import pytest

from app.commands.spec import parse_spec, spec_help
from app.protocol import DRAFTERS, DraftingParams
from drafting.parameters import CacheParameters, LinkParameters, MapParameters, NeuralParameters


def test_auto_and_off() -> None:
    assert parse_spec("auto") == DraftingParams()
    assert parse_spec("off").links == ()


@pytest.mark.parametrize(
    "text", ["simple:n=8,m=24,map-k", "simple:n=8:m=24, map-k", "simple:n = 8,m=24,map-k"]
)
def test_a_list_with_parameters(text: str) -> None:
    assert parse_spec(text) == DraftingParams(
        mode="manual",
        links=("simple", "map-k"),
        parameters=LinkParameters(simple=MapParameters(n=8, m=24)),
    )


def test_the_order_is_kept_and_each_link_has_its_own() -> None:
    params = parse_spec("draft:n_max=8,p_min=.6,cache:ngram-max=2,mod,draft")
    assert params.links == ("draft", "cache", "mod")
    assert params.parameters.draft == NeuralParameters(n_max=8, p_min=0.6)
    assert params.parameters.cache == CacheParameters(ngram_max=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("magic", "unknown drafter 'magic' (choose from auto, off, cache, simple"),
        ("", "unknown drafter ''"),
        ("simple,", "unknown drafter ''"),
        ("n=8", "'n=8' is no drafter and no NAME=NUMBER behind one"),
        ("simple:map-k", "'map-k' is no drafter and no NAME=NUMBER behind one"),
        ("auto,simple", "unknown drafter 'auto'"),
        ("simple:x=1", "simple has no parameter 'x' (it has n, m, min_hits)"),
        ("simple:n=0", "simple: n is a whole number from 1 to 64, not '0'"),
        ("map-k:n=1.5", "map-k: n is a whole number from 1 to 64, not '1.5'"),
        ("suffix:p_min=nan", "suffix: p_min is a number from 0 to 1, not 'nan'"),
        ("mod:n_max=5", "mod: n_min (48) is larger than n_max (5)"),
        ("cache:ngram_min=3,ngram_max=2", "cache: ngram_min (3) is larger than ngram_max (2)"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        parse_spec(text)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_the_help_names_every_drafter_and_shows_what_works() -> None:
    lines = spec_help().splitlines()
    for name in DRAFTERS:
        line = next(line for line in lines if line.split()[:1] == [name])
        assert parse_spec(f"{name}:{':'.join(line.split()[1:])}").parameters == LinkParameters()
    for line in lines:
        if "--spec " in line and line.startswith("  --"):
            assert parse_spec(line.split()[1]).mode == "manual"
