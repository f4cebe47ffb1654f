"""``slipstream chat`` as a person runs it: output, JSON, exit status, one line for each error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_gguf import Tiny, write_llama


@pytest.fixture(scope="module")
def t0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("cli") / "t0.gguf")


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments], input=stdin, capture_output=True, text=True, timeout=120
    )


def test_json_is_one_object_and_nothing_else(t0: Path) -> None:
    arguments = ("chat", "-m", str(t0), "--json", "--temp", "0", "--max-tokens", "150", "go on")
    # Whether drafting pays is for the machine to say, so nobody is asked here.
    done = run(*arguments, "--threads", "1", "--draft-max", "4", "--spec", "simple:n=2,cache")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert set(report) >= {"text", "token_ids", "finish_reason", "seed", "model", "stats"}
    stats = report["stats"]
    assert report["model"] == "t0" and report["finish_reason"] in ("stop", "length")
    assert stats["completion_tokens"] <= 150 and stats["target_passes"] <= stats["completion_tokens"]
    assert stats["drafted"] == sum(d["drafted"] for d in stats["by_drafter"].values())
    assert stats["accepted"] <= stats["drafted"]
    assert {"proposals", "drafted", "accepted"} <= set(next(iter(stats["by_drafter"].values())))
    off = run("chat", "-m", str(t0), "--json", "--temp", "0", "--max-tokens", "40", "--spec", "off", "go on")
    plain = json.loads(off.stdout)
    assert plain["stats"]["acceptance_rate"] is None and plain["stats"]["tokens_per_pass"] == 1.0


def test_a_drafters_parameters_and_a_floor(t0: Path) -> None:
    arguments = ("chat", "-m", str(t0), "--temp", "0", "--max-tokens", "150", "--threads", "1", "go on")
    report = json.loads(run(*arguments, "--json", "--spec", "simple:n=2,m=3,mod").stdout)
    counts = report["stats"]["by_drafter"]["simple"]
    assert len(counts["drafted_at"]) == 3 and counts["proposals"] > 3
    assert sum(report["stats"]["undrafted"].values()) > 0
    strict = run(*arguments, "--spec", "cache:p_min=0", "--draft-floor", "1")
    assert "cache is paused: low acceptance (" in strict.stderr and "the floor is 100 %" in strict.stderr
    off = run(*arguments, "--spec", "off")
    assert "nothing drafted: switched off" in off.stderr


def test_the_seed_makes_it_again(t0: Path) -> None:
    arguments = ("chat", "-m", str(t0), "--json", "--max-tokens", "30", "--threads", "1", "hello")
    first = json.loads(run(*arguments).stdout)
    again = json.loads(run(*arguments, "--seed", str(first["seed"]), "--spec", "off").stdout)
    assert again["token_ids"] == first["token_ids"]


def test_the_prompt_from_standard_input_and_numbers_on_stderr(t0: Path) -> None:
    done = run("chat", "-m", str(t0), "--max-tokens", "8", "-", stdin="hello")
    assert done.returncode == 0
    assert "8 tokens" in done.stderr or "tokens" in done.stderr
    assert "seed" in done.stderr and "seed" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["chat", ""], 2, "empty"),
        (["chat"], 2, "prompt"),
        (["chat", "--spec", "magic", "x"], 2, "magic"),
        (["chat", "--spec", "simple:speed=9", "x"], 2, "simple has no parameter 'speed'"),
        (["chat", "--spec", "simple:n=0,map-k", "x"], 2, "n is a whole number from 1 to 64, not '0'"),
        (["chat", "--draft-floor", "2", "x"], 2, "2 is not between 0 and 1"),
        (["chat", "--spec", "draft", "x"], 2, "--draft-model"),
        (["chat", "--draft-model", "gone.gguf", "x"], 2, "gone.gguf"),
        (["chat", "--seed", "-1", "x"], 2, "-1"),
        (["chat", "--temp", "hot", "x"], 2, "hot"),
        (["chat", "--max-tokens", "0", "x"], 2, "0"),
        (["chat", "-m", "gone.gguf", "x"], 2, "gone.gguf"),
        (["chat", "-m", __file__, "x"], 2, "not a GGUF"),
        (["dance"], 2, "dance"),
    ],
)
def test_bad_usage_and_input(arguments: list[str], status: int, words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_prompt_longer_than_the_context(tmp_path: Path) -> None:
    small = write_llama(tmp_path / "small.gguf", Tiny(n_ctx_train=256))
    done = run("chat", "-m", str(small), "!" * 400)
    assert done.returncode == 2
    assert "longer than the context" in done.stderr.splitlines()[-1]


def test_ctrl_c_keeps_what_was_said(t0: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "chat", "-m", str(t0), "--temp", "1.5", "hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process:
        first = process.stdout.read(1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert first and process.returncode in (0, 130)
    assert "Traceback" not in errors


def test_without_a_display_it_names_the_other_way() -> None:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    done = subprocess.run(
        [sys.executable, "-m", "app"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "slipstream chat" in done.stderr


def test_answers_are_learned_unless_told_not_to_and_can_be_forgotten(t0: Path, private_home: Path) -> None:
    folder = private_home / "data" / "answers"
    arguments = ("chat", "-m", str(t0), "--json", "--temp", "0", "--max-tokens", "60", "hello")

    def stats(*more: str) -> dict[str, int]:
        done = run(*arguments, *more)
        assert done.returncode == 0 and "learn" not in done.stderr, done.stderr
        return json.loads(done.stdout)["stats"]  # type: ignore[no-any-return]

    cold = stats("--no-learn", "--spec", "suffix")
    assert not folder.exists()
    stats("--spec", "suffix")
    assert len(list(folder.glob("*.answers"))) == 1
    assert stats("--spec", "suffix")["target_passes"] < cold["target_passes"]
    assert stats("--no-learn", "--spec", "suffix")["target_passes"] == cold["target_passes"]
    forgotten = run("forget")
    assert forgotten.returncode == 0 and "deleted" in forgotten.stdout
    assert list(folder.glob("*.answers*")) == []
    assert "nothing" in run("forget").stdout


def test_a_lookup_cache_that_is_none_costs_a_line(t0: Path, tmp_path: Path) -> None:
    arguments = ("chat", "-m", str(t0), "--max-tokens", "5", "hello", "--lookup-cache-static")
    done = run(*arguments, str(tmp_path / "gone.lcs"))
    assert done.returncode == 0
    assert "gone.lcs is not used" in done.stderr
