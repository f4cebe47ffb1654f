"""Where the models of this machine are, and the list of them as the person sees it."""

from __future__ import annotations

from pathlib import Path

from app import paths
from app.settings import Settings
from model_store.imported import ImportedModels
from model_store.library import ModelEntry, list_models
from model_store.scan_cache import ScanCache


def models_folder(settings: Settings) -> Path:
    """The folder that the person chose, or the default one."""
    return Path(settings.models_folder).expanduser() if settings.models_folder else paths.models_dir()


def local_models(folder: Path) -> list[ModelEntry]:
    """The models in ``folder`` and the imported ones; may take long when they were never read before."""
    return list_models(folder, ScanCache(scan_cache_file()), ImportedModels(imported_file()).models())


def scan_cache_file() -> Path:
    return paths.cache_dir() / "models.cache"


def imported_file() -> Path:
    return paths.data_dir() / "imported-models.json"
