"""The switch that asks the Hub for nothing, beside the variable that does."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from model_store import offline
from model_store.hub import Hub, HubError
from model_store.offline import set_offline
from tests.model_store.local_hub import LocalHub


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    set_offline(False)


def test_nobody_is_asked_while_it_is_on() -> None:
    with LocalHub() as hub:
        hub.add("owner/model-GGUF", {"x.gguf": b"GGUF"})
        here = Hub(hub.url)
        set_offline(True)
        with pytest.raises(HubError) as caught:
            here.search("model")
        assert caught.value.kind == "offline" and "settings" in caught.value.message
        assert hub.seen == []
        assert os.environ["HF_HUB_OFFLINE"] == "1"  # for the processes that this one starts
        set_offline(False)
        assert here.repository("owner/model-GGUF").repo == "owner/model-GGUF"
        assert "HF_HUB_OFFLINE" not in os.environ


def test_the_variable_that_the_program_was_started_with_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as started:
        started.setattr(offline, "_asked", "yes")
        set_offline(False)
        assert os.environ["HF_HUB_OFFLINE"] == "yes"
        assert constants.HF_HUB_OFFLINE is True
    set_offline(False)
    assert constants.HF_HUB_OFFLINE is False
