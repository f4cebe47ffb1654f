"""Puts a neural drafter into memory beside its target, of whichever kind its file is."""

from __future__ import annotations

import time
from dataclasses import replace

from app.protocol import EngineOptions
from app.worker.contexts import make_context
from app.worker.loaded_model import EngineError
from drafting.dflash import DFlash
from drafting.draft_cost import DraftCost
from drafting.draft_model import DraftModel
from drafting.dspark import DSpark
from drafting.eagle3 import Eagle3
from drafting.llama_target import LlamaTarget
from drafting.mtp import Mtp
from drafting.mtp_assistant import MtpAssistant
from drafting.neural import NeuralDrafter
from model_store.check import read_model_file
from model_store.classify import CONFIDENCE_HEAD
from model_store.drafting_kind import DraftKind
from native.architectures import ASSISTANTS
from native.block_context import BlockContext
from native.context import ContextOptions
from native.head_context import HeadContext
from native.model import Model

# A head computes logits for every row it reads, and llama.cpp reserves memory for them.
_HEAD_BATCH = 64
_CATCH_UP = 32  # rows that tell what catching up takes
_ROUNDS = 3


def neural_drafter(
    kind: DraftKind, model: Model, target: LlamaTarget, options: EngineOptions, slot: int = 0
) -> NeuralDrafter:
    """The drafter that ``model`` is for one slot of the target, in a context of its own.

    Raises EngineError or NativeError.
    """
    if kind == "eagle3":
        sizes = replace(_alone(target), n_batch=min(_HEAD_BATCH, target.n_batch), n_outputs=0)
        head = HeadContext(model, sizes, target.context)
        return Eagle3(head, target.keep_hidden(head.target_layers), slot)
    if kind == "mtp":
        return mtp_drafter(model, target, slot)
    if kind in ("dflash", "dspark"):
        return _block_drafter(kind, model, target, slot)
    if model.is_recurrent or model.is_hybrid:
        problem = "its memory cannot drop rejected tokens"
        raise EngineError("bad_model", f"{model.path.name} cannot be used as a draft model: {problem}")
    n_ctx = min(target.n_ctx, model.n_ctx_train or target.n_ctx)
    return DraftModel(make_context(model, options, n_ctx, n_outputs=1))


def mtp_drafter(model: Model, target: LlamaTarget, slot: int = 0) -> Mtp | MtpAssistant:
    """The drafter that the MTP heads in ``model`` make, which may be the target's own. Raises NativeError."""
    # An assistant reads the target's own KV cache, all of its sequences.
    is_assistant = model.architecture in ASSISTANTS
    options = target.context.options if is_assistant else _alone(target)
    # Each head of a chain reads the whole draft again, and all its rows have logits.
    sizes = replace(options, n_outputs=max(1, model.n_layer_nextn), n_snapshots=0, mtp=True)
    heads = HeadContext(model, sizes, target.context)
    hidden = target.keep_hidden((target.context.model.n_layer,))
    return MtpAssistant(heads, hidden, slot) if is_assistant else Mtp(heads, hidden, slot)


def _alone(target: LlamaTarget) -> ContextOptions:
    """The target's sizes for a context of one sequence."""
    return replace(target.context.options, n_seq_max=1)


def _block_drafter(kind: DraftKind, model: Model, target: LlamaTarget, slot: int) -> NeuralDrafter:
    sizes = replace(_alone(target), n_batch=_HEAD_BATCH, n_outputs=0)
    blocks = BlockContext(model, sizes, target.context)
    hidden = target.keep_hidden(blocks.target_layers, last_as_input=True)
    if kind == "dflash":
        return DFlash(blocks, hidden, slot)
    confidence = read_model_file(model.path).tensor(CONFIDENCE_HEAD)
    return DSpark(blocks, hidden, slot, states_confidence=confidence is not None)


def draft_cost(drafter: NeuralDrafter) -> DraftCost:
    """What its drafts take, measured; the first pass also pages its weights in."""
    cost = DraftCost(drafts_blocks=drafter.drafts_blocks)
    cost.drafted(1, min(_seconds(drafter, 1) for _ in range(_ROUNDS)))
    rows = min(_CATCH_UP, drafter.context.n_batch)
    cost.caught_up(rows, min(_seconds(drafter, rows) for _ in range(_ROUNDS)))
    return cost


def _seconds(drafter: NeuralDrafter, rows: int) -> float:
    began = time.perf_counter()
    drafter.practise(rows)
    return time.perf_counter() - began
