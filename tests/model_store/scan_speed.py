"""How long a models folder full of large vocabularies takes to list, cold and warm.

    python -m tests.model_store.scan_speed --count 200 --tokens 250000

Cold reads every header; warm is another process's view, through the cache on disk. The files are made in
a temporary folder, without weights, and lie in the page cache.
"""

from __future__ import annotations

import argparse
import random
import struct
import tempfile
import time
from pathlib import Path

from model_store.fingerprint import TOKENS
from model_store.library import list_models
from model_store.scan_cache import ScanCache
from tests.model_store.raw_gguf import ARRAY, CHAT, I32, TENSORS, Raw, gguf, strings, text, u32


def write_models(folder: Path, count: int, tokens: int, *, merges: bool) -> None:
    """``count`` different files of ``tokens`` tokens each, of 1 to 12 characters."""
    source = random.Random(1)
    words = strings(["x" * source.randint(1, 12) for _ in range(tokens)])
    for number in range(count):
        pairs = {
            **CHAT,
            "general.name": text(f"Model {number:05}"),
            "llama.context_length": u32(8192),
            TOKENS: words,
            "tokenizer.ggml.token_type": Raw(ARRAY, struct.pack("<IQ", I32, tokens) + bytes(4 * tokens)),
        }
        if merges:
            pairs["tokenizer.ggml.merges"] = words
        (folder / f"model-{number:05}.gguf").write_bytes(gguf(pairs, TENSORS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=250_000)
    parser.add_argument("--merges", action="store_true", help="as many merges as tokens, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, kept = Path(temporary) / "models", Path(temporary) / "cache"
        folder.mkdir()
        write_models(folder, options.count, options.tokens, merges=options.merges)
        for name in ("cold", "warm"):
            started, used = time.monotonic(), time.process_time()
            entries = list_models(folder, ScanCache(kept))
            spent = time.monotonic() - started
            assert [entry.problem for entry in entries] == [None] * options.count
            print(f"{name}: {spent:.2f} s, {time.process_time() - used:.2f} s of CPU time")


if __name__ == "__main__":
    main()
