"""The model store of the person's models folder, opened the same way for the window and the command line."""

from __future__ import annotations

from collections.abc import Callable

from app import paths
from app.local_models import imported_file, models_folder, scan_cache_file
from app.settings import Settings
from model_store.fit import FreeMemory
from model_store.offline import set_offline
from model_store.store import Event, Store


def open_store(
    settings: Settings,
    *,
    free: Callable[[], FreeMemory],
    on_event: Callable[[Event], None] = lambda event: None,
) -> Store:
    """It must be closed. Where the settings say so, it asks the Hub for nothing. ``free`` says what a model
    may take in memory, and may take its time."""
    set_offline(settings.offline)
    return Store(
        models_folder(settings),
        cache=scan_cache_file(),
        imported=imported_file(),
        catalog=paths.assets_dir() / "catalog.json",
        own_catalog=paths.data_dir() / "catalog.json",
        on_event=on_event,
        free=free,
    )
