"""What in a model's metadata decides how much memory it takes beside its weights.

Read off llama.cpp's own memory modules and graphs, those of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_store import drafting_kind
from model_store.fingerprint import vocabulary_size
from model_store.gguf_header import GgufHeader
from native.architectures import ASSISTANTS, RECURRENT

_HEADS = "{arch}.attention.head_count"
_KV_HEADS = "{arch}.attention.head_count_kv"
_FEED_FORWARD = "{arch}.feed_forward_length"
_WINDOW_PATTERN = "{arch}.attention.sliding_window_pattern"
_RECURRENT_LAYERS = "{arch}.attention.recurrent_layers"

TO_KEEP = (
    *drafting_kind.TO_KEEP,
    _HEADS,
    _KV_HEADS,
    _FEED_FORWARD,
    _WINDOW_PATTERN,
    _RECURRENT_LAYERS,
)
"""The arrays that a header must be read with to tell what a model of any architecture takes."""

_INTERVAL = 4  # every fourth layer of the Qwen3.5 family has attention unless the file says otherwise
_INTERVALS = ("qwen3next", "qwen35", "qwen35moe", "qwen4exp")
_BOTH = ("falcon-h1",)  # attention and a recurrent state in each layer


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """All counts are in values, not bytes.

    ``kv`` values of keys and values are kept for each token, and ``heads_kv`` more by the next-n layers
    where those run. ``state`` values of recurrent layers are kept whatever the context is, of which
    ``layer_state`` in one layer. A pass works on ``per_row`` values for each of its rows, and on
    ``n_head`` for each row and token of the context where there is no flash attention.
    """

    n_embd: int
    n_vocab: int
    n_ctx_train: int
    n_head: int
    kv: int
    heads_kv: int
    state: int
    layer_state: int
    per_row: int
    windows: bool


def memory_shape(header: GgufHeader) -> MemoryShape:
    """The header must be read with ``keep_arrays=TO_KEEP``; what it does not say counts as 0."""
    n_embd = header.number("{arch}.embedding_length") or 0
    blocks = header.number("{arch}.block_count") or 0
    # An assistant counts its own layers as next-n ones.
    inside = 0 if header.architecture in ASSISTANTS else header.number("{arch}.nextn_predict_layers") or 0
    layers = max(0, blocks - inside)
    attention = _attention_values(header, blocks, n_embd)
    recurrent = _recurrent(header, layers)
    keeps_none = header.architecture in ASSISTANTS or header.architecture in RECURRENT
    kv_layers = max(0, blocks - (header.number("{arch}.attention.shared_kv_layers") or 0))
    both = header.architecture in _BOTH
    kv = [
        values if layer < kv_layers and (both or not recurrent[layer]) else 0
        for layer, values in enumerate(attention[:layers])
    ]
    layer_state = _layer_state(header, n_embd)
    return MemoryShape(
        n_embd=n_embd,
        n_vocab=vocabulary_size(header) or header.number("{arch}.vocab_size") or 0,
        n_ctx_train=header.number("{arch}.context_length") or 0,
        n_head=max(_per_layer(header, _HEADS, 1)),
        kv=0 if keeps_none else sum(kv),
        heads_kv=sum(attention[layers:]),
        state=layer_state * sum(recurrent),
        layer_state=layer_state if any(recurrent) else 0,
        per_row=_per_row(header, n_embd),
        windows=bool(header.number("{arch}.attention.sliding_window")),
    )


def _per_layer(header: GgufHeader, key: str, layers: int) -> list[int]:
    """The numbers at ``key`` for each layer, which may be one for all; zeros where there is none."""
    values = header.numbers(key) or (header.number(key) or 0,)
    return [values[min(layer, len(values) - 1)] for layer in range(layers)]


def _attention_values(header: GgufHeader, layers: int, n_embd: int) -> list[int]:
    """Keys and values that one token takes in each layer, if it has attention."""
    latent = header.number("{arch}.attention.kv_lora_rank")
    if latent:  # one compressed row stands for keys and values of all heads
        return [latent + (header.number("{arch}.rope.dimension_count") or 0)] * layers
    heads = _per_layer(header, _HEADS, layers)
    has_kv_heads = bool(header.numbers(_KV_HEADS)) or header.number(_KV_HEADS) is not None
    kv_heads = _per_layer(header, _KV_HEADS, layers) if has_kv_heads else heads
    width = n_embd // max([*heads, 1])
    full = sum(header.number(f"{{arch}}.attention.{part}_length") or width for part in ("key", "value"))
    windowed = sum(header.number(f"{{arch}}.attention.{part}_length_swa") or 0 for part in ("key", "value"))
    pattern = header.metadata.get(_WINDOW_PATTERN.replace("{arch}", header.architecture))
    has_window = pattern if isinstance(pattern, tuple) and windowed else ()
    return [
        count * (windowed if layer < len(has_window) and has_window[layer] else full)
        for layer, count in enumerate(kv_heads)
    ]


def _recurrent(header: GgufHeader, layers: int) -> Sequence[bool]:
    """Which layers keep a state instead of keys and values."""
    arch = header.architecture
    if arch in RECURRENT or arch in _BOTH:
        return [True] * layers
    named = header.metadata.get(_RECURRENT_LAYERS.replace("{arch}", arch))
    if isinstance(named, tuple) and len(named) >= layers:
        return [bool(item) for item in named[:layers]]
    if arch in _INTERVALS:
        interval = header.number("{arch}.full_attention_interval") or _INTERVAL
        return [(layer + 1) % interval != 0 for layer in range(layers)]
    kv_heads = header.numbers(_KV_HEADS)
    if not kv_heads or not _layer_state(header, 1):
        return [False] * layers
    return [layer < len(kv_heads) and not kv_heads[layer] for layer in range(layers)]


def _layer_state(header: GgufHeader, n_embd: int) -> int:
    """Values of one recurrent layer's state: what its convolution saw last, and what it remembers."""
    head = header.number("{arch}.wkv.head_size")
    if head:
        return n_embd * (head + (header.number("{arch}.token_shift_count") or 2))
    short = header.number("{arch}.shortconv.l_cache")
    if short:
        return n_embd * (short - 1)
    inner, state, groups, kernel = (
        header.number(f"{{arch}}.ssm.{key}") or 0
        for key in ("inner_size", "state_size", "group_count", "conv_kernel")
    )
    return max(0, kernel - 1) * (inner + 2 * groups * state) + inner * state


def _per_row(header: GgufHeader, n_embd: int) -> int:
    """Values at work for one row at the widest place of a layer; measured, as llama.cpp's allocator
    reuses what is free. Too high by up to a quarter for narrow feed-forward layers.
    """
    layers = header.number("{arch}.block_count") or 0
    around = max(4 * n_embd, header.number("{arch}.embedding_length_out") or 0)
    dense = 3 * max([*_per_layer(header, _FEED_FORWARD, layers), 0]) + around
    used = header.number("{arch}.expert_used_count") or 0
    expert = header.number("{arch}.expert_feed_forward_length") or 0
    routed = (2 * used * (n_embd + expert) + n_embd) if used else 0
    inner = header.number("{arch}.ssm.inner_size") or 0
    mixed = 6 * inner + 3 * n_embd if inner else 0
    embeddings = (header.number("{arch}.embedding_length_per_layer_input") or 0) * layers
    return max(dense, routed, mixed) + embeddings
