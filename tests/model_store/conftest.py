"""A Hub on this machine, and connections that end with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from huggingface_hub import close_session

from tests.model_store.local_hub import LocalHub


@pytest.fixture
def local_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """Nobody's token and proxy have a say in it."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nonexistent")
    close_session()
    with LocalHub() as hub:
        yield hub
    close_session()
