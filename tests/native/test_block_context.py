"""A block drafter's context, held to the weights in its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from native.block_context import BlockContext
from native.context import Context, ContextOptions
from native.errors import DecodeAborted, DecodeError
from native.model import Model
from tests.models.dflash import MASK, write_dflash
from tests.tiny_gguf import Tiny, write_llama

SIZES = Tiny(n_layer=3)
LAYERS = (0, 2)
OPTIONS = ContextOptions(n_ctx=128, n_batch=16, kv_type="f32", flash_attention="off")
BLOCK = [7, MASK, MASK, MASK]


def tensor(path: Path, name: str) -> npt.NDArray[np.float32]:
    return next(np.asarray(t.data) for t in gguf.GGUFReader(path).tensors if t.name == name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("block")
    head = write_dflash(folder / "head.gguf", Tiny(n_layer=1), target_layers=LAYERS, markov=True)
    return write_llama(folder / "target.gguf", SIZES), head


@pytest.fixture
def blocks(files: tuple[Path, Path]) -> Iterator[BlockContext]:
    with Model(files[0]) as target, Model(files[1]) as head:
        yield BlockContext(head, OPTIONS, Context(target, OPTIONS))
        head.close()


def features(rows: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((rows, len(LAYERS) * SIZES.n_embd)).astype(np.float32)


def block_logits(blocks: BlockContext, first: int, tokens: list[int] = BLOCK) -> npt.NDArray[np.float32]:
    blocks.decode([(0, token, first + i, True) for i, token in enumerate(tokens)])
    logits = blocks.logits().copy()
    blocks.rewind(0, first)
    return logits


def test_what_the_file_says(blocks: BlockContext) -> None:
    assert (blocks.block_size, blocks.mask, blocks.target_layers) == (8, MASK, LAYERS)
    assert blocks.drafts_from_anchor


def test_hidden_states_are_remembered_where_they_are_put(blocks: BlockContext) -> None:
    rows = features(12)
    blocks.inject(rows, 0)
    assert blocks.length(0) == 12
    at_once = block_logits(blocks, 12)
    assert np.isfinite(at_once).all()
    # In pieces, with a wrong end that was rewound.
    blocks.forget(0)
    blocks.inject(rows[:5], 0)
    blocks.inject(rows[:3], 5)
    blocks.rewind(0, 5)
    blocks.inject(rows[5:], 5)
    assert np.allclose(block_logits(blocks, 12), at_once, atol=1e-4)
    blocks.forget(0)
    blocks.inject(np.roll(rows, 1, axis=0), 0)
    assert not np.allclose(block_logits(blocks, 12), at_once, atol=1e-2)


def test_a_row_of_a_block_sees_the_rows_behind_it_unless_the_file_forbids_it(
    files: tuple[Path, Path], blocks: BlockContext, tmp_path: Path
) -> None:
    file = write_dflash(tmp_path / "causal.gguf", Tiny(n_layer=1), target_layers=LAYERS, causal=True)
    with Model(files[0]) as target, Model(file) as head:
        causal = BlockContext(head, OPTIONS, Context(target, OPTIONS))
        for context, sees in ((blocks, True), (causal, False)):
            context.inject(features(4), 0)
            some, others = block_logits(context, 4), block_logits(context, 4, [*BLOCK[:3], 9])
            assert np.allclose(some[0], others[0], atol=1e-4) != sees
        head.close()


def test_confidences_are_the_heads(files: tuple[Path, Path], blocks: BlockContext) -> None:
    blocks.inject(features(4), 0)
    blocks.decode([(0, token, 4 + i, True) for i, token in enumerate(BLOCK)])
    said = blocks.confidences()
    assert len(said) == 4 and all(0.0 < value < 1.0 for value in said)
    assert len({round(value, 4) for value in said}) > 1
    # The first row: its hidden state gives its logits through the target's output, less the Markov bias.
    w1, w2 = (tensor(files[1], f"markov_{name}.weight") for name in ("w1", "w2"))
    base = blocks.logits()[0] - w2 @ w1[BLOCK[0]]
    hidden = np.linalg.lstsq(tensor(files[0], "output.weight"), base, rcond=None)[0]
    weight = tensor(files[1], "conf_proj.weight").ravel()
    odds = weight @ np.concatenate([hidden, w1[BLOCK[0]]])
    assert said[0] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-3)


def test_what_it_cannot_take_is_an_error_and_nothing_worse(blocks: BlockContext) -> None:
    with pytest.raises(DecodeError, match="takes no hidden state of 7 values"):
        blocks.inject(np.zeros((1, 7), dtype=np.float32), 0)
    with pytest.raises(DecodeError, match="a pass of 17 hidden states"):
        blocks.inject(features(17), 0)
    blocks.abort()
    with pytest.raises(DecodeAborted):
        blocks.inject(features(2), 0)
    blocks.allow()
    assert blocks.length(0) == 0
    blocks.inject(features(2), 0)
    assert blocks.length(0) == 2
