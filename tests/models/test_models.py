"""Each tiny model really loads, decodes, and is what its family is."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from llama_cpp import llama_cpp as lib
from llama_cpp import llama_cpp_ext as ext

from model_store.classify import classify
from model_store.gguf_header import read_header
from native.context import Context, ContextOptions
from native.model import Model
from tests.models.dflash import write_dflash
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import WINDOW, write_gemma3
from tests.models.gemma4 import write_gemma4
from tests.models.lfm2 import write_lfm2
from tests.models.mamba import write_mamba
from tests.models.qwen3 import write_qwen3
from tests.models.qwen35 import write_qwen35
from tests.models.split import write_split
from tests.models.step35 import write_step35
from tests.tiny_gguf import Tiny, write_llama

_OPTIONS = ContextOptions(n_ctx=256, n_batch=64, kv_type="f32", flash_attention="off")
_LARGEST = 1_000_000  # bytes


def _target(path: Path) -> Path:
    return write_llama(path, Tiny(n_layer=4))


def _draft(path: Path) -> Path:
    return write_llama(path, Tiny(n_layer=1, seed=5))


CHAT: dict[str, Callable[[Path], Path]] = {
    "llama": _target,
    "llama draft": _draft,
    "qwen3": write_qwen3,
    "gemma3": write_gemma3,
    "gemma4": write_gemma4,
    "qwen35": write_qwen35,
    "step35": lambda path: write_step35(path, heads=2),
    "lfm2": write_lfm2,
    "mamba": write_mamba,
    "split": write_split,
}


@pytest.mark.parametrize("family", CHAT)
def test_a_chat_model_loads_whole_and_says_many_different_tokens(tmp_path: Path, family: str) -> None:
    path = CHAT[family](tmp_path / "tiny.gguf")
    assert path.stat().st_size < _LARGEST
    assert classify(read_header(path)).kind == "chat"
    with Model(path) as model, Context(model, _OPTIONS) as context:
        # next-n layers are only read where somebody asks for them
        unread = [f"unused tensor blk.{model.n_layer + head}." for head in range(model.n_layer_nextn)]
        assert [line for line in model.load_log if not any(part in line for part in unread)] == []
        context.decode([(0, 5 + i, i, i == 19) for i in range(20)])
        said = []
        for pos in range(20, 80):
            logits = context.logits()[0]
            assert np.isfinite(logits).all()
            assert 0.5 < logits.std() < 20
            said.append(int(logits.argmax()))
            context.decode([(0, said[-1], pos, True)])
        assert len(set(said)) > 10


@pytest.mark.parametrize(
    ("family", "recurrent", "hybrid", "window", "heads"),
    [
        ("llama", False, False, 0, 0),
        ("qwen3", False, False, 0, 0),
        ("gemma3", False, False, WINDOW, 0),
        ("gemma4", False, False, WINDOW, 0),
        ("qwen35", False, True, 0, 1),
        ("step35", False, False, WINDOW, 2),
        ("lfm2", False, True, 0, 0),
        ("mamba", True, False, 0, 0),
        ("split", False, False, 0, 0),
    ],
)
def test_llama_cpp_knows_each_family(
    tmp_path: Path, family: str, recurrent: bool, hybrid: bool, window: int, heads: int
) -> None:
    with Model(CHAT[family](tmp_path / "tiny.gguf")) as model:
        assert (model.is_recurrent, model.is_hybrid) == (recurrent, hybrid)
        assert (model.n_swa, model.n_layer_nextn) == (window, heads)


def test_a_split_model_has_its_tensors_in_two_files(tmp_path: Path) -> None:
    first = write_split(tmp_path / "tiny.gguf")
    second = first.with_name("tiny-00002-of-00002.gguf")
    assert [path.name for path in sorted(tmp_path.iterdir())] == [first.name, second.name]
    headers = [read_header(path) for path in (first, second)]
    assert all(header.tensors for header in headers)
    whole = read_header(_target(tmp_path / "whole.gguf"))
    assert {t.name for header in headers for t in header.tensors} == {t.name for t in whole.tensors}


HEADS: dict[str, Callable[[Path], Path]] = {
    "eagle3": write_eagle3,
    "eagle3 full": lambda path: write_eagle3(path, reduced=False),
    "dflash": write_dflash,
    "dspark": lambda path: write_dflash(path, markov=True),
    "dspark without confidence": lambda path: write_dflash(path, markov=True, confidence=False),
}


@pytest.mark.parametrize("family", HEADS)
def test_a_head_loads_whole_and_reads_hidden_states_of_three_layers(tmp_path: Path, family: str) -> None:
    path = HEADS[family](tmp_path / "head.gguf")
    target = _target(tmp_path / "target.gguf")
    assert path.stat().st_size < _LARGEST
    assert classify(read_header(path)).kind == "drafter"
    with Model(target) as model, Context(model, _OPTIONS) as context, Model(path) as head:
        assert head.load_log == ()
        hidden = np.random.default_rng(3).standard_normal((5, 3 * model.n_embd)).astype(np.float32)
        fused = _encode(head, context, hidden)
        assert np.isfinite(fused).all()
        assert fused.std() > 0.1
        assert not np.allclose(fused[0], fused[1])


def _encode(head: Model, target: Context, hidden: np.ndarray) -> np.ndarray:
    """The head's encoder: hidden states of several layers in, (rows, n_embd) out."""
    params = lib.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = 256, 64, 64
    params.ctx_other = target.handle
    context = lib.llama_init_from_model(head.handle, params)
    batch = lib.llama_batch_init(len(hidden), hidden.shape[1], 1)
    try:
        ext.llama_set_embeddings_nextn(context, True, False)
        ctypes.memmove(batch.embd, hidden.ctypes.data, hidden.nbytes)
        batch.n_tokens = len(hidden)
        for i in range(len(hidden)):
            batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = i, 1, 0, True
        assert lib.llama_encode(context, batch) == 0
        rows = ext.llama_get_embeddings_nextn(context)
        return np.ctypeslib.as_array(rows, (len(hidden), head.n_embd)).copy()
    finally:
        lib.llama_batch_free(batch)
        lib.llama_free(context)
