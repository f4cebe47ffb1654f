"""``slipstream replay``: drafters and controller over recorded answers, to the last digit the same."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from app import paths
from app.cli import UsageError
from drafting.replay import CURVES, MODES, Outcome, Recording, Trace, oracle_time, replay


class Row(Struct, frozen=True):
    """One trace in one mode on one machine.

    ``time_ratio`` is plain decoding's time over this mode's (above 1: faster), ``oracle_ratio`` the
    oracle's over this mode's (at most 1), ``wasted`` counts drafted tokens that were rejected.
    """

    recording: str
    trace: str
    workload: str
    curve: str
    mode: str
    tokens_per_pass: float
    wasted: int
    time_ratio: float
    oracle_ratio: float


class _Times(Struct):
    """One mode over all traces on one machine; times in plain passes."""

    tokens: int = 0
    passes: int = 0
    wasted: int = 0
    time: float = 0.0
    oracle: float = 0.0


def run_replay(options: argparse.Namespace) -> int:
    """Replay the recordings. Raises UsageError for a file that is none."""
    files: Sequence[Path] = options.traces or sorted((paths.assets_dir() / "replay").glob("*.json"))
    rows: list[Row] = []
    totals: dict[tuple[str, str], _Times] = {}
    for file in files:
        recording = _read(file)
        for curve, seconds in CURVES.items():
            oracles = [oracle_time(trace, seconds) for trace in recording.traces]
            for mode in MODES:
                outcomes = [replay(trace, mode, seconds) for trace in recording.traces]
                for trace, outcome, oracle in zip(recording.traces, outcomes, oracles, strict=True):
                    rows.append(_row(recording, trace, curve, mode, outcome, oracle))
                    total = totals.setdefault((curve, mode), _Times())
                    total.tokens += len(trace.answer)
                    total.passes += outcome.passes
                    total.wasted += outcome.drafted - outcome.accepted
                    total.time += outcome.time
                    total.oracle += oracle
    if options.json:
        print(msgspec.json.encode({"rows": rows}).decode())
    else:
        print(_table(totals))
    return 0


def _read(file: Path) -> Recording:
    try:
        recording = msgspec.json.decode(file.read_bytes(), type=Recording)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is not a recording: {error}") from error
    return Recording(recording.model, [trace for trace in recording.traces if trace.answer])


def _row(recording: Recording, trace: Trace, curve: str, mode: str, outcome: Outcome, oracle: float) -> Row:
    tokens = len(trace.answer)
    return Row(
        recording=recording.model,
        trace=trace.name,
        workload=trace.workload,
        curve=curve,
        mode=mode,
        tokens_per_pass=tokens / outcome.passes,
        wasted=outcome.drafted - outcome.accepted,
        time_ratio=tokens / outcome.time,
        oracle_ratio=oracle / outcome.time,
    )


def _table(totals: Mapping[tuple[str, str], _Times]) -> str:
    lines = [f"{'curve':8}{'mode':10}{'speed':>8}{'of oracle':>11}{'tokens/pass':>13}{'wasted':>9}"]
    for (curve, mode), total in totals.items():
        lines.append(
            f"{curve:8}{mode:10}{total.tokens / total.time:7.3f}x{total.oracle / total.time:10.1%}"
            f"{total.tokens / total.passes:13.2f}{total.wasted:9,}"
        )
    return "\n".join(lines)
