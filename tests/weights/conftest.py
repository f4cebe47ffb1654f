"""Models for the tests on real weights: T0 and D0 (tiny), the starter and requantisations of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model_store.starter import starter_path
from native.quantize import quantize
from tests.session import Session
from tests.tiny_gguf import Tiny, write_llama


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


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
def starter_f32(starter: Path, models: Path) -> Iterator[Path]:
    """540 MB, so it goes when the tests are over."""
    path = models / "starter-F32.gguf"
    quantize(starter, path, "F32")
    yield path
    path.unlink()


@pytest.fixture(scope="session")
def starter_q2(starter: Path, models: Path) -> Path:
    path = models / "starter-Q2_K.gguf"
    quantize(starter, path, "Q2_K")
    return path


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session
