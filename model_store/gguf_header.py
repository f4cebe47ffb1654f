"""Reads the header of a GGUF file, and believes none of its numbers before they are checked.

The format is described in ggml's docs/gguf.md; the rules beyond it (offsets without gaps, names
shorter than 64 bytes, at most four dimensions) are those of ggml's own reader, so that a file that
passes here is one llama.cpp will at least open.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from model_store.ggml_types import GGML_TYPES
from model_store.gguf_cursor import IMPLAUSIBLE, Cursor, SeekableFile
from model_store.gguf_cursor import GgufError as GgufError
from model_store.gguf_cursor import TruncatedGguf as TruncatedGguf

MAX_KEPT_STRING = 1 << 20  # bytes; a longer value is skipped
MAX_KEPT_ITEMS = 4096  # of an array that was asked for, unless more are wanted
_MAX_KEPT = 1 << 20  # bytes of keys and values kept of one file; a chat template has some 10,000
_MAX_KEPT_IN_ARRAYS = 16 << 20  # bytes of strings kept in the arrays that were asked for
_MAX_KEY = 65_535  # bytes, as docs/gguf.md has it
_MAX_ARCHITECTURE = 64  # characters
_MAX_TENSOR_NAME = 63  # bytes, ggml's GGML_MAX_NAME less its zero
_MAX_PAIRS = 8192  # a file has some 50
_MAX_TENSORS = 16_384  # a file of the largest models has some 1,200
_MAX_STRINGS = 1 << 22  # walked in one file: bounds the time that a huge hostile file can take
_MAX_DIMS = 4
_MAX_INT64 = (1 << 63) - 1

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_SCALARS: dict[int, tuple[str, struct.Struct]] = {
    0: ("uint8", struct.Struct("<B")),
    1: ("int8", struct.Struct("<b")),
    2: ("uint16", struct.Struct("<H")),
    3: ("int16", struct.Struct("<h")),
    4: ("uint32", _U32),
    5: ("int32", struct.Struct("<i")),
    6: ("float32", struct.Struct("<f")),
    7: ("bool", struct.Struct("<?")),
    10: ("uint64", _U64),
    11: ("int64", struct.Struct("<q")),
    12: ("float64", struct.Struct("<d")),
}
_UINT32 = 4


class Skipped(NamedTuple):
    """A value that was passed over: an array of ``length`` items, or a string of ``length`` bytes.

    ``sha256`` is that of the strings in an array, with their lengths, where it was asked for.
    """

    type: str
    length: int
    sha256: bytes = b""


Scalar = int | float | bool | str
MetadataValue = Scalar | Skipped | tuple[Scalar, ...]


class TensorInfo(NamedTuple):
    """``dims`` in values, fastest first; ``offset`` from the data's start and ``size`` in bytes."""

    name: str
    dims: tuple[int, ...]
    type: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the header of a whole GGUF file says. All positions and sizes are in bytes.

    It is not ``complete`` when reading stopped at a key that was named: the metadata up to there, the
    number of tensors that the file claims, but none of them, and no position of their data.
    """

    version: int
    metadata: Mapping[str, MetadataValue]
    tensors: tuple[TensorInfo, ...]
    alignment: int
    data_offset: int
    data_end: int
    file_size: int
    tensor_count: int
    complete: bool = True

    @property
    def architecture(self) -> str:
        """``general.architecture``, or an empty string."""
        return self.text("general.architecture")

    def text(self, key: str) -> str:
        """The string at ``key``, or an empty one when it is absent, skipped, or not a string."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        """The whole number at ``key``; ``{arch}`` in it stands for the architecture."""
        value = self.metadata.get(key.replace("{arch}", self.architecture))
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def numbers(self, key: str) -> tuple[int, ...]:
        """The whole numbers in the array at ``key``; none when it is absent, skipped, or has others."""
        value = self.metadata.get(key.replace("{arch}", self.architecture))
        if not isinstance(value, tuple) or isinstance(value, Skipped):
            return ()
        whole = tuple(item for item in value if isinstance(item, int) and not isinstance(item, bool))
        return whole if len(whole) == len(value) else ()

    def tensor(self, name: str) -> TensorInfo | None:
        return next((tensor for tensor in self.tensors if tensor.name == name), None)


def read_header(
    path: Path,
    keep_arrays: Collection[str] = (),
    hash_arrays: Mapping[str, int] = MappingProxyType({}),
    most_items: int = MAX_KEPT_ITEMS,
) -> GgufHeader:
    """Read the header of ``path`` and check that the file holds all the data it announces.

    Arrays are skipped, except those named in ``keep_arrays`` with at most ``most_items`` items; ``{arch}``
    in a name stands for the architecture, where the file says it first. The arrays of strings named in
    ``hash_arrays`` are hashed from the item given there on. What is kept of one file is bounded: 1 MiB of
    keys and values, and 16 MiB of strings in the arrays that are kept.
    Raises TruncatedGguf when the file ends too early, GgufError for any other damage, and OSError
    when it cannot be read.
    """
    # Not a memory map: a file that shrinks while it is mapped kills the process with SIGBUS.
    with io.FileIO(path, "r", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise GgufError("not a regular file")
        return read_header_from(file, status.st_size, keep_arrays, hash_arrays, most_items)


def read_header_from(
    file: SeekableFile,
    size: int,
    keep_arrays: Collection[str] = (),
    hash_arrays: Mapping[str, int] = MappingProxyType({}),
    most_items: int = MAX_KEPT_ITEMS,
    stop_at: str | None = None,
) -> GgufHeader:
    """Read the header of a file of ``size`` bytes, as ``read_header`` does; it may lie elsewhere.

    ``stop_at`` names an array at whose first item reading ends, because all before it is enough: it
    becomes a ``Skipped`` of the length it claims. Raises also what ``file`` raises.
    """
    scanner = _Scanner(Cursor(file, size), frozenset(keep_arrays), hash_arrays, most_items)
    return scanner.scan(stop_at)


def _open_without_waiting(path: str, flags: int) -> int:
    # opening a FIFO that somebody named model.gguf would wait for a writer
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class _Scanner:
    def __init__(
        self,
        cursor: Cursor,
        keep_arrays: frozenset[str],
        hash_arrays: Mapping[str, int],
        most_items: int,
    ) -> None:
        self._cursor = cursor
        self._keep_arrays = keep_arrays
        self._most_items = most_items
        self._metadata: dict[str, MetadataValue] = {}
        self._hash_arrays = hash_arrays
        self._kept = 0  # bytes of keys and values
        self._kept_in_arrays = 0  # bytes of strings
        self._walked = 0  # strings

    def scan(self, stop_at: str | None) -> GgufHeader:
        cursor = self._cursor
        version = self._read_version()
        tensor_count, pair_count = cursor.u64(), cursor.u64()
        if pair_count > _MAX_PAIRS:
            raise GgufError(f"damaged: it claims {pair_count:,} metadata entries")
        if tensor_count > _MAX_TENSORS:
            raise GgufError(f"damaged: it claims {tensor_count:,} tensors")
        metadata = self._metadata
        stopped = False
        for _ in range(pair_count):
            key = self._name("metadata key", _MAX_KEY)
            if key in metadata:
                raise GgufError(f"damaged: the key {_shown(key)} appears twice")
            self._kept += len(key)
            if self._kept > _MAX_KEPT:
                raise GgufError("damaged: its metadata keys are too long")
            stopped = key == stop_at
            metadata[key] = self._value(key, skip_items=not stopped)
            if stopped:
                break
        _check_architecture(metadata.get("general.architecture", ""))
        alignment = self._alignment(metadata)
        if stopped:
            return GgufHeader(
                version=version,
                metadata=MappingProxyType(metadata),
                tensors=(),
                alignment=alignment,
                data_offset=0,
                data_end=0,
                file_size=cursor.size,
                tensor_count=tensor_count,
                complete=False,
            )
        tensors = self._tensors(tensor_count, alignment)
        header_end = cursor.position
        data_offset = -(-header_end // alignment) * alignment
        # A vocabulary without tensors need not be padded up to data that it does not have.
        data_end = data_offset + tensors[-1].offset + tensors[-1].size if tensors else header_end
        if data_end > cursor.size:
            raise TruncatedGguf(cursor.size, data_end)
        return GgufHeader(
            version=version,
            metadata=MappingProxyType(metadata),
            tensors=tuple(tensors),
            alignment=alignment,
            data_offset=data_offset,
            data_end=data_end,
            file_size=cursor.size,
            tensor_count=tensor_count,
        )

    def _read_version(self) -> int:
        cursor = self._cursor
        if cursor.size == 0:
            raise GgufError("the file is empty")
        magic = cursor.take(min(4, cursor.size))
        if magic == b"FUGG":
            raise GgufError("a big-endian GGUF, which cannot be used here")
        if magic != b"GGUF":
            raise GgufError("not a GGUF file")
        raw = cursor.take(4)
        version = int.from_bytes(raw, "little")
        if version in (2, 3):
            return version
        if int.from_bytes(raw, "big") in (1, 2, 3):
            raise GgufError("a big-endian GGUF, which cannot be used here")
        raise GgufError(f"GGUF version {version}, and only versions 2 and 3 can be used")

    def _alignment(self, metadata: dict[str, MetadataValue]) -> int:
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise GgufError(f"damaged: an alignment of {_shown(alignment)} is not a power of two")
        return alignment

    def _name(self, what: str, longest: int) -> str:
        length = self._cursor.u64()
        if not 0 < length <= longest:
            raise GgufError(f"damaged: a {what} of {length:,} bytes")
        try:
            return self._cursor.take(length).decode()
        except UnicodeDecodeError:
            raise GgufError(f"damaged: a {what} is not text") from None

    def _value(self, key: str, *, skip_items: bool) -> MetadataValue:
        kind = self._cursor.u32()
        if key == "general.alignment" and kind != _UINT32:
            raise GgufError("damaged: the alignment is not a 32-bit number")
        if kind == _ARRAY:
            return self._array(key, skip_items=skip_items)
        if kind != _STRING:
            return self._scalar(key, kind)
        length = self._cursor.u64()
        if length > MAX_KEPT_STRING or self._kept + length > _MAX_KEPT:
            self._cursor.skip(length)
            return Skipped("string", length)
        self._kept += length
        return self._cursor.take(length).decode(errors="replace")

    def _scalar(self, key: str, kind: int) -> int | float | bool:
        if kind not in _SCALARS:
            raise GgufError(f"damaged: {_shown(key)} has the unknown type {kind}")
        layout = _SCALARS[kind][1]
        value: int | float | bool = layout.unpack(self._cursor.take(layout.size))[0]
        return value

    def _array(self, key: str, *, skip_items: bool) -> MetadataValue:
        cursor = self._cursor
        kind, count = cursor.u32(), cursor.u64()
        if kind == _ARRAY:
            raise GgufError(f"damaged: {_shown(key)} is an array of arrays")
        if kind != _STRING and kind not in _SCALARS:
            raise GgufError(f"damaged: {_shown(key)} is an array of the unknown type {kind}")
        name, size = ("string", 8) if kind == _STRING else (_SCALARS[kind][0], _SCALARS[kind][1].size)
        cursor.require(count * size)
        if not skip_items:
            return Skipped(name, count)
        kept = self._is_wanted(key) and count <= self._most_items
        if kind != _STRING:
            if kept:
                return tuple(self._scalar(key, kind) for _ in range(count))
            cursor.skip(count * size)
            return Skipped(name, count)
        self._walked += count
        if self._walked > _MAX_STRINGS:
            raise GgufError(f"damaged: {_shown(key)} claims {count:,} strings")
        if kept:
            return self._strings(count)
        if key not in self._hash_arrays:
            cursor.skip_strings(count)
            return Skipped("string", count)
        unhashed = min(self._hash_arrays[key], count)
        cursor.skip_strings(unhashed)
        digest = hashlib.sha256()
        cursor.skip_strings(count - unhashed, digest)
        return Skipped("string", count, digest.digest())

    def _is_wanted(self, key: str) -> bool:
        if key in self._keep_arrays:
            return True
        architecture = self._metadata.get("general.architecture")
        if not isinstance(architecture, str) or not key.startswith(f"{architecture}."):
            return False
        return "{arch}" + key.removeprefix(architecture) in self._keep_arrays

    def _strings(self, count: int) -> tuple[str, ...] | Skipped:
        """The next ``count`` strings, unless they are too long to be kept."""
        cursor = self._cursor
        kept: list[str] = []
        for number in range(count):
            length = cursor.u64()
            self._kept_in_arrays += length
            if length > MAX_KEPT_STRING or self._kept_in_arrays > _MAX_KEPT_IN_ARRAYS:
                cursor.skip(length)
                cursor.skip_strings(count - number - 1)
                return Skipped("string", count)
            kept.append(cursor.take(length).decode(errors="replace"))
        return tuple(kept)

    def _tensors(self, count: int, alignment: int) -> list[TensorInfo]:
        tensors: list[TensorInfo] = []
        names: set[str] = set()
        expected = 0
        for _ in range(count):
            tensor = self._tensor()
            if tensor.name in names:
                raise GgufError(f"damaged: the tensor {_shown(tensor.name)} appears twice")
            if tensor.offset != expected:
                raise GgufError(
                    f"damaged: the tensor {_shown(tensor.name)} is at {tensor.offset:,}, not at {expected:,}"
                )
            names.add(tensor.name)
            tensors.append(tensor)
            expected += -(-tensor.size // alignment) * alignment
            if expected > IMPLAUSIBLE:
                raise GgufError(f"damaged: its tensors claim {expected:,} bytes")
        return tensors

    def _tensor(self) -> TensorInfo:
        cursor = self._cursor
        name = self._name("tensor name", _MAX_TENSOR_NAME)
        dim_count = cursor.u32()
        if dim_count > _MAX_DIMS:
            raise GgufError(f"damaged: the tensor {_shown(name)} has {dim_count:,} dimensions")
        dims = tuple(cursor.u64() for _ in range(dim_count))
        number, offset = cursor.u32(), cursor.u64()
        ggml_type = GGML_TYPES.get(number)
        if ggml_type is None:
            raise GgufError(f"the tensor {_shown(name)} has the unknown type {number}")
        values = 1
        for dim in dims:
            values *= dim
            if not 0 < dim <= _MAX_INT64 or values > _MAX_INT64:
                raise GgufError(f"damaged: the tensor {_shown(name)} has impossible dimensions")
        row = dims[0] if dims else 1
        if row % ggml_type.block:
            raise GgufError(
                f"damaged: rows of {row:,} values in {_shown(name)} do not fit the type {ggml_type.name}"
            )
        size = values // ggml_type.block * ggml_type.block_bytes
        return TensorInfo(name, dims, ggml_type.name, offset, size)


def _check_architecture(value: MetadataValue) -> None:
    """It goes into sentences and into the names of keys."""
    if not isinstance(value, str):
        raise GgufError("damaged: general.architecture is not a string")
    if len(value) > _MAX_ARCHITECTURE or not value.isprintable():
        raise GgufError(f"damaged: the architecture {_shown(value)} is not a name")


def _shown(value: object) -> str:
    """``value`` from the file, short and in one line."""
    text = str(value)
    text = text if len(text) <= 60 else text[:60] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
