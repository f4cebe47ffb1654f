"""How much memory a model and its drafter will take, told before they are loaded or even downloaded.

The sizes of buffers follow llama.cpp's (memory_shape.py) and the contexts that this program makes for
targets and drafters. Weights count in full, although those of a large file are only mapped: a model
whose weights do not stay in memory reads them again for every token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import psutil
from msgspec import Struct

from model_store.drafting_kind import drafting_kind
from model_store.gguf_header import GgufHeader
from model_store.memory_shape import MemoryShape, memory_shape
from native.architectures import SNAPSHOTS

KvType = Literal["f16", "f32", "q8_0"]
Verdict = Literal["fits", "tight", "too_large"]

_KV_BYTES: dict[KvType, float] = {"f16": 2, "f32": 4, "q8_0": 34 / 32}
_FLOAT = 4  # bytes
_TOKEN_BYTES = 370  # of one token's text, score and merges in memory, measured
_TABLES = 8 << 20  # bytes that any target takes beside all this, measured
_CELLS = 256  # llama.cpp rounds a context up to a multiple of it
# As app/worker/contexts.py and app/worker/neural.py make them.
_HEAD_BATCH = 64
_SNAPSHOT_BYTES = 512 << 20
_MOST_SNAPSHOTS = 16
_FEWEST_SNAPSHOTS = 3

_SPARE = 512 << 20  # bytes that should stay free for everything else
_DOUBT = 1.1  # what loading takes may be this much more than said here
_BEFORE: dict[Verdict, str] = {"fits": "Needs", "tight": "Tight: needs", "too_large": "Will not fit: needs"}


class Loading(Struct, frozen=True, kw_only=True):
    """How a model will be put into memory. ``n_ctx`` 0 stands for all that the model knows; each of
    ``n_parallel`` answers at once has so many."""

    n_ctx: int = 4096
    n_parallel: int = 1
    n_batch: int = 512
    kv_type: KvType = "f16"
    flash_attention: bool = True
    longest_draft: int = 64


class MemoryNeed(Struct, frozen=True, kw_only=True):
    """Bytes of one file in memory.

    ``cache`` are keys and values, ``states`` those of recurrent layers. ``compute`` are the buffers of
    a pass and the logits it leaves. ``tables`` are token texts and merges, graphs, and this program's own.
    """

    weights: int
    tables: int
    cache: int
    states: int
    compute: int

    @property
    def total(self) -> int:
        return self.weights + self.tables + self.cache + self.states + self.compute


class FreeMemory(NamedTuple):
    """Bytes. ``graphics`` is None where models are computed by the processor; ``shared`` says that it is
    a part of ``ram``."""

    ram: int
    graphics: int | None = None
    shared: bool = False

    @property
    def all(self) -> int:
        return self.ram if self.graphics is None or self.shared else self.ram + self.graphics


class Fit(Struct, frozen=True, kw_only=True):
    """What is needed beside what there is, in bytes; ``words`` are for the person."""

    verdict: Verdict
    needed: int
    free: int
    words: str


def target_need(
    header: GgufHeader, loading: Loading, size: int | None = None, *, heads: bool = False
) -> MemoryNeed:
    """What the model takes as a target.

    The header must be read with memory_shape's TO_KEEP. ``size`` is that of all its parts in bytes, for
    a split model or one whose header is an outline. ``heads``: with a context for the MTP heads inside.
    """
    shape = memory_shape(header)
    n_ctx = _n_ctx(shape, loading)
    rows = min(loading.longest_draft + 1, loading.n_batch)
    snapshots = _snapshots(header, shape, loading)
    if shape.state:
        rows = (snapshots or min(loading.longest_draft, loading.n_batch - 1)) + 1
    compute = _compute(shape, loading, n_ctx, loading.n_batch, rows) + rows * shape.n_vocab * _FLOAT
    # Rolling back goes through all snapshots of a layer at once.
    compute += shape.layer_state * (1 + snapshots) * _FLOAT
    cache = _cache(shape.kv, n_ctx, loading)
    if heads:
        cache += _cache(shape.heads_kv, n_ctx, loading)
        compute += _compute(shape, loading, n_ctx, loading.n_batch, 1)
    return MemoryNeed(
        weights=_weights(header, size, with_heads=heads),
        tables=shape.n_vocab * _TOKEN_BYTES + _TABLES,
        cache=cache,
        # A state that keeps no snapshots is copied before each draft.
        states=shape.state * _FLOAT * (1 + (snapshots or 1)) * loading.n_parallel,
        compute=compute,
    )


def drafter_need(
    header: GgufHeader, target: GgufHeader, loading: Loading, size: int | None = None
) -> MemoryNeed:
    """What the drafter takes beside ``target``; what it borrows from there costs nothing."""
    shape, kind = memory_shape(header), drafting_kind(header)
    n_ctx = _n_ctx(memory_shape(target), loading)
    rows = batch = min(_HEAD_BATCH, loading.n_batch)
    cached = shape.kv
    if kind == "draft":
        n_ctx, batch, rows = min(n_ctx, (shape.n_ctx_train or n_ctx) * loading.n_parallel), loading.n_batch, 1
    elif kind == "mtp":
        cached, batch, rows = shape.heads_kv, loading.n_batch, 1
    compute = _compute(shape, loading, n_ctx, batch, rows)
    if kind == "eagle3":
        # Logits of its own vocabulary become those of the target's.
        compute += rows * max(shape.per_row, _own_vocabulary(header)) * _FLOAT
    return MemoryNeed(
        weights=_weights(header, size, with_heads=True),
        tables=shape.n_vocab * _TOKEN_BYTES,
        cache=_cache(cached, n_ctx, loading),
        states=shape.state * _FLOAT,
        compute=compute + shape.n_vocab * _FLOAT,
    )


def fit(needed: int, free: FreeMemory) -> Fit:
    """Whether ``needed`` bytes can be had; nobody is kept from trying.

    What graphics memory has no room for lies beside it, as in graphics_layers.
    """
    wanted = round(needed * _DOUBT) + _SPARE
    on_graphics = free.graphics is not None and wanted <= free.graphics
    if not on_graphics and free.graphics is not None and not free.shared:
        wanted += _SPARE  # of the other memory
    verdict: Verdict = "tight"
    if needed > free.all:
        verdict = "too_large"
    elif on_graphics or wanted <= free.all:
        verdict = "fits"
    words = f"{_BEFORE[verdict]} about {shown_bytes(needed)}; {_there(free)}."
    if free.graphics is not None and not on_graphics and verdict != "too_large":
        words += _beside(max(0, free.graphics - _SPARE) / (max(1, needed) * _DOUBT))
    return Fit(verdict=verdict, needed=needed, free=free.all, words=words)


def graphics_layers(header: GgufHeader, need: MemoryNeed, free: Sequence[int], beside: int = 0) -> int:
    """How many layers of a target graphics have room for: llama.cpp's ``n_gpu_layers``.

    It counts from the last layer on, and the output as one more; embeddings stay with the processor.
    ``free`` are bytes of each device, ``beside`` what a drafter takes there.
    """
    room = -beside * _DOUBT
    for device in free:
        room += max(0.0, device - _SPARE - need.compute * _DOUBT)
    output, *layers = _layer_weights(header, need)
    kept = (need.cache + need.states) / max(1, len(layers))
    count = 0
    for size in (output, *(layer + kept for layer in reversed(layers))):
        room -= size * _DOUBT
        if room < 0:
            break
        count += 1
    return count


def free_memory(graphics: int | None = None, *, shared: bool = False, loaded: int = 0) -> FreeMemory:
    """What this machine has free now; ``loaded`` bytes more when the present model has gone."""
    memory = psutil.virtual_memory()
    # Of a model whose file is mapped, much counts as available already.
    return FreeMemory(min(memory.total, memory.available + loaded), graphics, shared)


def shown_bytes(size: int) -> str:
    """Such as "5.4 GB", in the decimal units that downloads are shown in."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{max(1, round(size / 1e6)):,} MB" if size else "0 MB"


