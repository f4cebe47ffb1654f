"""The worker's devices, and how many of a model's layers go to them where not all have room there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.devices import graphics
from app.protocol import Device, EngineOptions
from model_store.check import ModelFileError, read_model_file
from model_store.drafting_kind import heads_inside
from model_store.fit import Loading, drafter_need, graphics_layers, target_need
from model_store.gguf_header import GgufHeader
from model_store.split import parts_of
from native.devices import devices
from native.errors import NativeError

log = logging.getLogger(__name__)


class GpuLayers(NamedTuple):
    """``n_gpu_layers`` as EngineOptions has it; ``notice`` is a line for the person."""

    n_gpu_layers: int
    notice: str | None = None


def known_devices() -> tuple[Device, ...]:
    """As they are now; none where this build of llama.cpp cannot tell."""
    try:
        return tuple(Device(*device) for device in devices())
    except NativeError as error:
        log.warning("%s", error)
        return ()


def gpu_layers(
    path: Path,
    header: GgufHeader,
    drafter: Path | None,
    options: EngineOptions,
    longest_draft: int,
    found: Sequence[Device],
) -> GpuLayers:
    """Of the target at ``path``: what ``options`` say, else as many as the devices ``found`` have room for.

    llama.cpp by itself puts there what it is told to, and then cannot load a model that is too large.
    """
    there = graphics(found)
    if options.n_gpu_layers >= 0 or not there or not all(device.total for device in there):
        return GpuLayers(options.n_gpu_layers)
    loading = Loading(
        n_ctx=options.n_ctx,
        n_parallel=options.n_parallel,
        n_batch=options.n_batch,
        kv_type=options.kv_type,
        flash_attention=options.flash_attention != "off",
        longest_draft=longest_draft,
    )
    need = target_need(header, loading, _size(path), heads=drafter is None and heads_inside(header) > 0)
    beside = _drafter_bytes(drafter, header, loading) if drafter is not None else 0
    count = graphics_layers(header, need, [device.free for device in there], beside)
    every = (header.number("{arch}.block_count") or 0) + 1
    if count >= every:
        return GpuLayers(options.n_gpu_layers)
    device = there[0].description or there[0].name
    return GpuLayers(
        count,
        f"There is room for {count} of {every} layers on {device}; the processor computes the rest, "
        "which is slower.",
    )


def _drafter_bytes(path: Path, target: GgufHeader, loading: Loading) -> int:
    try:
        return drafter_need(read_model_file(path), target, loading, _size(path)).total
    except ModelFileError:  # it will not be loaded
        return 0


def _size(path: Path) -> int:
    return sum(part.stat().st_size for part in parts_of(path) if part.exists())
