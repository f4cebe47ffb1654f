"""The starter with other weights, made on the spot by llama.cpp's quantiser."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from model_store.starter import STARTER_NAME, starter_path
from native.quantize import WeightType, quantize

OWN: WeightType = "Q4_1"  # what the starter is shipped in
DRAFT: WeightType = "Q2_K"
WEIGHTS: tuple[WeightType, ...] = get_args(WeightType)


def starter_as(weights: WeightType, folder: Path) -> Path:
    """The starter with these weights; a file that ``folder`` has already is taken as it is."""
    starter = starter_path()
    if starter is None:
        raise FileNotFoundError(f"the starter {STARTER_NAME} is not installed; make setup installs it")
    if weights == OWN:
        return starter
    path = folder / f"starter-{weights}.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        quantize(starter, unfinished, weights)
        unfinished.replace(path)
    return path
