"""Mutated headers by the hundred thousand: each is read or refused, quickly and in little memory.

    python -m tests.model_store.fuzz_header --count 100000 --seed 1

Each goes through all that listing a models folder asks of a header. Prints what was seen; ends with
status 1 at the first that breaks a rule.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO

import psutil

from model_store.check import impossible
from model_store.classify import classify
from model_store.drafting_kind import TO_KEEP, drafting_kind, heads_inside, needs
from model_store.fingerprint import TO_HASH, TOKENS, tokenizer_fingerprint
from model_store.gguf_header import GgufError, read_header_from
from model_store.gguf_strings import strings_at_once
from tests.model_store.raw_gguf import BOOL, CHAT, TENSORS, Raw, RawTensor, floats, gguf, strings, text, u32

MOST_SECONDS = 0.05  # of CPU time, for one header
MOST_BYTES = 10_000_000
MOST_GROWTH = 30 << 20  # bytes of the process over a whole run
_BATCH = 500  # headers that are timed before the memory of each is measured, which takes time itself
_LARGE_EVERY = 50  # one in so many is a mutation of a large seed


class RuleBroken(Exception):
    """A header did what none may."""


@dataclass(slots=True)
class Seen:
    """Of all headers: how many were read or refused and why, and the worst of them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds of CPU time
    largest: int = 0  # bytes
    growth: int = 0  # bytes


def _word(index: int) -> str:
    return f"token {index}" * (index % 3)


_VOCABULARY = {
    **CHAT,
    "general.size_label": text("1B"),
    "llama.context_length": u32(64),
    "llama.block_count": u32(1),
    TOKENS: strings([_word(index) for index in range(40)]),
    "tokenizer.ggml.scores": floats([0.5] * 40),
    "tokenizer.ggml.bos_token_id": u32(1),
    "tokenizer.ggml.add_bos_token": Raw(BOOL, b"\x01"),
}
SMALL = (
    gguf(),
    gguf(_VOCABULARY, (*TENSORS, RawTensor("output.weight", (32, 2), 3, bytes=40))),
    gguf({**CHAT, "general.alignment": u32(64), "tokenizer.chat_template": text("{{x}}" * 50)}, alignment=64),
    gguf(
        {
            "general.architecture": text("eagle3"),
            "eagle3.target_layers": Raw(9, struct.pack("<IQ3i", 5, 3, 1, 2, 3)),
            "eagle3.target_hidden_size": u32(64),
        }
    ),
    gguf(
        {**CHAT, "llama.nextn_predict_layers": u32(1), "llama.pooling_type": u32(1)},
        (*TENSORS, RawTensor("blk.0.nextn.eh_proj.weight", (32, 1, 1, 1))),
    ),
    gguf({**CHAT, "split.count": u32(3)}, ()),
)
LARGE = (
    gguf({**CHAT, TOKENS: strings([_word(index) for index in range(20_000)])}),
    gguf(CHAT, [RawTensor(f"blk.{index}.ffn_up.weight") for index in range(2000)]),
    gguf({**CHAT, **{f"key.{index}": text("value") for index in range(2000)}}),
)
_NUMBERS = (
    *(0, 1, 3, 5, 8, 9, 99, 127, 255, 256, 65_535, 65_536, 1 << 20, 500_000_000),
    *(2**bits + by for bits in (31, 32, 48, 61, 62, 63) for by in (-1, 0, 1)),
    2**64 - 1,
)


def mutate(source: random.Random, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """``data`` with one to six things wrong with it."""
    changed = bytearray(data)
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(changed)) if changed else 0
        match source.randrange(8):
            case 0:
                changed[at : at + 1] = bytes([source.randrange(256)])
            case 1:
                width = source.choice((1, 2, 4, 8))
                number = source.choice(_NUMBERS) % (1 << (8 * width))
                changed[at : at + width] = number.to_bytes(width, "little")
            case 2 | 3:
                _lie(source, changed)
            case 4:
                del changed[at:]
            case 5:
                del changed[at : at + source.randint(1, 40)]
            case 6:
                changed[at:at] = source.randbytes(source.randint(1, 40))
            case 7:
                other = source.choice(others)
                start = source.randrange(len(other))
                changed[at:at] = other[start : start + source.randint(1, 200)]
    return bytes(changed)


