"""What is said about memory before a model is loaded, held to what loading it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app import paths
from app.protocol import EngineOptions
from app.worker.contexts import target_context
from model_store.bundled import bundled_drafter
from model_store.check import read_model_file
from model_store.fit import KvType, Loading, MemoryNeed, drafter_need, target_need
from native.context import Context, ContextOptions, Memory
from native.head_context import HeadContext
from native.model import Model
from tests.models.eagle3 import write_eagle3
from tests.models.gemma3 import write_gemma3
from tests.models.lfm2 import write_lfm2
from tests.models.mamba import write_mamba
from tests.models.mtp import MTP_KINDS
from tests.models.qwen35 import write_qwen35
from tests.models.step35 import write_step35
from tests.tiny_gguf import Tiny, write_llama

LONGEST_DRAFT = 64
FLOAT = 4
LOG_STEP = 0.01 * 2**20  # bytes: llama.cpp logs sizes in hundredths of a MiB

KINDS: dict[str, Callable[[Path], Path]] = {
    "attention": write_llama,
    "sliding window": write_gemma3,
    "hybrid": write_qwen35,
    "several heads": write_step35,
    "convolutions": write_lfm2,
    "recurrent": write_mamba,
}


@contextmanager
def loaded(path: Path, options: EngineOptions) -> Iterator[Context]:
    with Model(path) as model:
        made = target_context(model, options, options.n_ctx, LONGEST_DRAFT)
        with made.context as context:
            yield context


def logits(context: Context, rows: int) -> int:
    """Room for the logits of a pass, which llama.cpp takes when they are first asked for."""
    return (rows - 1) * context.model.n_vocab * FLOAT


def share(need: MemoryNeed, *, weights: int, memory: Memory, later: int) -> float:
    """What is said over what is taken, tables apart."""
    return (need.total - need.tables) / (weights + memory.kv + memory.compute + later)


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("n_ctx", [512, 2048, 8192])
def test_the_starter_takes_what_is_said_within_a_tenth(starter: Path, n_ctx: int, kv_type: KvType) -> None:
    need = target_need(read_model_file(starter), Loading(n_ctx=n_ctx, kv_type=kv_type))
    with loaded(starter, EngineOptions(n_ctx=n_ctx, kv_type=kv_type)) as context:
        memory, weights = context.memory, context.model.size_bytes
        later = logits(context, context.n_outputs)
    assert need.weights == weights
    assert need.cache == pytest.approx(memory.kv, abs=LOG_STEP)
    assert need.compute == pytest.approx(memory.compute + later, rel=0.1)
    assert share(need, weights=weights, memory=memory, later=later) == pytest.approx(1, abs=0.03)


def test_attention_that_is_not_flash_takes_what_is_said_within_a_tenth(starter: Path) -> None:
    need = target_need(read_model_file(starter), Loading(n_ctx=4096, flash_attention=False))
    with loaded(starter, EngineOptions(n_ctx=4096, flash_attention="off")) as context:
        memory = context.memory
        later = logits(context, context.n_outputs)
    assert need.compute == pytest.approx(memory.compute + later, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_values_and_states_of_each_kind_of_model(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path / "tiny.gguf")
    need = target_need(read_model_file(path), Loading(n_ctx=1000))
    with loaded(path, EngineOptions(n_ctx=1000)) as context:
        memory, snapshots = context.memory, context.n_snapshots
    assert need.cache == pytest.approx(memory.kv - memory.recurrent, abs=2 * LOG_STEP)
    # One that keeps no snapshots is copied before a draft, outside of llama.cpp.
    copies = 1 if snapshots or not memory.recurrent else 2
    assert need.states == pytest.approx(copies * memory.recurrent, abs=2 * LOG_STEP)


@pytest.mark.parametrize("kind", MTP_KINDS)
def test_what_mtp_heads_keep(tmp_path: Path, kind: str) -> None:
    files = MTP_KINDS[kind](tmp_path)
    target = read_model_file(files.target)
    loading = Loading(n_ctx=1024)
    if files.heads is not None:
        said = drafter_need(read_model_file(files.heads), target, loading).cache
    else:
        with_heads = target_need(target, loading, heads=True)
        said = with_heads.cache - target_need(target, loading).cache
    options = ContextOptions(n_ctx=1024, n_outputs=4)
    with (
        Model(files.target, heads=True) as model,
        Model(files.heads or files.target, heads=True) as heads,
        Context(model, options) as context,
        HeadContext(heads, replace(options, mtp=True), context) as head,
    ):
        assert said == pytest.approx(head.memory.kv, abs=LOG_STEP)


@pytest.mark.parametrize("n_ctx", [512, 8192])
def test_the_starters_head_takes_what_is_said_within_a_tenth(starter: Path, n_ctx: int) -> None:
    path = bundled_drafter(paths.assets_dir(), starter)
    assert path is not None
    need = drafter_need(read_model_file(path), read_model_file(starter), Loading(n_ctx=n_ctx))
    options = ContextOptions(n_ctx=n_ctx, n_outputs=LONGEST_DRAFT + 1)
    with (
        Model(starter) as model,
        Model(path) as head_model,
        Context(model, options) as context,
        HeadContext(head_model, replace(options, n_batch=64, n_outputs=0), context) as head,
    ):
        memory, weights = head.memory, head_model.size_bytes
    assert need.weights == weights
    assert share(need, weights=weights, memory=memory, later=0) == pytest.approx(1, abs=0.1)


def test_a_head_of_a_large_vocabulary_is_not_underestimated(tmp_path: Path) -> None:
    sizes = Tiny(n_layer=4, n_vocab=20_000)
    target, path = write_llama(tmp_path / "target.gguf", sizes), write_eagle3(tmp_path / "head.gguf", sizes)
    need = drafter_need(read_model_file(path), read_model_file(target), Loading(n_ctx=512))
    options = ContextOptions(n_ctx=512)
    with (
        Model(target) as model,
        Model(path) as head_model,
        Context(model, options) as context,
        HeadContext(head_model, replace(options, n_batch=64), context) as head,
    ):
        assert need.compute == pytest.approx(head.memory.compute, rel=0.1)


_LOAD = """
import json, sys
import psutil
from app.worker.llama_model import LlamaModel
from app.protocol import EngineOptions, Load

def held():
    return psutil.Process().memory_info().rss

before = held()
options = EngineOptions(n_ctx=int(sys.argv[2]), n_threads=1)
model = LlamaModel(Load(request_id=1, model_path=sys.argv[1], options=options), lambda _: True)
print(json.dumps(held() - before))
model.close()
"""


@pytest.mark.parametrize("n_ctx", [512, 2048, 8192])
def test_a_process_grows_by_what_is_said_within_a_tenth(starter: Path, n_ctx: int) -> None:
    """Target, bundled head, vocabularies and all: what the system sees."""
    if sys.platform != "linux":
        pytest.skip("other systems count a process's memory in other ways")
    drafter = bundled_drafter(paths.assets_dir(), starter)
    assert drafter is not None
    target, loading = read_model_file(starter), Loading(n_ctx=n_ctx)
    said = target_need(target, loading).total + drafter_need(read_model_file(drafter), target, loading).total
    run = subprocess.run(
        [sys.executable, "-c", _LOAD, str(starter), str(n_ctx)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert said == pytest.approx(json.loads(run.stdout.splitlines()[-1]), rel=0.1)
