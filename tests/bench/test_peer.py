"""The peer: what it is asked, that each server is a fresh one, and that none is ever left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from app.bench.peer import Peer
from app.bench.player import BenchError
from app.protocol import EngineOptions, SamplingParams
from tests.bench.fake_server import write_fake_server
from tests.models.qwen35 import write_qwen35
from tests.tiny_gguf import write_llama

OPTIONS = EngineOptions(n_ctx=1024, n_threads=2, n_gpu_layers=0)
MODEL = Path("some-model.gguf")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "server.log"
    monkeypatch.setenv("FAKE_SERVER_LOG", str(path))
    return path


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(write_fake_server(tmp_path))


def notes(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_its_help_says_which_kinds_of_drafting_there_are(peer: Peer, tmp_path: Path) -> None:
    assert peer.spec_types([MODEL], None) == ("none", "ngram-simple", "ngram-mod")
    draft = write_llama(tmp_path / "draft.gguf")
    assert peer.spec_types([MODEL], draft) == ("none", "ngram-simple", "ngram-mod", "draft-simple")
    heads = write_qwen35(tmp_path / "heads.gguf", trunk=False)
    assert peer.spec_types([MODEL], heads) == ("none", "ngram-simple", "ngram-mod", "draft-mtp")
    whole, plain = write_qwen35(tmp_path / "whole.gguf", heads=1), draft
    assert peer.spec_types([whole], None) == ("none", "ngram-simple", "ngram-mod", "draft-mtp")
    assert peer.spec_types([whole, plain], None) == ("none", "ngram-simple", "ngram-mod")
    with pytest.raises(BenchError, match=r"gone\.gguf"):
        peer.spec_types([MODEL], tmp_path / "gone.gguf")


def test_each_play_is_a_fresh_server_with_our_sizes_and_our_tokens(peer: Peer, log: Path) -> None:
    prompts = [[1, 2, 3], [4, 5]]
    plain = peer.play(MODEL, None, "none", prompts, OPTIONS, 11)
    drafted = peer.play(MODEL, Path("draft.gguf"), "draft-simple", prompts[:1], OPTIONS, 11)
    first, *requests = notes(log)[:3]
    assert [note["request"]["prompt"] for note in requests] == prompts
    assert all(
        note["request"] | {"n_predict": 11, "temperature": 0, "cache_prompt": False} == note["request"]
        for note in requests
    )
    second = notes(log)[3]
    assert first["pid"] != second["pid"]
    line = " ".join(first["arguments"])
    for words in ("--ctx-size 1024", "--threads 2", "--n-gpu-layers 0", "--flash-attn auto", "--parallel 1"):
        assert words in line
    assert "--spec-type none" in line and "--model-draft" not in line
    assert second["arguments"][-2:] == ["--model-draft", "draft.gguf"]
    assert [c.timings.predicted_per_second for c in plain] == [100.0, 100.0]
    assert (drafted[0].timings.draft_n, drafted[0].timings.draft_n_accepted) == (4, 2)
    assert not any(psutil.pid_exists(note["pid"]) for note in (first, second))


def test_it_samples_as_we_do(peer: Peer, log: Path) -> None:
    settings = SamplingParams(
        temperature=0.7,
        top_k=20,
        top_p=0.9,
        min_p=0.02,
        repeat_penalty=1.1,
        frequency_penalty=0.2,
        presence_penalty=0.3,
        penalty_last_n=32,
    )
    peer.play(MODEL, None, "none", [[1]], OPTIONS, 8, settings, 3)
    request = notes(log)[1]["request"]
    ours = msgspec.structs.asdict(settings)
    ours["repeat_last_n"] = ours.pop("penalty_last_n")
    del ours["logit_bias"]
    assert request | ours == request and request["seed"] == 3
    # its other samplers (dry, xtc, ...) are not ours
    assert request["samplers"] == ["penalties", "top_k", "top_p", "min_p", "temperature"]


@pytest.mark.parametrize(("dies", "words"), [("start", "not to my taste"), ("answer", "GGML_ASSERT")])
def test_a_server_that_dies_is_an_error_in_its_own_last_words(
    peer: Peer, log: Path, monkeypatch: pytest.MonkeyPatch, dies: str, words: str
) -> None:
    monkeypatch.setenv("FAKE_SERVER_DIES", dies)
    with pytest.raises(BenchError, match=words):
        peer.play(MODEL, None, "none", [[1]], OPTIONS, 8)
    assert not psutil.pid_exists(notes(log)[0]["pid"])


def test_a_file_that_is_no_server(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no program")
    with pytest.raises(BenchError, match="cannot be run"):
        Peer(path).spec_types([MODEL], None)
    with pytest.raises(BenchError, match="status 127"):
        Peer(path).play(MODEL, None, "none", [[1]], OPTIONS, 8)
    with pytest.raises(BenchError, match="offers no --spec-type"):
        Peer(Path(sys.executable)).spec_types([MODEL], None)


def test_the_guard_ends_its_command_when_the_owner_is_gone() -> None:
    # The command would wait for ever; it says its process id first.
    code = "import os, threading; print(os.getpid(), flush=True); threading.Event().wait()"
    guard = [sys.executable, "-m", "app.bench.guard", sys.executable, "-c", code]
    with subprocess.Popen(guard, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        command = psutil.Process(int(process.stdout.readline()))
        process.stdin.close()  # as the system does for an owner that was killed
        assert process.wait(10) != 0
    assert not command.is_running()
