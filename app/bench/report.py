"""The bench's outcome as a table for people and as an object for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.bench.machine import Machine
from app.bench.measurement import Ratio, Row, by_mode, geometric_mean
from app.bench.runner import Outcome

_DASH = "–"
_HEADINGS = ("mode", "tokens/s", "speed-up", "accepted", "tokens/pass")
_ALL = "all workloads (geometric means)"


def as_object(outcome: Outcome, machine: Machine) -> dict[str, object]:
    """What ``--json`` prints; ``ratios`` is empty without a peer, ``max_draft`` null without a limit."""
    return {
        "machine": machine,
        "runs": outcome.runs,
        "temperature": outcome.temperature,
        "max_draft": outcome.max_draft,
        "rows": outcome.rows,
        "peer_rows": outcome.peer_rows,
        "ratios": outcome.ratios,
    }


def as_text(outcome: Outcome, machine: Machine) -> str:
    """One block a workload, then the means; with a peer, then how we compare to its best."""
    lines = [
        f"{machine.cpu}, {machine.cores} cores, {machine.threads} threads, "
        f"{machine.memory_bytes / 2**30:.1f} GiB, {machine.os}"
    ]
    if outcome.max_draft is not None:
        lines.append(f"drafts hold at most {outcome.max_draft} token{'s' if outcome.max_draft > 1 else ''}")
    if outcome.temperature > 0:
        lines.append(_drawn(outcome))
    for model in dict.fromkeys(row.model for row in outcome.rows):
        ours = [row for row in outcome.rows if row.model == model]
        peers = [row for row in outcome.peer_rows if row.model == model]
        width = max(len(_HEADINGS[0]), *(len(row.mode) for row in ours), *(len(_of_peer(r)) for r in peers))
        lines += ["", model, _line("", _HEADINGS, width)]
        for workload in dict.fromkeys(row.workload for row in ours):
            lines.append(f"  {workload}")
            lines += [_row(row.mode, row, width) for row in ours if row.workload == workload]
            lines += [_row(_of_peer(row), row, width) for row in peers if row.workload == workload]
        lines.append(f"  {_ALL}")
        lines += _means(ours, "", width)
        lines += _means(peers, "peer ", width)
        if peers:
            lines += ["", *_against_peer([r for r in outcome.ratios if r.model == model], ours, peers)]
    return "\n".join(lines)


def _drawn(outcome: Outcome) -> str:
    """What is compared where no two answers are alike."""
    runs = f"all {outcome.runs} runs together" if outcome.runs > 1 else "one run, which says little"
    return (
        f"temperature {outcome.temperature:g}: every answer is another; "
        f"accepted and tokens/pass are those of {runs}"
    )


def _row(name: str, row: Row, width: int) -> str:
    return _line("    ", (name, *_cells(row)), width)


def _cells(row: Row) -> tuple[str, str, str, str]:
    return (
        _number(row.tokens_per_second, ".1f"),
        _number(row.speedup, ".2f", "x"),
        _number(row.acceptance_rate, ".0%"),
        _number(row.tokens_per_pass, ".2f"),
    )


def _means(table: Sequence[Row], prefix: str, width: int) -> list[str]:
    speeds = by_mode(table, lambda row: row.tokens_per_second)
    speedups = by_mode(table, lambda row: row.speedup)
    per_pass = by_mode(table, lambda row: row.tokens_per_pass)
    return [
        _line(
            "    ",
            (
                prefix + mode,
                _number(speeds[mode], ".1f"),
                _number(speedups[mode], ".2f", "x"),
                "",
                _number(per_pass[mode], ".2f"),
            ),
            width,
        )
        for mode in speeds
    ]


def _against_peer(ratios: Sequence[Ratio], ours: Sequence[Row], peers: Sequence[Row]) -> Iterable[str]:
    """The first ratio of each workload is plain over plain, the others are over the peer's best."""
    modes = list(dict.fromkeys(row.mode for row in ours))
    names = [f"{modes[0]}/none", *(f"{mode}/best" for mode in modes)]
    best: dict[str, list[Ratio]] = {}
    for ratio in ratios:
        best.setdefault(ratio.workload, []).append(ratio)
    first = max(map(len, [*best, "geometric mean"]))
    widths = [max(len(name), 7) for name in names]

    def line(label: str, cells: Iterable[str], tail: str = "") -> str:
        filled = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return f"  {label.ljust(first)}  {filled}  {tail}".rstrip()

    yield "  ours / peer's, where best is the peer's fastest mode on that workload"
    yield line("", names, "best")
    for workload, mine in best.items():
        yield line(workload, [_number(r.ratio, ".2f", "x") for r in mine], mine[-1].peer_mode)
    columns = zip(*best.values(), strict=True)
    means = [geometric_mean(r.ratio for r in column) for column in columns]
    yield line("geometric mean", [_number(mean, ".2f", "x") for mean in means])
    speeds = by_mode(peers, lambda row: row.tokens_per_second)
    single = max(speeds, key=lambda mode: speeds[mode] or 0.0)
    mean = speeds[single]
    if mean:
        here = by_mode(ours, lambda row: row.tokens_per_second)
        against = ", ".join(f"{mode} {_number((here[mode] or 0) / mean, '.2f', 'x')}" for mode in here)
        yield f"  against its best single mode, {single}, over all workloads: {against}"


def _of_peer(row: Row) -> str:
    return f"peer {row.mode}"


def _line(indent: str, cells: Sequence[str], width: int) -> str:
    name, *numbers = cells
    aligned = "".join(number.rjust(13) for number in numbers)
    return f"{indent or '    '}{name.ljust(width)}{aligned}".rstrip()


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _DASH if value is None else f"{value:{form}}{unit}"
