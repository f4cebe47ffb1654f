"""Drafters that come along are found by what they fit, never by a name."""

from __future__ import annotations

import shutil
from pathlib import Path

from app import paths
from model_store.bundled import bundled_drafter
from model_store.starter import starter_path
from tests.models.eagle3 import write_eagle3
from tests.tiny_gguf import Tiny, write_llama


def test_the_starter_has_one() -> None:
    starter = starter_path()
    assert starter is not None
    head = bundled_drafter(paths.assets_dir(), starter)
    assert head is not None and head.parent == paths.assets_dir() / "drafters"


def test_the_first_that_fits_is_taken(tmp_path: Path) -> None:
    sizes = Tiny(n_layer=4)
    target = write_llama(tmp_path / "target.gguf", sizes)
    assert bundled_drafter(tmp_path, target) is None, "no folder"
    folder = tmp_path / "drafters"
    folder.mkdir()
    (folder / "a.gguf").write_text("no model at all")
    write_eagle3(folder / "b.gguf", sizes, target_layers=(1, 2, 9))
    assert bundled_drafter(tmp_path, target) is None
    shutil.copy(write_eagle3(tmp_path / "head.gguf", sizes), folder / "c.gguf")
    assert bundled_drafter(tmp_path, target) == folder / "c.gguf"
    assert bundled_drafter(tmp_path, write_llama(tmp_path / "other.gguf", Tiny(n_layer=3))) is None
