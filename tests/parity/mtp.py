"""Records what llama-server drafts with tiny models that have MTP heads, one of each kind.

    python -m tests.parity.mtp LLAMA_SERVER

Their weights are random but seeded, so the files are made anew wherever they are needed. Each answer has
a server of its own: what a server has read before would be the hidden state of the next prompt's start.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import msgspec

from app.bench.peer import Peer
from app.protocol import EngineOptions
from tests.models.mtp import MTP_KINDS
from tests.parity.__main__ import passes_of
from tests.parity.recording import PASSES, Answer, Recording

N_MAX = 4
MAX_TOKENS = 80
OPTIONS = EngineOptions(
    n_ctx=512, n_batch=64, n_threads=1, n_gpu_layers=0, kv_type="f32", flash_attention="off"
)
PROMPTS = {
    "short": [2, 260, 17, 300, 41, 5, 99, 260, 261, 9, 3, 77],
    "long": [5 + i % 401 for i in range(150)],
}
PATH = Path(__file__).parent / "mtp.json"
_SETTINGS = ("--spec-draft-n-max", str(N_MAX), "--spec-draft-p-min", "0")
_TYPES = ("--spec-draft-type-k", "f32", "--spec-draft-type-v", "f32")


def record(server: Path, kind: str, folder: Path) -> list[Answer]:
    files = MTP_KINDS[kind](folder)
    answers = []
    for name, prompt in PROMPTS.items():
        log = folder / "log"
        peer = Peer(server, (*_SETTINGS, *_TYPES, "--verbose"), log)
        (done,) = peer.play(files.target, files.heads, "draft-mtp", [prompt], OPTIONS, MAX_TOKENS)
        (passes,) = passes_of(log.read_bytes())
        counts = done.timings.draft_n, done.timings.draft_n_accepted
        answers.append(Answer(name, tuple(prompt), tuple(done.tokens), tuple(passes[:PASSES]), *counts))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parity.mtp")
    parser.add_argument("server", type=Path, help="the llama-server binary")
    server = parser.parse_args().server.absolute()
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    versions = [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("version")]
    command = " ".join(("llama-server --spec-type draft-mtp", *_SETTINGS, *_TYPES))
    recordings = {}
    for kind in MTP_KINDS:
        with tempfile.TemporaryDirectory() as folder:
            answers = tuple(record(server, kind, Path(folder)))
        recordings[kind] = Recording(
            server=versions[0] if versions else "", command=command, max_tokens=MAX_TOKENS, answers=answers
        )
        print(kind, ", ".join(f"{each.name} {each.accepted}/{each.drafted}" for each in answers))
    PATH.write_bytes(msgspec.json.encode(recordings) + b"\n")


if __name__ == "__main__":
    main()
