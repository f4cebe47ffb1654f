"""Where the models of this machine are, and the list of them as the person sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app import paths
from app.settings import Settings
from model_store.imported import Imported, ImportedModels
from model_store.library import Listing, ModelEntry, list_models
from model_store.scan_cache import ScanCache


def models_folder(settings: Settings) -> Path:
    """The folder that the person chose, or the default one."""
    return Path(settings.models_folder).expanduser() if settings.models_folder else paths.models_dir()


def local_models(
    folder: Path, on_part: Callable[[Listing], None] = lambda part: None, starter: Imported | None = None
) -> list[ModelEntry]:
    """The models in ``folder``, the imported ones and the ``starter``. It may take long when they were never
    read before; ``on_part`` then gets what is known so far."""
    imported = [*([starter] if starter is not None else []), *ImportedModels(imported_file()).models()]
    return list_models(folder, ScanCache(scan_cache_file()), imported, on_part=on_part)


def scan_cache_file() -> Path:
    return paths.cache_dir() / "models.cache"


def imported_file() -> Path:
    return paths.data_dir() / "imported-models.json"
