"""``slipstream bench``: measures every way of drafting on fixed workloads, and a peer beside them."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app import paths
from app.bench import plot
from app.bench.machine import this_machine
from app.bench.modes import OFF, mode_names
from app.bench.peer import Peer
from app.bench.player import BenchError
from app.bench.progress import ProgressLine
from app.bench.report import as_object, as_text
from app.bench.runner import Plan, Runner
from app.bench.workloads import Workload, load_workloads
from app.cli import INTERRUPTED, UsageError, failure_status
from app.commands.chat import model_path
from app.protocol import NEURAL, EngineOptions
from model_store.bundled import default_drafter
from model_store.check import ModelFileError, read_model_file
from model_store.drafting_kind import drafting_kind, heads_inside

RUNS, MAX_TOKENS = 3, 300

# --quick: one look at whether drafting pays here, on what needs no long prompt.
_QUICK_RUNS, _QUICK_MAX_TOKENS = 1, 64
_QUICK_MODES = ("off", "auto")
_QUICK_N_CTX = 4096


def run_bench(options: argparse.Namespace) -> int:
    """Measure and print. Raises UsageError for input that cannot be used."""
    plan = plan_of(options)
    if options.plot is not None:
        if not plot.can_plot():
            raise UsageError(plot.MISSING)
        if not options.plot.parent.is_dir():
            raise UsageError(f"there is no folder {str(options.plot.parent)!r} for the plot")
    progress = ProgressLine(sys.stderr)
    try:
        outcome = Runner(plan, progress.show).run()
    except BenchError as error:
        progress.clear()
        print(f"slipstream: {error}", file=sys.stderr)
        return failure_status(error.kind)
    except KeyboardInterrupt:
        progress.clear()
        return INTERRUPTED
    progress.clear()
    for line in outcome.skipped:
        print(f"slipstream: {line}", file=sys.stderr)
    machine = this_machine(outcome.engine, outcome.threads)
    if options.json:
        print(msgspec.json.encode(as_object(outcome, machine)).decode())
    else:
        print(as_text(outcome, machine))
    if options.plot is not None:
        how = f"temperature {plan.temperature:g}" if plan.temperature else "greedy"
        note = f"{machine.cpu}, {machine.threads} threads; median of {plan.runs} runs, {how}"
        try:
            plot.draw(outcome.rows, options.plot, note=note)
        except OSError as error:
            print(f"slipstream: the plot could not be written: {error}", file=sys.stderr)
            return 1
    return 0


def plan_of(options: argparse.Namespace) -> Plan:
    """Raises UsageError."""
    if options.draft_model is not None and not options.draft_model.exists():
        raise UsageError(f"there is no draft model file {str(options.draft_model)!r}")
    quick = options.quick
    workloads = load_workloads()
    wanted = options.workloads or [w.name for w in workloads if not quick or w.n_ctx <= _QUICK_N_CTX]
    models = tuple(model_path(name) for name in options.model or [None])
    known = mode_names(_neural_links(options.draft_model, models))
    modes = options.modes or (_QUICK_MODES if quick else known)
    peer = None
    if options.peer is not None:
        binary = shutil.which(options.peer)
        if binary is None:
            raise UsageError(f"there is no program {options.peer!r} to compare with")
        limit = ("--spec-draft-n-max", str(options.max_draft)) if options.max_draft else ()
        peer = Peer(Path(binary).absolute(), limit)
    elif options.peer_modes:
        raise UsageError("--peer-modes needs a --peer")
    return Plan(
        models=models,
        workloads=_chosen(wanted, workloads),
        modes=_chosen_modes(modes, known),
        runs=options.runs or (_QUICK_RUNS if quick else RUNS),
        max_tokens=options.max_tokens or (_QUICK_MAX_TOKENS if quick else MAX_TOKENS),
        temperature=options.temperature,
        max_draft=options.max_draft,
        draft_model=options.draft_model,
        # A peer is run on the CPU, so we are too: two programs, one machine.
        options=EngineOptions(n_threads=options.threads or 0, n_gpu_layers=-1 if peer is None else 0),
        peer=peer,
        peer_modes=options.peer_modes,
    )


def _neural_links(draft_model: Path | None, models: Sequence[Path]) -> tuple[str, ...]:
    """Neural drafters that these files are; one that cannot be read is refused when it is loaded."""
    files = [draft_model] if draft_model else [default_drafter(paths.assets_dir(), path) for path in models]
    try:
        kinds = [drafting_kind(read_model_file(path)) for path in files if path]
        inside = not draft_model and any(heads_inside(read_model_file(path)) for path in models)
        return tuple(kind for kind in (*kinds, "mtp" if inside else None) if kind)
    except ModelFileError:
        return NEURAL


def _chosen(wanted: Sequence[str], workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    by_name = {workload.name: workload for workload in workloads}
    for name in wanted:
        if name not in by_name:
            raise UsageError(f"unknown workload {name!r} (choose from {', '.join(by_name)})")
    return tuple(by_name[name] for name in dict.fromkeys(wanted))


def _chosen_modes(wanted: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """In the usual order, and always with plain decoding: speed-ups are relative to it."""
    for name in wanted:
        if name in NEURAL and name not in known:
            raise UsageError(f"the mode {name!r} needs a --draft-model FILE of its kind")
        if name not in known:
            raise UsageError(f"unknown mode {name!r} (choose from {', '.join(known)})")
    return tuple(name for name in known if name in wanted or name == OFF)
