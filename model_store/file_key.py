"""A name for a model file that it keeps when it is moved or renamed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_HEAD = 1 << 18  # bytes: where a GGUF says what it is
_TAIL = 1 << 16  # bytes of its last tensor: tells finetunes apart whose headers are the same


def file_key(path: Path) -> str:
    """Hash of a file's size, beginning and end; a few hundred KiB are read. Raises OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(size.to_bytes(8, "little"))
        digest.update(file.read(_HEAD))
        file.seek(max(_HEAD, size - _TAIL))
        digest.update(file.read(_TAIL))
    return digest.hexdigest()[:32]
