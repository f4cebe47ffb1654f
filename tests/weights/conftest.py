"""Models for the tests on real weights: T0 and D0 (tiny), the starter and requantisations of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store.starter import starter_path
from tests.golden.models import starter_as
from tests.session import Session
from tests.tiny_gguf import Tiny, write_llama


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for them. The starter's take up to 540 MB each, so they go when the tests are over."""
    folder = tmp_path_factory.mktemp("models")
    yield folder
    for path in folder.glob("starter-*.gguf"):
        path.unlink()


@pytest.fixture(scope="session")
def t0(models: Path) -> Path:
    return write_llama(models / "t0.gguf")


@pytest.fixture(scope="session")
def d0(models: Path) -> Path:
    """Another model of the same vocabulary, one layer deep."""
    return write_llama(models / "d0.gguf", Tiny(n_layer=1, seed=1))


@pytest.fixture(scope="session")
def starter() -> Path:
    path = starter_path()
    assert path is not None, "make test installs the starter's carrier"
    return path


@pytest.fixture(scope="session")
def starter_f32(models: Path) -> Path:
    return starter_as("F32", models)


@pytest.fixture(scope="session")
def starter_q2(models: Path) -> Path:
    return starter_as("Q2_K", models)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session