def _there(free: FreeMemory) -> str:
    ram = shown_bytes(free.ram)
    if free.graphics is None:
        return f"{ram} are free"
    graphics = shown_bytes(free.graphics)
    if free.shared:
        return f"{ram} are free, {graphics} of it for graphics"
    return f"{graphics} of graphics memory and {ram} are free"


def _beside(share: float) -> str:
    """What becomes of a model that graphics have room for such a share of."""
    if share < 0.01:
        return " There is no room in graphics memory: the processor computes it, which is slower."
    return (
        f" About {share:.0%} of it goes into graphics memory; "
        "the processor computes the rest, which is slower."
    )


def _layer_weights(header: GgufHeader, need: MemoryNeed) -> list[int]:
    """Bytes of the output and of each layer; even shares where the header does not list them all."""
    blocks = header.number("{arch}.block_count") or 0
    if not header.complete or (header.number("split.count") or 1) > 1:
        return [need.weights // (blocks + 1)] * (blocks + 1)
    layers = [0] * blocks
    for tensor in header.tensors:
        start, _, rest = tensor.name.partition(".")
        number = rest.partition(".")[0]
        if start == "blk" and number.isdecimal() and int(number) < blocks:
            layers[int(number)] += tensor.size
    # Where embeddings are the output too, the device gets a copy of them.
    outputs = [header.tensor(f"{name}.weight") for name in ("output", "token_embd")]
    output = next((tensor.size for tensor in outputs if tensor is not None), 0)
    return [output, *layers]


def _n_ctx(shape: MemoryShape, loading: Loading) -> int:
    """As many as asked for and known, rounded up as llama.cpp does."""
    known = shape.n_ctx_train or loading.n_ctx
    n_ctx = min(loading.n_ctx or known, known)
    return -(-n_ctx * loading.n_parallel // _CELLS) * _CELLS


def _cache(values: int, n_ctx: int, loading: Loading) -> int:
    return round(values * n_ctx * _KV_BYTES[loading.kv_type])


def _compute(shape: MemoryShape, loading: Loading, n_ctx: int, batch: int, rows: int) -> int:
    """Buffers of a pass of ``batch`` rows, ``rows`` of them with logits."""
    masks = 0 if not shape.n_head else 2 if shape.windows else 1
    per_row, mask = shape.per_row, 2
    if not loading.flash_attention and masks:
        per_row, mask = max(per_row, shape.n_head * n_ctx + 6 * shape.n_embd), _FLOAT
    work = max(batch * per_row, rows * shape.n_vocab) * _FLOAT
    return work + masks * n_ctx * batch * mask


def _snapshots(header: GgufHeader, shape: MemoryShape, loading: Loading) -> int:
    """Earlier states that the target keeps to go back to."""
    most = min(_MOST_SNAPSHOTS, loading.longest_draft, loading.n_batch - 2)
    if not shape.state or header.architecture not in SNAPSHOTS:
        return 0
    affordable = min(most, _SNAPSHOT_BYTES // (shape.state * _FLOAT))
    return affordable if affordable >= _FEWEST_SNAPSHOTS else 0


def _weights(header: GgufHeader, size: int | None, *, with_heads: bool) -> int:
    """Bytes of the tensors that are loaded; of all parts where the header does not list them."""
    if not header.complete or (header.number("split.count") or 1) > 1:
        return size if size is not None else header.file_size
    if with_heads:
        return sum(tensor.size for tensor in header.tensors)
    layers = header.number("{arch}.block_count") or 0
    inside = header.number("{arch}.nextn_predict_layers") or 0
    left_out = tuple(f"blk.{layer}." for layer in range(layers - inside, layers))
    return sum(tensor.size for tensor in header.tensors if not tensor.name.startswith(left_out))


def _own_vocabulary(header: GgufHeader) -> int:
    """Tokens that a head can draft, where it has an output layer for some of them."""
    output = header.tensor("output.weight")
    return output.dims[-1] if output is not None and output.dims else 0
