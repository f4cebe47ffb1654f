"""The store as window and command line open it: the settings hold for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local_store import open_store
from app.settings import Settings
from model_store.fit import free_memory
from model_store.hub import HubError
from model_store.offline import set_offline


@pytest.fixture(autouse=True)
def online_again() -> Iterator[None]:
    yield
    set_offline(False)


def test_the_models_folder_is_the_chosen_one(tmp_path: Path, private_home: Path) -> None:
    store = open_store(Settings(models_folder=str(tmp_path / "mine")), free=free_memory)
    assert store.models == tmp_path / "mine"
    store.close()
    store = open_store(Settings(), free=free_memory)
    assert store.models == private_home / "models"
    store.close()


def test_offline_it_asks_the_hub_for_nothing() -> None:
    store = open_store(Settings(offline=True), free=free_memory)
    with pytest.raises(HubError) as caught:
        store.search("anything")
    assert caught.value.kind == "offline"
    store.close()
