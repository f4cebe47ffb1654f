"""Hidden states out of a target and into a drafter head, held to the weights in their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from native import staging
from native.context import Context, ContextOptions
from native.errors import ContextError, DecodeAborted, DecodeError, NativeError
from native.head_context import HeadContext
from native.model import Model
from tests.models.eagle3 import N_DRAFT, write_eagle3
from tests.models.gemma3 import write_gemma3
from tests.tiny_gguf import Tiny, write_llama

SIZES = Tiny(n_layer=3)
LAYERS = (0, 1, 2)
OPTIONS = ContextOptions(n_ctx=128, n_batch=32, n_seq_max=2, kv_type="f32", flash_attention="off")
TOKENS = [7, 300, 41, 5, 260, 261, 9]


def tensor(path: Path, name: str) -> npt.NDArray[np.float32]:
    return next(np.asarray(t.data) for t in gguf.GGUFReader(path).tensors if t.name == name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("head")
    head = write_eagle3(folder / "head.gguf", SIZES, target_layers=LAYERS)
    return write_llama(folder / "target.gguf", SIZES), head


@pytest.fixture
def target(files: tuple[Path, Path]) -> Iterator[Context]:
    with Model(files[0]) as model:
        yield Context(model, OPTIONS)


@pytest.fixture
def head(files: tuple[Path, Path], target: Context) -> Iterator[HeadContext]:
    with Model(files[1]) as model:
        yield HeadContext(model, OPTIONS, target)


def test_hidden_states_are_of_every_row_in_the_order_of_the_pass(
    files: tuple[Path, Path], target: Context
) -> None:
    embeddings = tensor(files[0], "token_embd.weight")
    target.keep_hidden(LAYERS)
    passes = [
        [(0, TOKENS[0], 0, False), (1, TOKENS[1], 0, True), (1, TOKENS[2], 1, False)],
        [(1, TOKENS[3], 2, True), (0, TOKENS[4], 1, True)],
        [(0, TOKENS[5], 2, False)],
    ]
    for rows in passes:
        target.decode(rows)
        lowest, *others = target.hidden()
        assert np.array_equal(lowest, embeddings[[token for _, token, _, _ in rows]])
        assert all(layer.shape == lowest.shape and not np.array_equal(layer, lowest) for layer in others)


def test_the_logits_are_those_without_hidden_states(target: Context) -> None:
    rows = [(0, token, i, True) for i, token in enumerate(TOKENS)]
    target.decode(rows)
    plain = target.logits().copy()
    target.forget(0)
    target.keep_hidden(LAYERS)
    target.decode(rows)
    assert np.array_equal(target.logits(), plain)


def test_layers_that_are_not_there_are_refused(target: Context, tmp_path: Path) -> None:
    for layers in ((0, 4), (-1,)):
        with pytest.raises(NativeError, match="no layers"):
            target.keep_hidden(layers)
    with Model(write_gemma3(tmp_path / "gemma3.gguf")) as model:
        context = Context(model, OPTIONS)
        with pytest.raises(NativeError, match="gemma3"):
            context.keep_hidden((1,))
        context.decode([(0, 5, 0, True)])


def test_a_head_encodes_features_by_its_own_matrix(files: tuple[Path, Path], head: HeadContext) -> None:
    assert head.target_layers == LAYERS
    features = np.random.default_rng(1).standard_normal((5, 3 * SIZES.n_embd)).astype(np.float32)
    expected = features @ tensor(files[1], "fc.weight").T
    assert np.allclose(head.encode(features), expected, atol=1e-4)
    head.decode_states([(0, 9, 0, True)], features[:1, : SIZES.n_embd])
    assert np.allclose(head.encode(features), expected, atol=1e-4), "also with something in its KV cache"
    assert head.length(0) == 1


def test_a_head_says_only_what_its_vocabulary_maps_to(files: tuple[Path, Path], head: HeadContext) -> None:
    states = np.random.default_rng(2).standard_normal((3, SIZES.n_embd)).astype(np.float32)
    head.decode_states([(0, TOKENS[i], i, True) for i in range(3)], states)
    logits = head.logits()
    assert logits.shape == (3, SIZES.n_vocab)
    said = np.flatnonzero(np.isfinite(logits[-1]))
    assert np.array_equal(said, tensor(files[1], "d2t"))
    assert len(said) == N_DRAFT
    # What it hands on is what its output layer read: norm and matrix give the logits again.
    last = head.states()[-1].astype(np.float64)
    normed = last / np.sqrt((last**2).mean() + 1e-5)
    assert np.allclose(tensor(files[1], "output.weight") @ normed, logits[-1][said], atol=1e-3)


def test_rows_in_several_passes_are_those_of_one(head: HeadContext) -> None:
    states = np.random.default_rng(3).standard_normal((6, SIZES.n_embd)).astype(np.float32)
    rows = [(0, TOKENS[i], i, True) for i in range(6)]
    head.decode_states(rows, states)
    at_once = head.logits()[-1].copy()
    assert head.rewind(0, 2)
    head.decode_states([(*row[:3], False) for row in rows[2:5]], states[2:5])
    with pytest.raises(NativeError, match="left no logits"):
        head.logits()
    head.decode_states(rows[5:], states[5:])
    assert np.allclose(head.logits()[-1], at_once, atol=1e-4)


def test_what_a_head_cannot_take_is_an_error_and_nothing_worse(head: HeadContext) -> None:
    state = np.zeros((1, SIZES.n_embd), dtype=np.float32)
    with pytest.raises(DecodeError, match="token 512"):
        head.decode_states([(0, 512, 0, True)], state)
    with pytest.raises(NativeError, match="all rows of a pass or of none"):
        head.decode_states([(0, 5, 0, False), (0, 6, 1, True)], np.repeat(state, 2, axis=0))
    with pytest.raises(NativeError, match="1 hidden states for 2 rows"):
        head.decode_states([(0, 5, 0, True), (0, 6, 1, True)], state)
    with pytest.raises(DecodeError, match="takes no row of 7 values"):
        head.encode(np.zeros((1, 7), dtype=np.float32))
    head.abort()
    with pytest.raises(DecodeAborted):
        head.decode_states([(0, 5, 0, True)], state)
    with pytest.raises(DecodeAborted):
        head.encode(np.zeros((1, 3 * SIZES.n_embd), dtype=np.float32))
    head.allow()
    assert head.length(0) == 0
    head.decode_states([(0, 5, 0, True)], state)


def test_a_head_needs_a_target(files: tuple[Path, Path]) -> None:
    with Model(files[1]) as model, pytest.raises(ContextError):
        Context(model, OPTIONS)


def test_another_build_of_the_library_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, files: tuple[Path, Path], target: Context
) -> None:
    name = "get_embeddings_layer_inp"
    gone = staging._SYMBOLS[name]._replace(itanium="_Z4goneP13llama_context", microsoft="?gone@@YAXXZ")
    monkeypatch.setitem(staging._SYMBOLS, name, gone)
    staging.function.cache_clear()
    with Model(files[1]) as model, pytest.raises(NativeError, match="lacks llama_get_embeddings_layer_inp"):
        HeadContext(model, OPTIONS, target)
