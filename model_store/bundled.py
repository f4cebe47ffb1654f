"""Drafters that come with the program, found for the model that they were trained for."""

from __future__ import annotations

from pathlib import Path

from model_store.check import ModelFileError
from model_store.pairing import check_drafter
from model_store.pairs import paired_drafter


def default_drafter(assets: Path, target: Path) -> Path | None:
    """The drafter for ``target`` where the person names none: the one got with it, else a bundled one."""
    return paired_drafter(target) or bundled_drafter(assets, target)


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
