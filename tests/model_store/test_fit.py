"""Verdicts on memory, and how many layers graphics have room for. That sizes are right is measured in
tests/weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model_store.check import read_model_file
from model_store.fit import FreeMemory, Loading, MemoryNeed, fit, graphics_layers, shown_bytes, target_need
from model_store.gguf_header import GgufHeader
from tests.models.split import write_split
from tests.tiny_gguf import Tiny, write_llama

GB = 10**9
MIB = 1 << 20
SPARE = 512 * MIB
LAYERS = 4


@pytest.mark.parametrize(
    ("free", "verdict", "words"),
    [
        (FreeMemory(8 * GB), "fits", "Needs about 5.0 GB; 8.0 GB are free."),
        (FreeMemory(5_500_000_000), "tight", "Tight: needs about 5.0 GB; 5.5 GB are free."),
        (FreeMemory(4 * GB), "too_large", "Will not fit: needs about 5.0 GB; 4.0 GB are free."),
        (
            FreeMemory(16 * GB, 8 * GB),
            "fits",
            "Needs about 5.0 GB; 8.0 GB of graphics memory and 16.0 GB are free.",
        ),
        (
            FreeMemory(16 * GB, 4 * GB),
            "fits",
            "Needs about 5.0 GB; 4.0 GB of graphics memory and 16.0 GB are free. "
            "About 63% of it goes into graphics memory; the processor computes the rest, which is slower.",
        ),
        (
            FreeMemory(2 * GB, 4 * GB),
            "tight",
            "Tight: needs about 5.0 GB; 4.0 GB of graphics memory and 2.0 GB are free. "
            "About 63% of it goes into graphics memory; the processor computes the rest, which is slower.",
        ),
        (
            FreeMemory(16 * GB, GB // 2),
            "fits",
            "Needs about 5.0 GB; 500 MB of graphics memory and 16.0 GB are free. "
            "There is no room in graphics memory: the processor computes it, which is slower.",
        ),
        (
            FreeMemory(0, 4 * GB),
            "too_large",
            "Will not fit: needs about 5.0 GB; 4.0 GB of graphics memory and 0 MB are free.",
        ),
        (
            FreeMemory(16 * GB, 12 * GB, shared=True),
            "fits",
            "Needs about 5.0 GB; 16.0 GB are free, 12.0 GB of it for graphics.",
        ),
        (
            FreeMemory(4 * GB, 3 * GB, shared=True),
            "too_large",
            "Will not fit: needs about 5.0 GB; 4.0 GB are free, 3.0 GB of it for graphics.",
        ),
        (
            FreeMemory(8 * GB, 3 * GB, shared=True),
            "fits",
            "Needs about 5.0 GB; 8.0 GB are free, 3.0 GB of it for graphics. "
            "About 45% of it goes into graphics memory; the processor computes the rest, which is slower.",
        ),
    ],
)
def test_verdicts_come_with_numbers(free: FreeMemory, verdict: str, words: str) -> None:
    found = fit(5 * GB, free)
    assert (found.verdict, found.words) == (verdict, words)
    assert (found.needed, found.free) == (5 * GB, free.all)


def test_sizes_are_shown_as_downloads_are() -> None:
    assert [shown_bytes(size) for size in (0, 1, 98_362_432, 2_590_000_000)] == [
        "0 MB",
        "1 MB",
        "98 MB",
        "2.6 GB",
    ]


@pytest.fixture
def header(tmp_path: Path) -> GgufHeader:
    return read_model_file(write_llama(tmp_path / "m.gguf", Tiny(n_layer=LAYERS)))


def test_layers_go_to_graphics_from_the_last_one_on(header: GgufHeader) -> None:
    need = MemoryNeed(weights=header.file_size, tables=0, cache=4 << 20, states=0, compute=MIB)
    output = 512 * 64 * 4
    layer = sum(tensor.size for tensor in header.tensors if tensor.name.startswith("blk.3."))
    fixed = SPARE + 1.1 * MIB

    def layers(count: int) -> int:
        room = fixed + 1.1 * (output + (count - 1) * (layer + MIB))
        return graphics_layers(header, need, [int(room) + 1])

    assert [layers(count) for count in range(1, LAYERS + 2)] == [1, 2, 3, 4, 5]
    assert graphics_layers(header, need, [100 * GB]) == LAYERS + 1
    assert graphics_layers(header, need, [SPARE]) == 0
    assert graphics_layers(header, need, []) == 0


def test_each_device_has_buffers_of_its_own(header: GgufHeader) -> None:
    need = MemoryNeed(weights=header.file_size, tables=0, cache=0, states=0, compute=64 * MIB)
    alone = SPARE + 72 * MIB
    assert graphics_layers(header, need, [alone]) == LAYERS + 1
    assert graphics_layers(header, need, [alone // 2, alone // 2]) == 0
    assert graphics_layers(header, need, [alone, alone]) == LAYERS + 1


def test_what_the_drafter_takes_is_not_there_for_layers(header: GgufHeader) -> None:
    need = target_need(header, Loading(n_ctx=256))
    free = [SPARE + 100 * MIB]
    assert graphics_layers(header, need, free) == LAYERS + 1
    assert graphics_layers(header, need, free, beside=99 * MIB) == 0


def test_embeddings_that_are_the_output_as_well_are_copied(header: GgufHeader) -> None:
    tied = replace(header, tensors=tuple(t for t in header.tensors if t.name != "output.weight"))
    need = MemoryNeed(weights=header.file_size, tables=0, cache=0, states=0, compute=0)
    room = [SPARE + 130_000]  # the embeddings take 131,072
    assert graphics_layers(tied, need, room) == graphics_layers(header, need, room) == 0


def test_layers_of_a_split_model_are_taken_for_equal(tmp_path: Path) -> None:
    header = read_model_file(write_split(tmp_path / "m.gguf"))
    need = MemoryNeed(weights=5 * MIB, tables=0, cache=0, states=0, compute=0)
    rooms = [int(SPARE + 1.1 * count * MIB) + 1 for count in range(6)]
    assert [graphics_layers(header, need, [room]) for room in rooms] == [0, 1, 2, 3, 4, 5]
