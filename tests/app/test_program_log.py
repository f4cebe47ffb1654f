"""The program's log and the mark of a run that did not end."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app.program_log import last_lines, program_log, start_logging
from app.run_marker import Run, RunMarker


def test_records_go_to_the_file(private_home: Path) -> None:
    handler = start_logging()
    assert handler is not None
    try:
        logging.getLogger("app.test").info("it %s", "began")
        logging.getLogger("elsewhere").info("what a person searched for")
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    assert program_log().is_relative_to(private_home)
    (line,) = last_lines(program_log())
    assert line.endswith("INFO app.test: it began")


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_start(private_home: Path) -> None:
    program_log().mkdir(parents=True)
    assert start_logging() is None


def test_the_last_lines_of_a_large_file_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {i}\n" for i in range(10_000)), encoding="utf-8")
    assert last_lines(path, most=3) == ["line 9997", "line 9998", "line 9999"]
    lines = last_lines(path, most=10_000, most_bytes=1000)
    assert 50 < len(lines) < 200
    assert all(line.startswith("line ") for line in lines)
    assert last_lines(tmp_path / "none") == []


def test_a_run_that_ended_leaves_no_mark(tmp_path: Path) -> None:
    marker = RunMarker(tmp_path / "running.json")
    assert marker.begin() is None
    marker.end()
    marker.end()
    assert RunMarker(marker.path).begin() is None


def test_a_run_that_did_not_end_is_found(tmp_path: Path) -> None:
    path = tmp_path / "running.json"
    RunMarker(path).begin(now=1000.0)
    last = RunMarker(path).begin(now=2000.0)
    assert last is not None and last.started_at == 1000.0 and last.pid > 0


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, b"[1, 2]", b'{"pid": "x"}'])
def test_a_mark_that_cannot_be_read_still_counts(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "running.json"
    path.write_bytes(content)
    assert RunMarker(path).begin() == Run()
