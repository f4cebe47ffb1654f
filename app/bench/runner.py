"""Measures a plan: every mode, and the peer's, on every workload, interleaved."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from app.bench.measurement import Measurement, Ratio, Row, measurement, ratios, rows
from app.bench.modes import OFF, drafting_of
from app.bench.peer import PLAIN, Completion, Peer
from app.bench.player import BenchError, Player
from app.bench.prompt_ids import PromptIds
from app.bench.workloads import Workload
from app.engine_client import WORKER_COMMAND
from app.protocol import NEURAL, Done, DraftingParams, EngineOptions, ModelReport, SamplingParams

Progress = Callable[[int, int, str], None]
"""Told before each conversation: how many are done, of how many, and what comes now."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure. ``modes`` must contain ``off``: speed-ups are relative to it. Without
    ``peer_modes`` the peer is measured in all that it offers. ``max_draft`` is the longest draft in
    tokens (1 to 64), None for each drafter's own."""

    models: tuple[Path, ...]
    workloads: tuple[Workload, ...]
    modes: tuple[str, ...]
    runs: int
    max_tokens: int
    options: EngineOptions
    temperature: float = 0.0
    max_draft: int | None = None
    draft_model: Path | None = None
    peer: Peer | None = None
    peer_modes: tuple[str, ...] | None = None
    command: tuple[str, ...] = WORKER_COMMAND


@dataclass(frozen=True)
class Outcome:
    """``engine`` is llama.cpp's build, as the worker names it; ``skipped`` says what was left out.
    ``runs``, ``temperature`` and ``max_draft`` are the plan's."""

    engine: str
    threads: int
    rows: list[Row]
    peer_rows: list[Row]
    ratios: list[Ratio]
    skipped: tuple[str, ...] = ()
    runs: int = 1
    temperature: float = 0.0
    max_draft: int | None = None


@dataclass(frozen=True)
class _Model:
    """What one model's measurements need. ``scripts`` and ``prompts`` are by workload name.

    Turns after the first of a conversation follow on the answers of one plain, greedy run that is not
    measured, so that every mode, and the peer, is asked the same.
    """

    path: Path
    player: Player
    report: ModelReport
    workloads: tuple[Workload, ...]
    scripts: dict[str, list[Done]]
    prompts: dict[str, list[list[int]]]


