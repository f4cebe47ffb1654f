"""Writes GGUF bytes by hand, so that tests can write wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10


class Raw(NamedTuple):
    """A metadata value as it lies in the file: its type number and its bytes."""

    kind: int
    data: bytes


class RawTensor(NamedTuple):
    name: str
    dims: Sequence[int] = (32,)
    type: int = 0
    offset: int | None = None  # None: where it belongs
    bytes: int = 128


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def text(value: str) -> Raw:
    return Raw(STRING, string(value))


def u32(value: int) -> Raw:
    return Raw(U32, struct.pack("<I", value))


def strings(values: Sequence[str]) -> Raw:
    return Raw(ARRAY, struct.pack("<IQ", STRING, len(values)) + b"".join(map(string, values)))


def floats(values: Sequence[float]) -> Raw:
    return Raw(ARRAY, struct.pack("<IQ", F32, len(values)) + struct.pack(f"<{len(values)}f", *values))


CHAT = {"general.architecture": text("llama"), "tokenizer.ggml.model": text("gpt2")}
TENSORS = (RawTensor("token_embd.weight"), RawTensor("blk.0.attn_q.weight"))


def gguf(
    pairs: dict[str, Raw] | Sequence[tuple[str, Raw]] = CHAT,
    tensors: Sequence[RawTensor] = TENSORS,
    *,
    version: bytes = struct.pack("<I", 3),
    magic: bytes = b"GGUF",
    pair_count: int | None = None,
    tensor_count: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A GGUF with all its data; counts and the like can be made to lie."""
    items = list(pairs.items()) if isinstance(pairs, dict) else list(pairs)
    head = magic + version
    head += struct.pack("<Q", len(tensors) if tensor_count is None else tensor_count)
    head += struct.pack("<Q", len(items) if pair_count is None else pair_count)
    for key, value in items:
        head += string(key) + struct.pack("<I", value.kind) + value.data
    data_size = 0
    for tensor in tensors:
        offset = data_size if tensor.offset is None else tensor.offset
        head += string(tensor.name) + struct.pack("<I", len(tensor.dims))
        head += struct.pack(f"<{len(tensor.dims)}Q", *tensor.dims)
        head += struct.pack("<IQ", tensor.type, offset)
        data_size += -(-tensor.bytes // alignment) * alignment
    if not tensors:
        return head
    padding = -len(head) % alignment
    last = tensors[-1]
    unpadded = data_size - (-(-last.bytes // alignment) * alignment) + last.bytes
    return head + bytes(padding) + bytes(unpadded)
