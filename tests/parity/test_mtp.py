"""Our MTP drafters draft what llama-server drafts with the same files and settings."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.worker.neural import mtp_drafter
from drafting.llama_target import LlamaTarget
from drafting.parameters import NeuralParameters
from native.context import Context, ContextOptions
from native.model import Model
from tests.models.mtp import MTP_KINDS
from tests.parity.mtp import N_MAX, OPTIONS, PATH
from tests.parity.recording import PASSES, Recording
from tests.parity.replay import drafts

SIZES = ContextOptions(
    n_ctx=OPTIONS.n_ctx,
    n_batch=OPTIONS.n_batch,
    n_outputs=16,
    n_snapshots=16,
    kv_type="f32",
    flash_attention="off",
)


@pytest.mark.parametrize("kind", MTP_KINDS)
def test_the_first_fifty_drafts_are_the_servers(kind: str, tmp_path: Path) -> None:
    recording = msgspec.json.decode(PATH.read_bytes(), type=dict[str, Recording])[kind]
    files = MTP_KINDS[kind](tmp_path)
    for answer in recording.answers:
        assert len(answer.passes) == PASSES
        with Model(files.target, heads=files.heads is None) as model:
            target = LlamaTarget(Context(model, SIZES))
            heads = Model(files.heads, heads=True) if files.heads is not None else model
            drafter = mtp_drafter(heads, target)
            drafter.configure(NeuralParameters(n_max=N_MAX))
            made = drafts(target, drafter, answer)
            heads.close()
        different = [i for i, (a, b) in enumerate(zip(made, answer.passes, strict=True)) if a != b]
        assert not different, (answer.name, different, [made[i] for i in different])
