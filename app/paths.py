"""Where Slipstream keeps things. SLIPSTREAM_HOME moves them all under one folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_NAME = "slipstream"


def _folder(kind: str, default: str) -> Path:
    home = os.environ.get("SLIPSTREAM_HOME")
    folder = Path(home).expanduser().absolute() / kind if home else Path(default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def config_dir() -> Path:
    return _folder("config", platformdirs.user_config_dir(_NAME, appauthor=False))


def data_dir() -> Path:
    return _folder("data", platformdirs.user_data_dir(_NAME, appauthor=False))


def cache_dir() -> Path:
    """What can be made anew."""
    return _folder("cache", platformdirs.user_cache_dir(_NAME, appauthor=False))


def answers_dir() -> Path:
    """Where drafting keeps what it learns from answers; it is made when there is something to keep."""
    return data_dir() / "answers"


def log_dir() -> Path:
    return _folder("logs", platformdirs.user_log_dir(_NAME, appauthor=False))


def models_dir() -> Path:
    """The default models folder: plain GGUF files that the person can see."""
    return _folder("models", str(Path(platformdirs.user_data_dir(_NAME, appauthor=False)) / "models"))


def assets_dir() -> Path:
    return Path(__file__).resolve().parent.parent / "assets"