class Runner:
    """Carries out one plan."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._sampling = SamplingParams(temperature=plan.temperature)
        self._progress = progress
        self._spec_types: tuple[str, ...] = ()
        self._ours: list[Measurement] = []
        self._peers: list[Measurement] = []
        self._skipped: list[str] = []
        self._done = self._total = 0

    def run(self) -> Outcome:
        """Raises BenchError."""
        plan = self._plan
        if plan.peer is not None:
            self._spec_types = _chosen_types(
                plan.peer.spec_types(plan.models, plan.draft_model), plan.peer_modes
            )
        self._total = len(plan.models) * len(plan.workloads) * self._each
        engine, threads = "", 0
        for path in plan.models:
            with Player(path, plan.draft_model, options=plan.options, command=plan.command) as player:
                model = self._prepare(path, player)
                engine, threads = player.engine, model.report.n_threads
                for run in range(plan.runs):
                    for workload in model.workloads:
                        for measure in self._in_turn(model, workload, run):
                            measure()
        self._ours.sort(key=partial(self._place, plan.modes))
        self._peers.sort(key=partial(self._place, self._spec_types))
        compared = ratios(self._ours, self._peers, plain=OFF, peer_plain=PLAIN) if self._peers else []
        return Outcome(
            engine,
            threads,
            rows(self._ours, OFF),
            rows(self._peers, PLAIN),
            compared,
            tuple(self._skipped),
            plan.runs,
            plan.temperature,
            plan.max_draft,
        )

    @property
    def _each(self) -> int:
        """Measurements of one workload with one model."""
        return self._plan.runs * (len(self._plan.modes) + len(self._spec_types))

    def _prepare(self, path: Path, player: Player) -> _Model:
        plan = self._plan
        report = player.load(plan.workloads[0].n_ctx)
        if plan.draft_model is not None and report.draft_model_path is None:
            reasons = (drafter.reason for drafter in report.drafters if drafter.name in NEURAL)
            raise BenchError(f"the draft model is of no use: {next(reasons, None)}", "bad_model")
        workloads = tuple(w for w in plan.workloads if self._fits(path, report, w))
        if not workloads:
            raise BenchError(self._skipped[-1], "bad_input")
        scripts: dict[str, list[Done]] = {}
        for workload in workloads:
            if len(workload.primary.turns) > 1:
                self._tell(path, workload, "first answers")
                scripts[workload.name] = player.play(
                    workload, workload.primary, DraftingParams(links=()), plan.max_tokens
                )
                self._done -= 1  # it is no measurement
        prompts: dict[str, list[list[int]]] = {}
        if plan.peer is not None:
            with PromptIds(path) as ids:
                for workload in workloads:
                    prompts[workload.name] = ids.of(workload.primary, scripts.get(workload.name, []))
        return _Model(path, player, report, workloads, scripts, prompts)

    def _fits(self, path: Path, report: ModelReport, workload: Workload) -> bool:
        """Whether the model's context holds the prompt; if not, the workload is left out."""
        if workload.n_ctx <= report.n_ctx_train:
            return True
        first = msgspec.structs.replace(workload.primary, turns=workload.primary.turns[:1])
        with PromptIds(path) as ids:
            (prompt,) = ids.of(first, [])
        if len(prompt) < report.n_ctx_train:
            return True
        self._skipped.append(
            f"{path.stem}: {workload.name} was left out, its prompt of {len(prompt):,} tokens does not fit "
            f"the model's context of {report.n_ctx_train:,}"
        )
        self._total -= self._each
        return False

    def _in_turn(self, model: _Model, workload: Workload, run: int) -> list[Callable[[], None]]:
        """All measurements of one workload in one run, in an order of its own that never changes.

        What is done later in a run meets a warmer machine; a new order each time spreads that.
        """
        turns: list[Callable[[], None]] = [
            partial(self._measure, model, workload, mode, run) for mode in self._plan.modes
        ]
        turns += [partial(self._measure_peer, model, workload, name, run) for name in self._spec_types]
        random.Random(f"{workload.name} {run}").shuffle(turns)
        return turns

    def _measure(self, model: _Model, workload: Workload, mode: str, run: int) -> None:
        self._tell(model.path, workload, mode)
        script = [answer.text for answer in model.scripts.get(workload.name, [])]
        answers = model.player.play(
            workload,
            workload.primary,
            drafting_of(mode, self._plan.max_draft),
            self._plan.max_tokens,
            script,
            self._sampling,
        )
        self._ours.append(measurement(model.path.stem, workload.name, mode, run, answers))

    def _measure_peer(self, model: _Model, workload: Workload, spec_type: str, run: int) -> None:
        assert self._plan.peer is not None
        self._tell(model.path, workload, f"peer {spec_type}")
        model.player.unload()  # two copies of a large model may not fit
        completions = self._plan.peer.play(
            model.path,
            self._plan.draft_model,
            spec_type,
            model.prompts[workload.name],
            msgspec.structs.replace(
                self._plan.options,
                n_ctx=min(workload.n_ctx, model.report.n_ctx_train or workload.n_ctx),
                n_threads=model.report.n_threads,
            ),
            self._plan.max_tokens,
            self._sampling,
            run,
        )
        self._peers.append(_peer_measurement(model.path.stem, workload.name, spec_type, run, completions))

    def _tell(self, path: Path, workload: Workload, mode: str) -> None:
        name = f"{workload.name}, {mode}"
        if len(self._plan.models) > 1:
            name = f"{path.stem}: {name}"
        self._progress(self._done, self._total, name)
        self._done += 1

    def _place(self, modes: Sequence[str], m: Measurement) -> tuple[int, int, int, int]:
        """Where a measurement belongs in the order that was asked for."""
        models = [path.stem for path in self._plan.models]
        workloads = [workload.name for workload in self._plan.workloads]
        return models.index(m.model), workloads.index(m.workload), modes.index(m.mode), m.run


def _chosen_types(offered: tuple[str, ...], wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """Always with plain decoding, as with our own modes. Raises BenchError."""
    for name in wanted or ():
        if name not in offered:
            raise BenchError(f"the peer has no mode {name!r} here, only {', '.join(offered)}", "bad_input")
    return tuple(name for name in offered if wanted is None or name in wanted or name == PLAIN)


def _peer_measurement(
    model: str, workload: str, spec_type: str, run: int, completions: Sequence[Completion]
) -> Measurement:
    """All turns of a conversation together, from the server's own timings.

    It counts as we do, but for an answer that ends with a drafted token: if that was the last of its
    draft, there seems to be a pass less, and if not, the token is not among the accepted ones.
    """
    timings = [completion.timings for completion in completions]
    tokens = sum(t.predicted_n for t in timings)
    accepted = sum(t.draft_n_accepted for t in timings)
    steps = [t.predicted_n - 1 for t in timings]
    return Measurement(
        model=model,
        workload=workload,
        mode=spec_type,
        run=run,
        tokens=tokens,
        decode_tokens=sum(steps),
        decode_s=sum(
            n / t.predicted_per_second for n, t in zip(steps, timings, strict=True) if t.predicted_per_second
        ),
        drafted=sum(t.draft_n for t in timings),
        accepted=accepted,
        # each pass says one token that nobody guessed
        passes=tokens - accepted,
    )
