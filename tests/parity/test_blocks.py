"""Our DFlash and DSpark drafters draft what llama-server drafts with the same files and settings."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.worker.neural import neural_drafter
from drafting.llama_target import LlamaTarget
from drafting.parameters import NeuralParameters
from native.context import Context, ContextOptions
from native.model import Model
from tests.parity.blocks import HEADS, OPTIONS, PATH, SETTINGS, setting, write_target
from tests.parity.recording import PASSES, Recording
from tests.parity.replay import drafts

SIZES = ContextOptions(
    n_ctx=OPTIONS.n_ctx, n_batch=OPTIONS.n_batch, n_outputs=16, kv_type="f32", flash_attention="off"
)


@pytest.mark.parametrize(("n_max", "p_min"), SETTINGS)
@pytest.mark.parametrize("name", HEADS)
def test_the_first_fifty_drafts_are_the_servers(name: str, n_max: int, p_min: float, tmp_path: Path) -> None:
    recordings = msgspec.json.decode(PATH.read_bytes(), type=dict[str, Recording])
    target_file = write_target(tmp_path / "target.gguf")
    head_file = HEADS[name].write(tmp_path / "head.gguf")
    with Model(target_file) as model, Model(head_file) as head:
        target = LlamaTarget(Context(model, SIZES))
        drafter = neural_drafter(HEADS[name].kind, head, target, OPTIONS)
        drafter.configure(NeuralParameters(n_max=n_max, p_min=p_min))
        for answer in recordings[setting(name, n_max, p_min)].answers:
            assert len(answer.passes) == PASSES
            made = drafts(target, drafter, answer)
            different = [i for i, (a, b) in enumerate(zip(made, answer.passes, strict=True)) if a != b]
            assert not different, (answer.name, different, [made[i] for i in different])
        head.close()
