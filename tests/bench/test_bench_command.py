"""``slipstream bench`` as a person runs it, on a tiny model; and the cold start of every conversation."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.bench import plot
from app.bench.player import BenchError, Player
from app.bench.runner import Plan, Runner
from app.bench.workloads import Conversation, Workload
from app.cli import UsageError, main
from app.commands.bench import plan_of, run_bench
from app.protocol import DraftingParams, EngineOptions, SamplingParams
from app.worker.fake_script import FakeReply, FakeScript
from tests.bench.fake_server import write_fake_server
from tests.session import fake_command
from tests.tiny_gguf import Tiny, write_llama

CHAT = Workload(name="chat", n_ctx=1024, conversations=(Conversation(name="a", turns=("hello", "and now?")),))
OFF = DraftingParams(links=())


@pytest.fixture(scope="module")
def t0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("bench") / "t0.gguf")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_json_is_one_object_and_nothing_else(t0: Path, tmp_path: Path) -> None:
    server = write_fake_server(tmp_path)
    done = run(
        *("-m", str(t0), "--workloads", "chat,code", "--modes", "chain", "--runs", "1"),
        *("--max-tokens", "12", "--threads", "1", "--json", "--peer", str(server)),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert {"cpu", "cores", "memory_bytes", "os", "engine", "threads"} == set(report["machine"])
    named = [(row["model"], row["workload"], row["mode"]) for row in report["rows"]]
    assert named == [("t0", w, mode) for w in ("chat", "code") for mode in ("off", "chain")]
    assert [row["speedup"] for row in report["rows"] if row["mode"] == "off"] == [1.0, 1.0]
    peers = [(row["workload"], row["mode"]) for row in report["peer_rows"]]
    assert peers == [(w, name) for w in ("chat", "code") for name in ("none", "ngram-simple", "ngram-mod")]
    assert all(row["tokens_per_second"] == pytest.approx(110) for row in report["peer_rows"])
    # progress goes where it does not disturb
    assert done.stderr.splitlines()[-1].startswith("10/10 ")


def test_the_table_for_people(t0: Path) -> None:
    done = run(
        *("-m", str(t0), "--workloads", "chat", "--modes", "off", "--runs", "2"),
        *("--max-tokens", "8", "--threads", "1"),
    )
    assert done.returncode == 0, done.stderr
    assert "tokens/s" in done.stdout and "1.00x" in done.stdout and "\033" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--modes", "magic"], 2, "magic"),
        (["--modes", "draft"], 2, "--draft-model"),
        (["--modes", ","], 2, "empty"),
        (["--workloads", "poetry"], 2, "poetry"),
        (["--runs", "0"], 2, "0"),
        (["--temperature", "-1"], 2, "-1"),
        (["--max-draft", "65"], 2, "64"),
        (["--draft-model", "gone.gguf"], 2, "gone.gguf"),
        (["--peer", "gone/llama-server"], 2, "gone/llama-server"),
        (["--peer-modes", "none"], 2, "--peer"),
        (["-m", "gone.gguf"], 2, "gone.gguf"),
        (["-m", __file__, "--workloads", "chat"], 2, "not a GGUF"),
    ],
)
def test_bad_usage_and_input(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    try:
        code = main(["bench", *arguments])
    except SystemExit as end:  # argparse's way
        code = end.code if isinstance(end.code, int) else 1
    said = capsys.readouterr()
    assert (code, said.out) == (status, "")
    assert words in said.err and said.err.count("\n") == 1


def test_a_peer_in_some_of_its_modes(t0: Path, tmp_path: Path) -> None:
    chosen = ("-m", str(t0), "--workloads", "chat", "--modes", "off", "--runs", "1", "--max-tokens", "8")
    peer = ("--threads", "1", "--peer", str(write_fake_server(tmp_path)), "--json", "--peer-modes")
    done = run(*chosen, *peer, "ngram-mod")
    assert [row["mode"] for row in json.loads(done.stdout)["peer_rows"]] == ["none", "ngram-mod"]
    done = run(*chosen, *peer, "magic")
    assert (done.returncode, done.stdout) == (2, "") and "'magic'" in done.stderr


def test_temperature_and_longest_draft_reach_us_and_the_peer(
    t0: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    monkeypatch.setenv("FAKE_SERVER_LOG", str(log))
    head = write_llama(tmp_path / "draft.gguf")
    done = run(
        *("-m", str(t0), "--draft-model", str(head), "--workloads", "chat", "--modes", "draft"),
        *("--runs", "2", "--max-tokens", "12", "--threads", "1", "--temperature", "0.8", "--max-draft", "2"),
        "--json",
        *("--peer", str(write_fake_server(tmp_path)), "--peer-modes", "draft-simple"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["runs"], report["temperature"], report["max_draft"]) == (2, 0.8, 2)
    drafted = next(row for row in report["rows"] if row["mode"] == "draft")
    assert 0 < drafted["accepted"] <= drafted["drafted"] and drafted["tokens_per_pass"] <= 3
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    for started in (note["arguments"] for note in notes if "arguments" in note):
        assert started[started.index("--spec-draft-n-max") + 1] == "2"
    asked = [note["request"] for note in notes if "request" in note]
    assert {request["temperature"] for request in asked} == {0.8}
    assert sorted(request["seed"] for request in asked) == [0, 0, 1, 1]  # each run, plain and drafted


def test_a_peer_that_dies_fails_the_bench_in_one_line(
    t0: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER_DIES", "start")
    server = write_fake_server(tmp_path)
    done = run(
        *("-m", str(t0), "--workloads", "chat", "--modes", "off", "--max-tokens", "8", "--threads", "1"),
        *("--peer", str(server), "--json"),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "not to my taste" in done.stderr.splitlines()[-1]


def test_a_prompt_that_does_not_fit_is_left_out_and_said(t0: Path) -> None:
    arguments = ("-m", str(t0), "--modes", "off", "--runs", "1", "--max-tokens", "8", "--threads", "1")
    some = run(*arguments, "--workloads", "chat,long")
    assert some.returncode == 0 and "  long" not in some.stdout
    assert "long was left out" in some.stderr.splitlines()[-1]
    none = run(*arguments, "--workloads", "long")
    assert (none.returncode, none.stdout) == (2, "") and "context of 2,048" in none.stderr


def test_a_draft_model_that_does_not_fit_is_refused(t0: Path, tmp_path: Path) -> None:
    other = write_llama(tmp_path / "other.gguf", Tiny(swap=(300, 301)))
    done = run("-m", str(t0), "--draft-model", str(other), "--workloads", "chat", "--threads", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "draft model is of no use" in done.stderr and done.stderr.count("\n") == 1


def options(**given: object) -> argparse.Namespace:
    names = ("model", "draft_model", "workloads", "modes", "runs", "max_tokens", "threads", "plot", "peer")
    names += ("peer_modes", "max_draft")
    fixed = {"quick": False, "json": False, "temperature": 0.0}
    return argparse.Namespace(**(dict.fromkeys(names) | fixed | given))


def test_quick_is_a_smaller_plan_and_what_is_asked_for_wins(t0: Path) -> None:
    whole = plan_of(options(model=[str(t0)]))
    assert len(whole.workloads) == 8 and whole.runs == 3 and whole.modes[0] == "off"
    quick = plan_of(options(model=[str(t0)], quick=True))
    assert [w.name for w in quick.workloads] == [w.name for w in whole.workloads if w.name != "long"]
    assert quick.modes == ("off", "auto") and quick.runs == 1 and quick.max_tokens < whole.max_tokens
    asked = plan_of(options(model=[str(t0)], quick=True, modes=("chain",), workloads=("long",), runs=2))
    assert (asked.modes, asked.workloads[0].name, asked.runs) == (("off", "chain"), "long", 2)


def test_without_matplotlib_plot_says_what_to_do(
    t0: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "can_plot", lambda: False)
    with pytest.raises(UsageError, match="pip install matplotlib"):
        run_bench(options(model=[str(t0)], plot=tmp_path / "plot.png"))


def test_a_plot_into_a_folder_that_is_not_there_is_refused_before_anything_is_measured(
    t0: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "can_plot", lambda: True)
    with pytest.raises(UsageError, match="gone"):
        run_bench(options(model=[str(t0)], plot=tmp_path / "gone" / "plot.png"))


def plan(command: tuple[str, ...]) -> Plan:
    return Plan(
        models=(Path("a.gguf"),),
        workloads=(CHAT,),
        modes=("off", "chain"),
        runs=2,
        max_tokens=50,
        options=EngineOptions(),
        command=command,
    )


def test_modes_are_interleaved_and_all_runs_follow_the_same_first_answers(tmp_path: Path) -> None:
    reply = FakeReply(text="one two three four", tokens_per_second=5000, drafts=((3, 2),))
    told: list[tuple[int, int, str]] = []
    runner = Runner(plan(fake_command(FakeScript(replies=(reply,)), tmp_path)), lambda *a: told.append(a))
    outcome = runner.run()
    assert told[0] == (0, 4, "chat, first answers")
    assert [(done, total) for done, total, _ in told[1:]] == [(i, 4) for i in range(4)]
    assert sorted(name for _, _, name in told[1:3]) == ["chat, chain", "chat, off"]
    assert outcome.engine == "fake"
    off, chain = outcome.rows
    assert (off.mode, off.acceptance_rate, off.tokens_per_pass) == ("off", None, 1.0)
    assert chain.mode == "chain" and chain.acceptance_rate == pytest.approx(2 / 3, abs=0.2)
    assert chain.tokens_per_pass is not None and chain.tokens_per_pass > 1.5


def test_every_conversation_starts_cold_in_a_home_of_its_own(
    t0: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(private_home))
    with Player(t0, options=EngineOptions(n_threads=1)) as player:
        home = Path(os.environ["SLIPSTREAM_HOME"])
        assert home != private_home
        first = player.play(CHAT, CHAT.primary, OFF, 8)
        (home / "data").mkdir(exist_ok=True)
        (home / "data" / "learned").write_text("from this chat")
        again = player.play(CHAT, CHAT.primary, OFF, 8, [answer.text for answer in first])
        assert not (home / "data" / "learned").exists()
        # nothing of the conversation before is reused, but the second turn reuses the first
        assert again[0].stats.reused_tokens == 0
        assert again[1].stats.reused_tokens > 0
        assert [a.token_ids for a in again] == [a.token_ids for a in first]
    assert os.environ["SLIPSTREAM_HOME"] == str(private_home) and not home.exists()


def test_drawn_answers_have_seeds_of_their_own(t0: Path) -> None:
    sampling = SamplingParams(temperature=2.0)
    with Player(t0, options=EngineOptions(n_threads=1)) as player:
        one, two = (player.play(CHAT, CHAT.primary, OFF, 16, sampling=sampling)[0] for _ in range(2))
    assert one.seed != two.seed and one.token_ids != two.token_ids


def test_a_worker_that_dies_ends_the_measurement(tmp_path: Path) -> None:
    command = fake_command(FakeScript(replies=(FakeReply(crash="kill"),)), tmp_path)
    with Player(Path("a.gguf"), command=command) as player, pytest.raises(BenchError, match="stopped"):
        player.play(CHAT, CHAT.primary, OFF, 8)
