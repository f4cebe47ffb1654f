"""A GGUF that can be looked at, whether it lies on this disk or on a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from model_store.check import shown_name
from model_store.fingerprint import TOKENS
from model_store.gguf_header import GgufHeader, Skipped, read_header

MOST_TOKENS = 1 << 20
"""Larger vocabularies are not compared text by text."""


class GgufSource(Protocol):
    """What pairing needs of a file. ``header`` is good for a tokenizer fingerprint."""

    @property
    def name(self) -> str:
        """The file's name as a person may read it."""

    @property
    def header(self) -> GgufHeader: ...

    def token_texts(self) -> tuple[str, ...] | None:
        """The texts of all tokens in the order of their ids; None where there are too many or none.

        Raises GgufError and OSError.
        """

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes of the file from ``offset`` on, or fewer at its end. Raises OSError."""


@dataclass(frozen=True, slots=True)
class LocalGguf:
    """A file on this disk."""

    path: Path
    header: GgufHeader

    @property
    def name(self) -> str:
        return shown_name(self.path)

    def token_texts(self) -> tuple[str, ...] | None:
        return token_texts(read_header(self.path, keep_arrays=(TOKENS,), most_items=MOST_TOKENS))

    def read(self, offset: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)


def token_texts(header: GgufHeader) -> tuple[str, ...] | None:
    """Those in a header that was read with ``keep_arrays=(TOKENS,)``."""
    tokens = header.metadata.get(TOKENS)
    if not isinstance(tokens, tuple) or isinstance(tokens, Skipped):
        return None
    return tuple(str(token) for token in tokens)
