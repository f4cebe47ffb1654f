"""A sequence that was saved and put back computes what it would have computed in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from native.context import Context
from native.model import Model
from tests.native.test_rewind import KINDS, OTHER, RECURRENT, TEXT, expect, go_on, read, rows
from tests.native.test_rewind import context as context  # fixtures for these tests too
from tests.native.test_rewind import kind as kind

MUCH = 1 << 30


def test_it_goes_on_where_it_was(context: Context) -> None:
    read(context, TEXT[:300])
    saved = context.save(0, MUCH)
    assert saved is not None and saved.length == 300
    assert saved.n_bytes >= saved.data.nbytes > 0
    context.forget(0)
    read(context, OTHER[:100])
    assert context.restore(0, saved) == 300 == context.length(0)
    context.decode(rows(TEXT[300:310], 300))
    expect(context, TEXT[:310])


def test_it_can_be_cut(context: Context, kind: str) -> None:
    """A recurrent memory goes back to the states that it kept. Of a sliding window no more is copied than
    the window, even where more is kept."""
    read(context, TEXT[:300])
    saved = context.save(0, MUCH)
    assert saved is not None
    context.forget(0)
    read(context, OTHER[:100])
    context.restore(0, saved)
    left = go_on(context, [*TEXT[:270], *OTHER[:30]], 270)
    assert left == saved.usable(270) and saved.usable(300) == 300
    assert left == (256 if kind in RECURRENT else 270 if kind == "attention" else 0)


def test_attention_is_put_back_to_the_last_bit(tmp_path: Path) -> None:
    write, options = KINDS["attention"]
    with Model(write(tmp_path / "tiny.gguf")) as model, Context(model, options) as context:
        read(context, TEXT[:300])
        saved = context.save(0, MUCH)
        assert saved is not None
        context.decode(rows(TEXT[300:310], 300))
        there = context.logits()[-1].copy()
        read(context, OTHER[:50], 310)
        assert context.restore(0, saved) == 300
        context.decode(rows(TEXT[300:310], 300))
        np.testing.assert_array_equal(context.logits()[-1], there)


@pytest.mark.parametrize("kind", ["attention", "sliding window", "hybrid with copies"])
def test_another_sequence_takes_it_beside_others(kind: str, tmp_path: Path) -> None:
    write, options = KINDS[kind]
    several = replace(options, n_seq_max=3)
    with Model(write(tmp_path / "tiny.gguf")) as model, Context(model, several) as context:
        read(context, TEXT[:200])
        saved = context.save(0, MUCH)
        assert saved is not None
        context.forget(0)
        context.decode([(1, token, place, False) for place, token in enumerate(OTHER[:60])])
        assert context.restore(2, saved) == 200
        context.decode(
            [(2, TEXT[200], 200, True), (1, OTHER[60], 60, True)],
        )
        said = context.logits().copy()
        for row, tokens in enumerate((TEXT[:201], OTHER[:61])):
            with Context(model, options) as fresh:
                read(fresh, tokens)
                np.testing.assert_allclose(said[row], fresh.logits()[-1], atol=2e-4)


def test_nothing_that_is_too_large_or_nothing(context: Context) -> None:
    nothing = context.save(0, MUCH)
    assert nothing is None or nothing.length == 0
    read(context, TEXT[:100])
    assert context.save(0, 100) is None
    assert context.length(0) == 100
