"""Compares a model's files with what is known of their content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from model_store.check import describe_os_error
from model_store.following_hash import hash_file
from model_store.manifest import Manifest
from model_store.scan import scan_file
from model_store.stop_signal import StopSignal

Outcome = Literal["verified", "unknown", "damaged", "missing", "unreadable"]

_BLOB = re.compile(r"(?:sha256[-:])?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class FileCheck:
    """``reason`` says in a few words what the outcome rests on.

    "unknown" means that nothing is known to compare with, and that its header is in order.
    """

    path: Path
    outcome: Outcome
    reason: str


def verify_file(path: Path, manifest: Manifest | None, stop: StopSignal) -> FileCheck:
    """Read the whole of ``path`` and compare it with its manifest. Raises Stopped.

    Without one, the name under which Ollama and Hugging Face's cache keep a file says its SHA-256.
    """
    try:
        size = path.stat().st_size
        if manifest is not None and size != manifest.size:
            return FileCheck(path, "damaged", f"it has {size:,} bytes instead of {manifest.size:,}")
        named = _BLOB.fullmatch(path.name) or _BLOB.fullmatch(path.resolve().name)
        expected = manifest.sha256 if manifest is not None else named[1] if named else None
        if expected is None:
            problem = scan_file(path).problem
            if problem is not None:
                return FileCheck(path, "damaged", problem)
            return FileCheck(path, "unknown", "nothing is known of its content; its header is in order")
        found, _ = hash_file(path, stop)
    except FileNotFoundError:
        return FileCheck(path, "missing", "it is not there")
    except OSError as error:
        return FileCheck(path, "unreadable", describe_os_error(error))
    if found != expected:
        return FileCheck(path, "damaged", f"its SHA-256 is {found} instead of {expected}")
    return FileCheck(path, "verified", f"SHA-256 {found}")
