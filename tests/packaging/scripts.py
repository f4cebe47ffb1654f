"""Loads the set-up scripts, which are no package, the way they load each other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "packaging"


def load(name: str) -> ModuleType:
    """Import ``packaging/name.py`` under its own bare name."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
