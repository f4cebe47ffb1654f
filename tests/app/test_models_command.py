"""``slipstream models``, as it is typed: what it prints, its exit status, and one line for each failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app import paths
from app.cli import main
from app.protocol import Device
from model_store.bundled import default_drafter
from model_store.starter import STARTER_NAME
from tests.model_store.local_hub import Fault, LocalHub
from tests.model_store.raw_gguf import CHAT, gguf, text
from tests.models.eagle3 import write_eagle3
from tests.tiny_gguf import Tiny, write_llama

REPO = "someone/Model-GGUF"

Run = Callable[..., tuple[int, str, str]]


def model(name: str) -> bytes:
    return gguf({**CHAT, "general.name": text(name), "general.size_label": text("1B")})


@pytest.fixture(autouse=True)
def no_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    with LocalHub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["models", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def listed(run: Run) -> dict[str, dict[str, Any]]:
    status, out, err = run("list", "--json")
    assert (status, err) == (0, "")
    return {row["name"]: row for row in json.loads(out)["models"]}


def test_list_shows_what_is_there_and_why_it_cannot_be_used(run: Run) -> None:
    folder = paths.models_dir()
    (folder / "a.gguf").write_bytes(model("a"))
    (folder / "cut.gguf").write_bytes(model("a")[:-1])
    (folder / "evil\x1b[31m.gguf").write_bytes(model("e"))
    status, out, err = run("list")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["a", "cut", "evil�[31m"]
    assert "llama, 1B, F32" in lines[0]
    assert "incomplete" in lines[1]
    assert "\x1b" not in out
    assert str(folder) in lines[-1]
    rows = listed(run)
    assert rows["a"]["size_bytes"] == len(model("a"))
    assert rows["a"]["problem"] is None
    assert rows[STARTER_NAME]["program"] == "Slipstream"


def test_get_verify_update_and_remove(run: Run, hub: LocalHub) -> None:
    hub.add(REPO, {"m.gguf": model("m")})
    status, out, _ = run("get", f"{hub.url}/{REPO}/resolve/main/m.gguf")
    path = paths.models_dir() / "someone" / "Model-GGUF" / "m.gguf"
    assert (status, out) == (0, f"{path}  ({len(model('m')):,} bytes, checked)\n")
    row = listed(run)["m"]
    assert row["repository"] == REPO
    assert row["downloaded_at"].endswith("+00:00")
    assert run("verify")[:2] == (0, f"verified    m.gguf: SHA-256 {row['sha256']}\n")

    hub.add(REPO, {"m.gguf": model("n")})
    status, out, _ = run("list", "--updates", "--json")
    [update] = [row["update"] for row in json.loads(out)["models"] if row["name"] == "m"]
    assert update == hub.repositories[REPO].sha
    assert "m.gguf: a newer version is on the Hub" in run("list", "--updates")[1]

    path.write_bytes(model("x"))
    status, out, _ = run("verify", "m", "--json")
    assert status == 1
    [file] = json.loads(out)["files"]
    assert (file["path"], file["outcome"]) == (str(path), "damaged")

    status, out, _ = run("rm", "m", "--json")
    assert status == 0
    assert json.loads(out) == {
        "removed": [{"name": "m", "deleted": [str(path)], "bytes_freed": len(model("m"))}]
    }
    assert "m" not in listed(run)


def write_pair(hub: LocalHub, folder: Path) -> None:
    target = write_llama(folder / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(folder / "head.gguf", Tiny(n_layer=4))
    hub.add(REPO, {"Model-Q4_0.gguf": target, "Model-Q8_0.gguf": target, "eagle3-Model.gguf": head})


def test_get_brings_a_model_and_its_drafter(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    write_pair(hub, tmp_path)
    status, out, err = run("get", REPO, "--quant", "q4_0")
    folder = paths.models_dir() / "someone" / "Model-GGUF"
    assert status == 0
    assert [line.split("  (")[0] for line in out.splitlines()] == [
        str(folder / "Model-Q4_0.gguf"),
        str(folder / "eagle3-Model.gguf"),
    ]
    assert "with an EAGLE-3 head: eagle3-Model" in err
    assert "eeds about" in err
    row = listed(run)["Model-Q4_0"]
    assert row["drafter"] == str(folder / "eagle3-Model.gguf")
    assert ", with eagle3-Model\n" in run("list")[1]
    assert default_drafter(tmp_path, folder / "Model-Q4_0.gguf") == folder / "eagle3-Model.gguf"


def test_graphics_memory_counts_and_only_get_asks_for_it(
    run: Run, hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask_devices() -> tuple[Device, ...]:
        asked.append("asked")
        return (Device("CUDA0", "A card", "gpu", 8 * 10**9, 10**10),)

    monkeypatch.setattr("app.commands.models.ask_devices", ask_devices)
    write_pair(hub, tmp_path)
    run("list")
    run("search", REPO)
    assert not asked
    status, out, _ = run("get", REPO, "--dry-run")
    assert status == 0
    assert "; 8.0 GB of graphics memory and " in out
    assert asked == ["asked"]


def test_dry_run_says_what_there_is_and_downloads_nothing(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    write_pair(hub, tmp_path)
    status, out, err = run("get", REPO, "--dry-run")
    assert (status, err) == (0, "")
    _, quantisations, drafters = out.split("\n\n")
    assert [line.split()[0] for line in quantisations.splitlines()] == ["Quantisations:", "Q4_0", "Q8_0"]
    assert [line.split()[0] for line in drafters.splitlines()] == ["Drafters:", "eagle3"]
    [line] = run("get", REPO, "--dry-run", "--json")[1].splitlines()
    offer = json.loads(line)
    assert (offer["event"], offer["drafter"]["kind"], len(offer["targets"])) == ("offer", "eagle3", 2)
    assert not (paths.models_dir() / "someone").exists()
    status, out, err = run("get", REPO, "--drafter", "none", "--quant", "Q2_K")
    assert (status, out) == (2, "")
    assert "there are Q4_0, Q8_0" in err


def test_file_that_is_no_model_comes_by_its_link(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    write_pair(hub, tmp_path)
    assert run("get", f"hf://{REPO}/eagle3-Model.gguf")[0] == 0
    assert listed(run)["eagle3-Model"]["kind"] == "drafter"
    status, _, err = run("get", f"hf://{REPO}/eagle3-Model.gguf", "--quant", "Q4_0")
    assert status == 2
    assert "choose a chat model" in err


def test_names_from_the_hub_do_nothing_to_a_terminal(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    write_pair(hub, tmp_path)
    target = tmp_path / "target.gguf"
    hub.add(REPO, {"evil\x1b[2J-Q4_0.gguf": target, "evil\x1b[2J-Q8_0.gguf": target})
    for command in (["search", REPO], ["get", REPO, "--quant", "Q2_K"], ["get", REPO, "--dry-run"]):
        _, out, err = run(*command)
        assert "evil" in out + err
        assert "\x1b" not in out + err
    status, out, err = run("get", REPO)
    assert status == 0
    assert "\x1b" not in out + err
    assert "\x1b" not in run("list")[1]


def test_search_shows_what_is_in_a_repository(run: Run, hub: LocalHub, tmp_path: Path) -> None:
    write_pair(hub, tmp_path)
    status, out, _ = run("search", REPO)
    assert status == 0
    assert "Model: a chat model, llama" in out
    assert "an EAGLE-3 head" in out
    groups = json.loads(run("search", f"{hub.url}/{REPO}", "--json")[1])["groups"]
    assert {group["kind"] for group in groups} == {"chat", "drafter"}


def test_search_knows_the_catalogue_without_the_hub(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    status, out, err = run("search", "smollm2")
    assert status == 1
    assert "SmolLM2" in out
    assert err.count("\n") == 1


def test_get_as_json_is_one_object_a_line(run: Run, hub: LocalHub) -> None:
    hub.add(REPO, {"m.gguf": model("m")})
    status, out, err = run("get", f"hf://{REPO}/m.gguf", "--json")
    assert (status, err) == (0, "")
    offer, *progress, last = [json.loads(line) for line in out.splitlines()]
    assert (offer["event"], offer["repo"]) == ("offer", REPO)
    assert {row["event"] for row in progress} <= {"progress"}
    assert (last["event"], last["received"], last["size"]) == ("complete", len(model("m")), len(model("m")))
    assert last["files"][0]["sha256"] == hub.file(REPO, "m.gguf").sha256


def test_licence_to_be_accepted_is_linked_to(run: Run, hub: LocalHub) -> None:
    hub.add(REPO, {"m.gguf": model("m")}, gated=frozenset({"hf_other"}))
    status, out, err = run("get", REPO)
    assert (status, out) == (1, "")
    assert err.startswith("slipstream: ")
    assert f"{hub.url}/{REPO}" in err


def fail_to_get(run: Run, hub: LocalHub) -> None:
    """A file that comes with wrong bytes, twice, and would come well the next time."""
    hub.add(REPO, {"m.gguf": os.urandom(1 << 20)})
    hub.script(REPO, "m.gguf", *[Fault("flip") for _ in range(9)])
    status, out, err = run("get", f"hf://{REPO}/m.gguf")
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("slipstream: ")
    hub.file(REPO, "m.gguf").faults.clear()


def test_unfinished_download_goes_on(run: Run, hub: LocalHub) -> None:
    fail_to_get(run, hub)
    listing = run("list")[1]
    assert (
        "m.gguf is not finished (0 MB of 1 MB): slipstream models get goes on with it. m.gguf arr" in listing
    )
    status, out, _ = run("get")
    assert status == 0
    assert "m.gguf  (1,048,576 bytes, checked)" in out
    assert run("get")[0] == 2


def test_unfinished_download_is_given_up(run: Run, hub: LocalHub) -> None:
    fail_to_get(run, hub)
    [job] = json.loads(run("list", "--json")[1])["downloads"]
    assert (job["title"], job["state"]) == ("m.gguf", "failed")
    assert run("rm", "m.gguf")[:2] == (0, "The download of m.gguf is cancelled.\n")
    assert json.loads(run("list", "--json")[1])["downloads"] == []
    downloads = paths.models_dir() / ".slipstream" / "downloads"
    assert list(downloads.iterdir()) == []
    assert run("rm", "m.gguf")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (["rm", "absent"], 2, "There is no model 'absent'."),
        (["rm", STARTER_NAME], 1, "belongs to Slipstream, and is only listed here."),
        (["verify", "absent"], 2, "There is no model 'absent'."),
        (["import", "/nowhere/at-all.gguf"], 2, "at-all.gguf cannot be read: no such file or directory."),
        (["import", f"/{'x' * 300}.gguf"], 2, "cannot be read: file name too long."),
        (["get", "someone/Absent-GGUF/x"], 2, ""),
        (["get", "hf://someone/Absent-GGUF/x.gguf"], 2, "someone/Absent-GGUF"),
        (["get"], 2, "no download is unfinished"),
    ],
)
def test_failure_is_one_line(run: Run, hub: LocalHub, arguments: list[str], status: int, line: str) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (status, "")
    assert err.startswith("slipstream: ")
    assert err.count("\n") == 1
    assert line in err


def test_offline_is_said_and_local_commands_do_not_ask(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (paths.models_dir() / "a.gguf").write_bytes(model("a"))
    for command in (["list"], ["verify"], ["import"], ["rm", "a"]):
        assert run(*command)[0] == 0
    status, out, err = run("search", "nothing-like-it")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1


def test_search_lists_repositories(run: Run, hub: LocalHub) -> None:
    hub.add(REPO, {"m.gguf": model("m")})
    status, out, _ = run("search", "model", "--json")
    assert status == 0
    assert [row["repository"] for row in json.loads(out)["hub"]] == [REPO]
    assert REPO in run("search", "model")[1]
    status, out, _ = run("search", "nothing-like-it")
    assert (status, out) == (0, "Neither the catalogue nor the Hub has a GGUF model of such a name.\n")


def test_import_lists_in_place_and_rm_takes_off_the_list(
    run: Run, tmp_path: Path, no_other_programs: Path
) -> None:
    theirs = no_other_programs / ".lmstudio" / "models" / "pub" / "repo"
    theirs.mkdir(parents=True)
    (theirs / "a.gguf").write_bytes(model("a"))
    own = tmp_path / "b's #%20.gguf"
    own.write_bytes(model("b"))
    status, out, _ = run("import")
    assert (status, out.split()[0]) == (0, "a")
    assert [row["name"] for row in json.loads(run("import", "--json")[1])["found"]] == ["a"]
    assert run("import", "--from", "ollama")[:2] == (0, "Nothing is new there.\n")
    assert run("import", "--from", "all")[0] == 0
    assert json.loads(run("import", str(own), "--json")[1])["imported"] == [
        {"name": "b's #%20", "path": str(own), "program": "another folder"}
    ]
    rows = listed(run)
    assert (rows["a"]["program"], rows["a"]["path"]) == ("LM Studio", str(theirs / "a.gguf"))
    status, out, _ = run("rm", "a", "b's #%20")
    assert status == 0
    assert out.count("off the list") == 2
    assert own.exists()
    assert (theirs / "a.gguf").exists()
    assert list(listed(run)) == [STARTER_NAME]


def test_stopped_download_goes_on_in_the_next_program(hub: LocalHub, private_home: Path, run: Run) -> None:
    data = os.urandom(3 << 20)
    hub.add(REPO, {"m.gguf": data})
    hub.file(REPO, "m.gguf").piece_pause = 0.3  # for 64 KiB: 14 s in all
    command = [sys.executable, "-m", "app", "models", "get", f"hf://{REPO}/m.gguf", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if json.loads(line)["received"] > 1 << 20:
                break
        assert "m.gguf is being downloaded by another program (" in run("list")[1]
        program.send_signal(2)
        _, err = program.communicate(timeout=120)
    assert program.returncode == 130
    assert err == "slipstream: stopped; the same command goes on from here\n"
    hub.file(REPO, "m.gguf").piece_pause = 0
    assert run("get", f"hf://{REPO}/m.gguf")[0] == 0
    assert hub.requests("/content/")[-1].status == 206
    assert hub.sent(REPO, "m.gguf") < 1.3 * len(data)  # a third of it did not come twice
