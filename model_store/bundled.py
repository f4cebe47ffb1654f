"""Drafters that come with the program, found for the model that they were trained for."""

from __future__ import annotations

from pathlib import Path

from model_store.check import ModelFileError
from model_store.pairing import check_drafter


def bundled_drafter(assets: Path, target: Path) -> Path | None:
    """The first drafter in the assets' folder ``drafters`` that fits ``target``, by tokenizer, hidden size
    and layers; None where there is none."""
    for path in sorted((assets / "drafters").glob("*.gguf")):
        try:
            check_drafter(target, path)
        except ModelFileError:
            continue
        return path
    return None
