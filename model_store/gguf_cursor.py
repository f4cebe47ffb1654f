"""A position in a GGUF file that hands out only bytes which are there, whatever the file claims."""

from __future__ import annotations

import struct
from operator import length_hint
from typing import Protocol

from model_store.gguf_strings import strings_at_once

IMPLAUSIBLE = 1 << 44  # bytes; no file is that long, so a length beyond it is damage and not truncation
_WINDOW = 1 << 18  # bytes read at a time
_MANY = 1000  # strings that are worth looking for at once

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class GgufError(Exception):
    """The file is not a GGUF that can be used; the text is a reason in one line."""


class TruncatedGguf(GgufError):
    """The file ends too early. ``needed`` is its full size in bytes, or None if the cut hides it."""

    def __init__(self, actual: int, needed: int | None) -> None:
        self.actual = actual
        self.needed = needed
        whole = f" of {needed:,} bytes" if needed is not None else " bytes, cut off in its header"
        super().__init__(f"incomplete ({actual:,}{whole})")


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class SeekableFile(Protocol):
    """What a header is read from: a file on disk, bytes in memory, or one fetched piece by piece."""

    def seek(self, offset: int, /) -> object: ...

    def read(self, size: int, /) -> bytes: ...


class Cursor:
    """A position in the file; hands out only bytes that are there."""

    def __init__(self, file: SeekableFile, size: int) -> None:
        self._file = file
        self.size = size
        self._start = 0  # of the buffer, in the file
        self._buffer = b""
        self._at = 0  # in the buffer

    @property
    def position(self) -> int:
        return self._start + self._at

    @property
    def left(self) -> int:
        return self.size - self.position

    def require(self, length: int) -> None:
        if length > self.left:
            if length > IMPLAUSIBLE:
                raise GgufError(f"damaged: a length of {length:,} bytes in a file of {self.size:,}")
            raise TruncatedGguf(self.size, None)

    def take(self, length: int) -> bytes:
        self.require(length)
        self._fill(length)
        taken = self._buffer[self._at : self._at + length]
        self._at += length
        return taken

    def skip(self, length: int) -> None:
        self.require(length)
        self._at += length

    def u32(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        return int(_U64.unpack(self.take(8))[0])

    def skip_strings(self, count: int, digest: Digest | None = None) -> None:
        """Pass over ``count`` strings; the loop that a vocabulary of 250,000 tokens spends its time in.

        ``digest`` takes in all their bytes.
        """
        self.require(count * 8)
        unpack = _U64.unpack_from
        while count:
            self.require(8)
            self._fill(8)
            buffer, at = self._buffer, self._at
            if count > _MANY and len(buffer) - at > _MANY * 8:
                passed, at = strings_at_once(buffer, at, count)
                count -= passed
            strings = iter(range(count))
            try:
                for _ in strings:
                    at += 8 + unpack(buffer, at)[0]
                count = 0
            except (struct.error, OverflowError):  # the length of this one lies behind the buffer
                count = length_hint(strings) + 1
            length = at - self._at
            while digest is not None and length:
                part = self.take(min(length, _WINDOW))
                digest.update(part)
                length -= len(part)
            self.skip(length)

    def _fill(self, length: int) -> None:
        """Make ``length`` bytes, known to be in the file, lie in the buffer."""
        if self._at + length <= len(self._buffer):
            return
        start = self.position
        self._file.seek(start)
        wanted = min(max(length, _WINDOW), self.size - start)
        parts: list[bytes] = []
        got = 0
        while got < length:
            part = self._file.read(wanted - got)
            if not part:  # it shrank after it was opened
                raise TruncatedGguf(start + got, None)
            parts.append(part)
            got += len(part)
        self._start, self._buffer, self._at = start, b"".join(parts), 0
