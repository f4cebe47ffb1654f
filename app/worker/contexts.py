"""Makes the contexts of target and draft model, and finds out how the target's memory drops tokens.

Every wrong draft must be taken out of the target's memory again. A KV cache is cut. A recurrent state
cannot be: it goes back to a snapshot, or to a copy from before the pass, behind which what was accepted
is computed again.
"""

from __future__ import annotations

import logging
from typing import Literal, NamedTuple

import psutil

from app.protocol import EngineOptions
from app.worker.loaded_model import EngineError
from native.context import Context, ContextOptions
from native.errors import ContextError, NativeError
from native.model import Model

log = logging.getLogger(__name__)

Dropping = Literal["cut", "repeat", "never"]
"""Rejected tokens are cut off; or what was accepted before them is computed again; or neither works."""

# Each snapshot is as large as the state, which is nothing for a small model and much for a large one.
_SNAPSHOT_BYTES = 512 << 20
_MOST_SNAPSHOTS = 16
_FEWEST_SNAPSHOTS = 3  # drafts of fewer tokens are worth less than longer ones with a copy
_TRIAL = ((5, 0), (6, 1), (7, 2), (8, 3))  # token, position: any tokens will do

NEVER = "this model's memory cannot drop rejected tokens"


class TargetContext(NamedTuple):
    """``notices`` are for the person."""

    context: Context
    dropping: Dropping
    notices: tuple[str, ...]


def target_context(model: Model, options: EngineOptions, n_ctx: int, longest_draft: int) -> TargetContext:
    """A context whose passes have room for drafts, and what its memory can do. Raises EngineError."""
    if not (model.is_recurrent or model.is_hybrid):
        return _attention(model, options, n_ctx, longest_draft)
    snapshots = _affordable_snapshots(model, options, longest_draft)
    context = make_context(
        model,
        options,
        n_ctx,
        n_outputs=(snapshots or min(longest_draft, options.n_batch - 1)) + options.n_parallel,
        n_snapshots=snapshots,
        n_seq_max=options.n_parallel,
    )
    dropping = try_dropping(context)
    return TargetContext(context, dropping, (_words(context, dropping),))


def make_context(
    model: Model,
    options: EngineOptions,
    n_ctx: int,
    n_outputs: int,
    n_snapshots: int = 0,
    swa_full: bool = True,
    n_seq_max: int = 1,
) -> Context:
    """Raises EngineError."""
    threads = options.n_threads or psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    try:
        return Context(
            model,
            ContextOptions(
                n_ctx=n_ctx,
                n_batch=options.n_batch,
                n_outputs=n_outputs,
                n_threads=threads,
                kv_type=options.kv_type,
                flash_attention=options.flash_attention,
                n_snapshots=n_snapshots,
                swa_full=swa_full,
                n_seq_max=n_seq_max,
            ),
        )
    except ContextError as error:
        raise EngineError(
            "out_of_memory", f"{error}. A smaller context or a smaller model needs less memory."
        ) from error


def try_dropping(context: Context) -> Dropping:
    """Find out on four tokens; the context is left empty. Raises EngineError when they cannot be read."""
    (first, *rest), length = _TRIAL, 2
    if context.n_outputs < len(rest):
        return "cut"  # no room for a draft: there will be nothing to drop
    try:
        context.decode([(0, *first, True)])
        context.decode([(0, token, position, True) for token, position in rest])
        left = context.rewind(0, length)
    except NativeError as error:
        raise EngineError("bad_model", f"This model cannot be run: {error}") from error
    finally:
        context.forget(0)
    return "cut" if left == length else "repeat" if left == 1 else "never"


def _attention(model: Model, options: EngineOptions, n_ctx: int, longest_draft: int) -> TargetContext:
    slots = options.n_parallel
    n_outputs = min(longest_draft + slots, options.n_batch)
    notices: tuple[str, ...] = ()
    try:
        context = make_context(model, options, n_ctx, n_outputs, n_seq_max=slots)
    except EngineError:
        if not model.n_swa:
            raise
        context = make_context(model, options, n_ctx, n_outputs, swa_full=False, n_seq_max=slots)
        notices = (
            f"There is no memory to keep more than the sliding window of {model.n_swa:,} tokens in most "
            "layers: after an edit the whole chat is read again.",
        )
    return TargetContext(context, try_dropping(context), notices)


def _affordable_snapshots(model: Model, options: EngineOptions, longest_draft: int) -> int:
    """As many as the architecture can keep and memory should hold; 0 where a copy does better."""
    most = min(_MOST_SNAPSHOTS, longest_draft, options.n_batch - 2)
    if most < _FEWEST_SNAPSHOTS:
        return 0
    tiny = EngineOptions(n_batch=4, n_threads=1)
    probe = make_context(model, tiny, n_ctx=32, n_outputs=1, n_snapshots=1)
    try:
        if not probe.n_snapshots:
            return 0
        state = max(1, probe.memory.recurrent // 2)
    finally:
        probe.close()
    affordable = min(most, _SNAPSHOT_BYTES // state)
    return affordable if affordable >= _FEWEST_SNAPSHOTS else 0


def _words(context: Context, dropping: Dropping) -> str:
    if dropping == "never":
        return f"Drafting is off: {NEVER}."
    size = f"{max(1, round(context.memory.recurrent / 2**20)):,} MB"
    if dropping == "cut":
        return (
            f"This model's memory is recurrent. It keeps its last {context.n_snapshots} states ({size}), "
            f"so that drafts of up to {context.n_snapshots} tokens can be dropped."
        )
    return (
        f"This model's memory is recurrent and keeps no earlier states. It is copied ({size}) before each "
        "draft; after a wrong one, the accepted tokens are computed again, so drafting pays less often."
    )
