"""Tiny targets with MTP heads, of each kind that llama.cpp drafts with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.models.gemma4 import write_gemma4, write_gemma4_assistant
from tests.models.qwen35 import write_qwen35
from tests.models.step35 import write_step35

CHAIN = 3  # heads


class MtpFiles(NamedTuple):
    """``heads``: the file that they are in, None where that is the target's own."""

    target: Path
    heads: Path | None


def _one_head(folder: Path) -> MtpFiles:
    return MtpFiles(write_qwen35(folder / "qwen35.gguf"), None)


def _head_file(folder: Path) -> MtpFiles:
    target = write_qwen35(folder / "qwen35-trunk.gguf", heads=0)
    return MtpFiles(target, write_qwen35(folder / "mtp-qwen35.gguf", trunk=False))


def _chain(folder: Path) -> MtpFiles:
    return MtpFiles(write_step35(folder / "step35.gguf", heads=CHAIN), None)


def _assistant(folder: Path) -> MtpFiles:
    target = write_gemma4(folder / "gemma4.gguf")
    return MtpFiles(target, write_gemma4_assistant(folder / "mtp-gemma4.gguf"))


MTP_KINDS: dict[str, Callable[[Path], MtpFiles]] = {
    "one head": _one_head,
    "a head file": _head_file,
    "a chain": _chain,
    "an assistant": _assistant,
}