def _lie(source: random.Random, changed: bytearray) -> None:
    """Replace what looks like a length or a count, found by the zeros that it ends in."""
    begin = source.randrange(len(changed)) if changed else 0
    at = changed.find(bytes(7), begin)
    if at > 0:
        changed[at - 1 : at + 7] = source.choice(_NUMBERS).to_bytes(8, "little")


@dataclass(frozen=True, slots=True)
class Trial:
    """A header and the way in which it is read."""

    name: str
    data: bytes
    keep_tokens: bool
    stop: bool


def trials(first: int, last: int, seed: int) -> Iterator[Trial]:
    for number in range(first, last):
        source = random.Random(f"{seed}.{number}")
        seeds = LARGE if number % _LARGE_EVERY == 0 else SMALL
        data = mutate(source, source.choice(seeds), SMALL)
        yield Trial(f"header {number} of seed {seed}", data, source.random() < 0.25, source.random() < 0.25)


def judge(trial: Trial) -> str:
    """Do with a header what listing and pairing do; what became of it, in a word. Raises RuleBroken."""
    try:
        header = read_header_from(
            BytesIO(trial.data),
            len(trial.data),
            keep_arrays=(TOKENS, *TO_KEEP) if trial.keep_tokens else TO_KEEP,
            hash_arrays=TO_HASH,
            most_items=1 << 20 if trial.keep_tokens else 4096,
            stop_at=TOKENS if trial.stop else None,
        )
    except GgufError as error:
        reason = str(error)
        if not reason.isprintable() or not 0 < len(reason) < 250:
            raise RuleBroken(f"a reason of {len(reason)} characters: {reason[:250]!r}") from error
        return type(error).__name__
    if header.data_end > header.file_size or any(tensor.size <= 0 for tensor in header.tensors):
        raise RuleBroken("data that is not there")
    noun = classify(header).noun
    said = " ".join(filter(None, (noun, impossible(header), drafting_kind(header))))
    if not said.isprintable() or len(said) > 250:
        raise RuleBroken(f"a description of {len(said)} characters: {said[:250]!r}")
    heads_inside(header)
    needs(header)
    tokenizer_fingerprint(header)
    return "read" if header.complete else "read in part"


def fuzz(count: int, seed: int) -> Seen:
    """Judge ``count`` mutated headers. Raises RuleBroken at the first that breaks a rule."""
    seen = Seen()
    process = psutil.Process()
    settled = 0
    strings_at_once(bytes(8), 0, 1)  # what it imports is no header's fault
    for first in range(0, count, _BATCH):
        batch = list(trials(first, min(first + _BATCH, count), seed))
        for trial in batch:
            started = time.process_time()
            outcome = _judged(trial)
            spent = time.process_time() - started
            if spent > MOST_SECONDS:
                raise RuleBroken(f"{trial.name}: {spent:.3f} s")
            seen.outcomes[outcome] += 1
            seen.slowest = max(seen.slowest, spent)
        tracemalloc.start()
        try:
            for trial in batch:
                before, _ = tracemalloc.get_traced_memory()
                tracemalloc.reset_peak()
                _judged(trial)
                used = tracemalloc.get_traced_memory()[1] - before
                if used > MOST_BYTES:
                    raise RuleBroken(f"{trial.name}: {used:,} bytes")
                seen.largest = max(seen.largest, used)
        finally:
            tracemalloc.stop()
        settled = settled or process.memory_info().rss  # what is made once is there by now
    seen.growth = max(0, process.memory_info().rss - settled)
    if seen.growth > MOST_GROWTH:
        raise RuleBroken(f"the process grew by {seen.growth:,} bytes")
    return seen


def _judged(trial: Trial) -> str:
    try:
        return judge(trial)
    except Exception as error:
        raise RuleBroken(f"{trial.name}: {error!r}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    try:
        seen = fuzz(options.count, options.seed)
    except RuleBroken as broken:
        print(broken, file=sys.stderr)
        return 1
    outcomes = ", ".join(f"{name} {number:,}" for name, number in seen.outcomes.most_common())
    print(f"{options.count:,} headers in {time.monotonic() - started:.0f} s: {outcomes}")
    print(
        f"at most {seen.slowest * 1000:.1f} ms and {seen.largest:,} bytes each; "
        f"the process grew by {seen.growth:,} bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
