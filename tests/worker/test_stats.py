"""``slipstream stats`` as a person runs it, over the answers of ``slipstream chat``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tiny_gguf import write_llama
from tests.worker.test_cli import run


@pytest.fixture(scope="module")
def t0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("stats") / "t0.gguf")


def chat(model: Path, *arguments: str) -> dict[str, object]:
    done = run(
        *("chat", "-m", str(model), "--json", "--temp", "0", "--max-tokens", "60", "--threads", "1"),
        *arguments,
    )
    assert done.returncode == 0 and "history" not in done.stderr, done.stderr
    stats: dict[str, object] = json.loads(done.stdout)["stats"]
    return stats


def test_before_the_first_answer_it_says_what_to_do() -> None:
    done = run("stats")
    assert done.returncode == 0 and "slipstream chat" in done.stdout and done.stderr == ""
    assert json.loads(run("stats", "--json").stdout)["rows"] == []
    assert run("stats", "--forget").returncode == 0


def test_answers_are_counted_shown_and_forgotten(t0: Path, private_home: Path) -> None:
    first = chat(t0, "--spec", "simple,suffix", "go on")
    second = chat(t0, "--spec", "off", "go on")
    report = run("stats", "--json")
    assert report.returncode == 0 and report.stdout.count("\n") == 1
    rows = json.loads(report.stdout)["rows"]
    assert {row["target"]["name"] for row in rows} == {"t0"} and {row["drafter"] for row in rows} == {None}
    assert sum(row["ever"]["answers"] for row in rows) == 2
    for name in ("drafted", "accepted"):
        assert sum(row["ever"][name] for row in rows) == first[name]
    passes = sum(row["ever"]["passes"] for row in rows)
    assert passes == first["target_passes"] + second["target_passes"] - 2  # type: ignore[operator]
    links = {name: counts for row in rows for name, counts in row["links"].items()}
    by_drafter = first["by_drafter"]
    assert isinstance(by_drafter, dict) and links.keys() == by_drafter.keys() != set()
    for name, counts in by_drafter.items():
        assert {k: links[name]["ever"][k] for k in ("proposals", "drafted", "accepted")} == {
            k: counts[k] for k in ("proposals", "drafted", "accepted")
        }
    assert all(row["lately"]["speedup"] > 0 and row["lately"]["tokens_per_second"] > 0 for row in rows)

    table = run("stats", "--model", "T0")
    assert table.returncode == 0 and table.stderr == ""
    assert table.stdout.splitlines()[0] == "t0" and "speed-up" in table.stdout
    assert all(f"    {name} " in table.stdout for name in links)

    wrong = run("stats", "--model", "t1")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "t1" in wrong.stderr and "t0" in wrong.stderr and wrong.stderr.count("\n") == 1

    assert "2 answers" in run("stats", "--forget", "--model", "t0").stdout
    assert json.loads(run("stats", "--json").stdout)["rows"] == []
    assert json.loads(run("stats", "--forget", "--json").stdout) == {"forgotten_answers": 0}


def test_a_damaged_history_is_said_once_and_stops_no_chat(t0: Path, private_home: Path) -> None:
    chat(t0, "hello")
    (private_home / "data" / "speed.sqlite3").write_bytes(b"no database " * 1000)
    done = run("chat", "-m", str(t0), "--max-tokens", "8", "--threads", "1", "hello")
    assert done.returncode == 0 and done.stdout.strip()
    said = [line for line in done.stderr.splitlines() if "history" in line]
    assert len(said) == 1 and "speed.damaged.sqlite3" in said[0]
    rows = json.loads(run("stats", "--json").stdout)["rows"]
    assert sum(row["ever"]["answers"] for row in rows) == 1


def test_a_history_that_cannot_be_read(private_home: Path) -> None:
    (private_home / "data" / "speed.sqlite3").mkdir(parents=True)
    done = run("stats")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
