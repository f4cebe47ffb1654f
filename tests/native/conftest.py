"""A vocabulary wider than what the sampler looks at first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from native.model import Model
from tests.tiny_gguf import Tiny, write_llama

WIDE = 6000


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    path = tmp_path_factory.mktemp("wide") / "wide.gguf"
    write_llama(path, Tiny(n_vocab=WIDE, n_embd=8, n_head=1, n_head_kv=1, n_layer=1, n_ff=8))
    with Model(path, vocab_only=True) as model:
        yield model
