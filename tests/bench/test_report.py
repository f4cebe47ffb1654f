"""The table, the object, and the line that says how far a measurement has come."""

from __future__ import annotations

import dataclasses
import io
import json

import msgspec
import pytest

from app.bench.machine import Machine, this_machine
from app.bench.measurement import ratios, rows
from app.bench.progress import ProgressLine
from app.bench.report import as_object, as_text
from app.bench.runner import Outcome
from tests.bench.test_measurement import measured

MACHINE = Machine(cpu="A CPU", cores=2, memory_bytes=8 * 2**30, os="An OS", engine="b1", threads=2)


def outcome(*, peer: bool) -> Outcome:
    ours = [
        measured(mode, run, speed * (1 + run / 10), workload=workload, drafted=drafted, accepted=accepted)
        for workload in ("chat", "code")
        for run in range(2)
        for mode, speed, drafted, accepted in (("off", 100, 0, 0), ("chain", 125, 100, 50))
    ]
    theirs = [
        measured(mode, run, speed * (1 + run / 10), workload=workload)
        for workload in ("chat", "code")
        for run in range(2)
        for mode, speed in (("none", 100), ("ngram-mod", 80))
    ]
    peers = theirs if peer else []
    compared = ratios(ours, peers, plain="off", peer_plain="none") if peer else []
    return Outcome("b1", 2, rows(ours, "off"), rows(peers, "none"), compared, runs=2)


def test_the_table_has_a_block_for_each_workload_and_the_means() -> None:
    text = as_text(outcome(peer=False), MACHINE)
    lines = text.splitlines()
    assert lines[0] == "A CPU, 2 cores, 2 threads, 8.0 GiB, An OS"
    assert [line.strip() for line in lines if line.startswith("  ") and line[2] != " "] == [
        "chat",
        "code",
        "all workloads (geometric means)",
    ]
    assert next(line for line in lines if "off" in line).split() == ["off", "105.0", "1.00x", "–", "1.00"]
    chains = [line.split() for line in lines if line.strip().startswith("chain")]
    assert chains == [["chain", "131.2", "1.25x", "50%", "1.98"]] * 2 + [["chain", "131.2", "1.25x", "1.98"]]
    assert "peer" not in text and max(map(len, lines)) < 80


def test_with_a_peer_it_says_how_we_compare_to_its_best() -> None:
    text = as_text(outcome(peer=True), MACHINE)
    assert "peer ngram-mod" in text
    mean = next(line for line in text.splitlines() if line.strip().startswith("geometric mean"))
    assert mean.split() == ["geometric", "mean", "1.00x", "1.00x", "1.25x"]
    assert text.splitlines()[-1].strip() == (
        "against its best single mode, none, over all workloads: off 1.00x, chain 1.25x"
    )


def test_the_object_has_the_fields_that_programs_read() -> None:
    report = json.loads(msgspec.json.encode(as_object(outcome(peer=True), MACHINE)))
    keys = {"machine", "rows", "peer_rows", "ratios", "runs", "temperature", "max_draft"}
    assert set(report) == keys
    assert (report["runs"], report["temperature"], report["max_draft"]) == (2, 0.0, None)
    keys = {"model", "workload", "mode", "tokens_per_second", "speedup", "tokens_per_pass"}
    keys |= {"drafted", "accepted", "acceptance_rate"}
    assert all(set(row) == keys for row in [*report["rows"], *report["peer_rows"]])
    assert report["rows"][0]["acceptance_rate"] is None


@pytest.mark.parametrize(
    ("runs", "words"), [(2, "those of all 2 runs together"), (1, "those of one run, which says little")]
)
def test_drawn_answers_and_short_drafts_are_said_above_the_table(runs: int, words: str) -> None:
    drawn = dataclasses.replace(outcome(peer=True), runs=runs, temperature=0.8, max_draft=1)
    _, limit, how = as_text(drawn, MACHINE).partition("\n\n")[0].splitlines()
    assert limit == "drafts hold at most 1 token"
    assert how.startswith("temperature 0.8: every answer is another") and how.endswith(words)


def test_this_machine_is_described() -> None:
    machine = this_machine("b1", 2)
    assert machine.cpu and machine.os and machine.cores >= 1 and machine.memory_bytes > 2**20


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere() -> None:
    plain, terminal = io.StringIO(), _Terminal()
    now = [0.0]
    lines, bar = ProgressLine(plain), ProgressLine(terminal, clock=lambda: now[0])
    for done, name in ((0, "chat, off"), (1, "chat, chain")):
        lines.show(done, 4, name)
        bar.show(done, 4, name)
        now[0] += 10
    lines.clear()
    bar.clear()
    assert plain.getvalue() == "1/4 chat, off\n2/4 chat, chain\n"
    first, second, end = terminal.getvalue().split("\r\033[K")[1:]
    assert first.endswith("0/4  chat, off") and "1/4, 30 s left  chat, chain" in second and end == ""
