"""Looks into a GGUF on the Hub without downloading it: its header is fetched in blocks.

What the file is, its architecture and its context length stand in the first block. The tokenizer's
fingerprint covers the special ids, which come behind the list of all tokens, so that it takes the
whole header: 2 MB for 49,000 tokens, up to 14 MB for 262,000.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from model_store.check import ModelFileError
from model_store.fingerprint import TO_HASH, TOKENS
from model_store.gguf_header import GgufError, GgufHeader, read_header_from
from model_store.gguf_source import MOST_TOKENS, token_texts
from model_store.hub import Hub, HubError, HubFile
from model_store.memory_shape import TO_KEEP

BLOCK = 1 << 16  # bytes: the least that is fetched
_LEAST_AHEAD = 4  # blocks fetched at once where reading goes on behind what was fetched last,
_MOST_AHEAD = 16
_SHARE_AHEAD = 0.25  # and in between this share of what was fetched already
_MOST_FETCHED = 64 << 20  # bytes of one file: no header is that long
_MOST_KEPT = 256  # headers

Fetch = Callable[[int, int], bytes]
"""Gives ``length`` bytes from ``offset`` on."""


class BlockFile:
    """A file that is read in blocks from elsewhere; what was fetched is kept while it lives."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0
        self._blocks: dict[int, bytes] = {}
        self._next = -1  # the block behind those fetched last
        self.fetched = 0  # bytes

    def seek(self, offset: int, /) -> None:
        self._position = offset

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes: what is there, or what one request brings; none at the end of the file.

        Raises what fetching raises, and GgufError.
        """
        start, end = self._position, min(self._position + size, self._size)
        if start >= end:
            return b""
        first = block = start // BLOCK
        if first not in self._blocks:
            sequential = first == self._next
            ahead = int(_SHARE_AHEAD * len(self._blocks)) if sequential else 0
            self._load(first, min(max(ahead, _LEAST_AHEAD), _MOST_AHEAD) if sequential else 1)
        parts: list[bytes] = []
        while block * BLOCK < end and block in self._blocks:
            parts.append(self._blocks[block])
            block += 1
        data = b"".join(parts)[start - first * BLOCK : end - first * BLOCK]
        self._position += len(data)
        return data

    def read_all(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset`` on, fewer at the end of the file; in one request."""
        end = min(offset + length, self._size)
        first, stop = offset // BLOCK, -(-end // BLOCK)
        if any(block not in self._blocks for block in range(first, stop)):
            self._load(first, stop - first)
        self._position = offset
        return self.read(length)

    def _load(self, first: int, count: int) -> None:
        offset, end = first * BLOCK, min((first + count) * BLOCK, self._size)
        if self.fetched + end - offset > _MOST_FETCHED:
            raise GgufError(f"damaged: its header is longer than {_MOST_FETCHED:,} bytes")
        data = self._fetch(offset, end - offset)
        self.fetched += len(data)
        for at in range(0, len(data), BLOCK):
            self._blocks[first + at // BLOCK] = data[at : at + BLOCK]
        self._next = first + count


class RemoteGguf:
    """A file on the Hub for pairing: a ``GgufSource``. Its blocks are kept while it lives."""

    def __init__(self, name: str, header: GgufHeader, file: BlockFile) -> None:
        self.name = name
        self.header = header
        self._file = file

    def token_texts(self) -> tuple[str, ...] | None:
        size = self.header.file_size
        return token_texts(read_header_from(self._file, size, keep_arrays=(TOKENS,), most_items=MOST_TOKENS))

    def read(self, offset: int, length: int) -> bytes:
        return self._file.read_all(offset, length)


class RemoteHeaders:
    """Headers of files on the Hub, each fetched once; may be used from several threads."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._headers: OrderedDict[tuple[str, str, str, int], GgufHeader] = OrderedDict()
        self._fetched = 0

    @property
    def fetched(self) -> int:
        """Bytes so far, of all files."""
        with self._lock:
            return self._fetched

    def outline(self, file: HubFile) -> GgufHeader:
        """What stands before the token list, without tensors: one block, seldom more.

        Raises ModelFileError for a file that is no GGUF to be used, and HubError.
        """
        known = self._known(file)
        return known if known is not None else self._read(file, stop_at=TOKENS).header

    def gguf(self, file: HubFile) -> RemoteGguf:
        """The file with its whole header, good for pairing. Raises ModelFileError and HubError."""
        known = self._known(file)
        if known is not None and known.complete:
            return RemoteGguf(file.name, known, self._open(file))
        return self._read(file, stop_at=None)

    def _read(self, file: HubFile, stop_at: str | None) -> RemoteGguf:
        blocks = self._open(file)
        try:
            header = read_header_from(
                blocks, file.size, keep_arrays=TO_KEEP, hash_arrays=TO_HASH, stop_at=stop_at
            )
            if not header.complete and not header.architecture:
                # Written in another order than usual; the blocks so far are not fetched again.
                header = read_header_from(blocks, file.size, keep_arrays=TO_KEEP, hash_arrays=TO_HASH)
        except GgufError as error:
            raise ModelFileError(f"{file.name} cannot be used: {error}.") from error
        with self._lock:
            self._headers[_key(file)] = header
            self._headers.move_to_end(_key(file))
            while len(self._headers) > _MOST_KEPT:
                self._headers.popitem(last=False)
        return RemoteGguf(file.name, header, blocks)

    def _known(self, file: HubFile) -> GgufHeader | None:
        with self._lock:
            return self._headers.get(_key(file))

    def _open(self, file: HubFile) -> BlockFile:
        def fetch(offset: int, length: int) -> bytes:
            try:
                data = self._hub.read(file, offset, length)
            except HubError as error:
                if error.kind not in ("server", "timeout"):
                    raise
                data = b""
            if len(data) < length:  # there are dozens of requests: one may go wrong
                data = self._hub.read(file, offset, length)
            if len(data) < length:
                raise HubError("server", f"Only a part of the header of {file.name} came: try again.")
            with self._lock:
                self._fetched += len(data)
            return data

        return BlockFile(fetch, file.size)


def _key(file: HubFile) -> tuple[str, str, str, int]:
    """The revision is a commit: what lies there under this name never changes."""
    return file.repo, file.revision, file.path, file.size
