"""The replay on traces small enough to count by hand, and on those that ship."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app import paths
from drafting.replay import AUTO, CURVES, MODES, Recording, Trace, oracle_time, replay
from tests.drafting.scripted import BLOCKS

RECORDINGS = [
    msgspec.json.decode(path.read_bytes(), type=Recording)
    for path in sorted((paths.assets_dir() / "replay").glob("*.json"))
]
FLAT = {1: 1.0, 2: 1.0, 64: 1.0}
PROSE = Trace("chat", "no repeats", list(range(100, 140)), list(range(200, 240)))
COPY = Trace("copy", "a copy", list(range(100, 140)), list(range(110, 140)))


@pytest.mark.parametrize("mode", MODES)
def test_text_without_repeats_is_plain(mode: str) -> None:
    outcome = replay(PROSE, mode, CURVES["Q4_1"])
    assert (outcome.passes, outcome.drafted, outcome.time) == (40, 0, 40.0)


def test_a_copy_by_hand() -> None:
    """After 12 tokens map-k finds the passage and drafts the other 17 at once; the last is a bonus."""
    outcome = replay(COPY, "map-k", FLAT)
    assert (outcome.passes, outcome.drafted, outcome.accepted, outcome.time) == (13, 17, 17, 13.0)
    # The suffix drafter, and so the oracle, needs one token of it.
    assert oracle_time(COPY, FLAT) == 2.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("curve", CURVES)
def test_nobody_beats_the_oracle_and_the_same_comes_out_again(mode: str, curve: str) -> None:
    seconds = CURVES[curve]
    first = replay(COPY, mode, seconds)
    assert oracle_time(COPY, seconds) <= first.time
    assert first == replay(COPY, mode, seconds)


def test_auto_on_the_traces_that_ship() -> None:
    """What a change to drafters or controller is judged by; raise the numbers when it gets better."""
    done = subprocess.run(
        [sys.executable, "-m", "app", "replay", "--json"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["mode"] for row in rows} == set(MODES)

    def speed(curve: str, mode: str) -> float:
        """Geometric mean over the traces would hide long ones: the ratio of the sums, by tokens."""
        chosen = [r for r in rows if (r["curve"], r["mode"]) == (curve, mode)]
        return len(chosen) / sum(1 / r["time_ratio"] for r in chosen)

    for curve, least in (("Q4_1", 1.15), ("F16", 1.4), ("GPU", 2.1)):
        assert speed(curve, "auto") >= least
        assert speed(curve, "auto") >= max(speed(curve, mode) for mode in MODES if mode != "auto")
    auto = [row["time_ratio"] for row in rows if row["mode"] == "auto"]
    assert min(auto) >= 0.95
    tokens_per_pass = {mode: sum(r["tokens_per_pass"] for r in rows if r["mode"] == mode) for mode in MODES}
    assert tokens_per_pass["suffix"] > max(tokens_per_pass[m] for m in ("simple", "map-k", "mod"))
    assert all(r["oracle_ratio"] <= 1 + 1e-9 for r in rows)


def test_no_answer_loses_much_where_only_long_drafts_pay() -> None:
    """Lists and JSON look as if they went on as before, and then do not: one lost 7 %."""
    ratios = {
        (recording.model, trace.name): len(trace.answer) / replay(trace, AUTO, BLOCKS).time
        for recording in RECORDINGS
        for trace in recording.traces
        if trace.workload == "json"
    }
    assert len(ratios) > 10
    assert min(ratios.values()) >= 0.96


def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for file in (bad, tmp_path / "gone.json"):
        done = subprocess.run(
            [sys.executable, "-m", "app", "replay", str(file)], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
