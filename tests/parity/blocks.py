"""Records what llama-server drafts with tiny DFlash and DSpark drafters.

    python -m tests.parity.blocks LLAMA_SERVER

Their weights are random but seeded, so the files are made anew wherever they are needed. Each answer has
a server of its own, as no server knows of another's prompts.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.bench.peer import Peer
from app.protocol import EngineOptions
from model_store.drafting_kind import DraftKind
from tests.models.dflash import write_dflash
from tests.parity.__main__ import passes_of
from tests.parity.recording import PASSES, Answer, Recording
from tests.tiny_gguf import Tiny, write_llama

MAX_TOKENS = 200
OPTIONS = EngineOptions(
    n_ctx=512, n_batch=64, n_threads=1, n_gpu_layers=0, kv_type="f32", flash_attention="off"
)
PROMPTS = {
    "short": [2, 260, 17, 300, 41, 5, 99, 260, 261, 9, 3, 77],
    "long": [5 + 7 * i % 401 for i in range(150)],
}
SETTINGS = ((3, 0.0), (8, 0.0), (8, 0.3))  # n_max, p_min
PATH = Path(__file__).parent / "blocks.json"
_TYPES = ("--spec-draft-type-k", "f32", "--spec-draft-type-v", "f32")
_HEAD = Tiny(n_layer=2)


class Head(NamedTuple):
    kind: DraftKind
    write: Callable[[Path], Path]


HEADS: dict[str, Head] = {
    "dflash": Head("dflash", lambda path: write_dflash(path, _HEAD)),
    "dspark": Head("dspark", lambda path: write_dflash(path, _HEAD, markov=True)),
    "dspark without anchor": Head(
        "dspark", lambda path: write_dflash(path, _HEAD, markov=True, drafts_from_anchor=False)
    ),
}


def write_target(path: Path) -> Path:
    return write_llama(path, Tiny(n_layer=4))


def setting(head: str, n_max: int, p_min: float) -> str:
    """The name of a recording."""
    return f"{head} n{n_max} p{p_min:g}"


def record(server: Path, head: Head, n_max: int, p_min: float) -> Recording:
    settings = ("--spec-draft-n-max", str(n_max), "--spec-draft-p-min", str(p_min), *_TYPES)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        target, drafter = write_target(Path(folder) / "target.gguf"), head.write(Path(folder) / "head.gguf")
        log = Path(folder) / "log"
        peer = Peer(server, (*settings, "--verbose"), log)
        for name, prompt in PROMPTS.items():
            (done,) = peer.play(target, drafter, f"draft-{head.kind}", [prompt], OPTIONS, MAX_TOKENS)
            (passes,) = passes_of(log.read_bytes())
            counts = done.timings.draft_n, done.timings.draft_n_accepted
            answers.append(Answer(name, tuple(prompt), tuple(done.tokens), tuple(passes[:PASSES]), *counts))
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    versions = [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("version")]
    return Recording(
        server=versions[0] if versions else "",
        command=" ".join((f"llama-server --spec-type draft-{head.kind}", *settings)),
        max_tokens=MAX_TOKENS,
        answers=tuple(answers),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parity.blocks")
    parser.add_argument("server", type=Path, help="the llama-server binary")
    server = parser.parse_args().server.absolute()
    recordings = {}
    for name, head in HEADS.items():
        for n_max, p_min in SETTINGS:
            recording = record(server, head, n_max, p_min)
            counts = ", ".join(f"{each.name} {each.accepted}/{each.drafted}" for each in recording.answers)
            print(f"{setting(name, n_max, p_min)}: {counts}")
            recordings[setting(name, n_max, p_min)] = recording
    PATH.write_bytes(msgspec.json.encode(recordings) + b"\n")


if __name__ == "__main__":
    main()
