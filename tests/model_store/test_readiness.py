"""How a model that is here will run: its drafter, why not, and the memory of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_store.check import ModelFileError
from model_store.fit import FreeMemory, Loading
from model_store.library import ModelEntry, list_models
from model_store.readiness import drafter_candidates, readiness
from tests.models.eagle3 import write_eagle3
from tests.models.qwen35 import write_qwen35
from tests.tiny_gguf import Tiny, write_llama

FREE = FreeMemory(4 << 30)


def listed(folder: Path) -> dict[str, ModelEntry]:
    return {entry.name: entry for entry in list_models(folder)}


def test_drafter_that_fits_counts_in_memory(tmp_path: Path) -> None:
    write_llama(tmp_path / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(tmp_path / "head.gguf", Tiny(n_layer=4))
    target = listed(tmp_path)["target"]
    alone = readiness(target, None, Loading(), FREE)
    assert (alone.kind, alone.inside, alone.beside, alone.problem) == (None, False, None, None)
    assert alone.fit.needed == alone.target.total
    both = readiness(target, head, Loading(), FREE)
    assert (both.kind, both.problem, both.drafter_bytes) == ("eagle3", None, head.stat().st_size)
    assert both.beside is not None
    assert both.fit.needed == alone.fit.needed + both.beside.total
    assert both.fit.verdict == "fits"


def test_drafter_that_does_not_fit_says_why_and_takes_nothing(tmp_path: Path) -> None:
    write_llama(tmp_path / "target.gguf", Tiny(n_layer=4))
    head = write_eagle3(tmp_path / "head.gguf", Tiny(n_layer=4, n_embd=128))
    made = readiness(listed(tmp_path)["target"], head, Loading(), FREE)
    assert made.kind is None
    assert made.problem is not None
    assert "128" in made.problem and "64" in made.problem
    assert made.fit.needed == made.target.total


def test_heads_inside_are_found(tmp_path: Path) -> None:
    write_qwen35(tmp_path / "heads.gguf")
    made = readiness(listed(tmp_path)["heads"], None, Loading(), FREE)
    assert (made.kind, made.inside) == ("mtp", True)


def test_unusable_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelFileError):
        readiness(listed(tmp_path)["bad"], None, Loading(), FREE)


def test_candidates_that_fit_come_first_and_the_others_say_why_not(tmp_path: Path) -> None:
    write_llama(tmp_path / "target.gguf", Tiny(n_layer=8))
    write_eagle3(tmp_path / "fits.gguf", Tiny(n_layer=4))
    write_eagle3(tmp_path / "a-misfit.gguf", Tiny(n_layer=4, n_embd=128))
    write_llama(tmp_path / "small.gguf", Tiny(n_layer=1))
    write_llama(tmp_path / "as-large.gguf", Tiny(n_layer=8, seed=1))
    entries = listed(tmp_path)
    found = drafter_candidates(entries["target"], entries.values())
    assert [(each.entry.name, each.kind) for each in found] == [
        ("fits", "eagle3"),
        ("small", "draft"),
        ("a-misfit", None),
    ]
    assert found[-1].problem is not None
