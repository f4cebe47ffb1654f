"""Records token traces for the replay: every conversation of the workloads, greedy and undrafted.

python -m app.bench.record OUT_DIR [-m MODEL]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from app.bench.player import BenchError, Player
from app.bench.prompt_ids import PromptIds
from app.bench.workloads import load_workloads
from app.protocol import DraftingParams, EngineOptions
from drafting.replay import Recording, Trace
from model_store.files import write_atomically
from model_store.starter import starter_path


def record(model: Path, max_tokens: int, threads: int = 0) -> Recording:
    """Raises BenchError."""
    traces: list[Trace] = []
    options = EngineOptions(n_threads=threads)
    with Player(model, options=options) as player, PromptIds(model) as prompt_ids:
        for workload in load_workloads():
            for conversation in workload.conversations:
                answers = player.play(workload, conversation, DraftingParams(links=()), max_tokens)
                prompts = prompt_ids.of(conversation, answers)
                for i, (prompt, answer) in enumerate(zip(prompts, answers, strict=True), 1):
                    name = conversation.name if len(prompts) == 1 else f"{conversation.name}-{i}"
                    traces.append(Trace(workload.name, name, prompt, list(answer.token_ids)))
                    counts = f"{len(prompt)} + {len(answer.token_ids)} tokens"
                    print(f"{workload.name} {name}: {counts}", file=sys.stderr)
    return Recording(model.stem, traces)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.bench.record", description="Record token traces.")
    parser.add_argument("folder", type=Path, help="where to write MODEL.json")
    parser.add_argument("-m", "--model", type=Path, default=starter_path(), help="a GGUF file")
    parser.add_argument("--max-tokens", type=int, default=300, help="longest answer (default: 300)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: one per core)")
    options = parser.parse_args()
    if options.model is None:
        parser.error("the starter model is not installed; name one with -m")
    try:
        recording = record(options.model, options.max_tokens, options.threads)
    except BenchError as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"{recording.model}.json"
    write_atomically(path, msgspec.json.encode(recording))
    print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
